"""The user's names for arrays in launches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import engine as wp
from engine.tape.naming import variable
from tests.unit.tape.kernels import double, square


@wp.struct
class State:
    q: wp.array(dtype=float)
    qd: wp.array(dtype=float)


@wp.kernel
def moved(a: State, dt: float, b: State):
    i = wp.tid()
    b.q[i] = a.q[i] + dt * a.qd[i]


def floats() -> Any:
    return wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)


def names(tape: Any, launch: int = 0) -> list[str]:
    record = tape.records[launch]
    return [variable(record, i) for i in range(len(record.plan.params))]


def test_names_of_arguments() -> None:
    x, y = floats(), floats()
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.launch(double, dim=3, inputs=[x, y])
        wp.launch(kernel=double, dim=3, inputs=(x,), outputs=(y,))
        wp.launch(double, 3, outputs=[y], inputs=[x])
        wp.launch(
            double, dim=3,
            inputs=[
                x,
            ],
            outputs=[y],
        )  # fmt: skip
    assert [names(tape, k) for k in range(5)] == [["x", "y"]] * 5


def test_expressions() -> None:
    state = SimpleNamespace(position=[floats(), floats()])
    k = 0
    with wp.Tape() as tape:
        wp.launch(double, 2, [state.position[k][1:]], [state.position[k + 1]])
    assert names(tape) == ["state.position[k][1:]", "state.position[k + 1]"]


def test_fields_of_structs() -> None:
    before, after = State(), State()
    before.q, before.qd, after.q, after.qd = (floats() for _ in range(4))
    with wp.Tape() as tape:
        wp.launch(moved, 3, [before, 0.1, after])
    record = tape.records[0]
    found = {p.name: variable(record, p.index) for p in record.plan.params}
    assert found["a.q"] == "before.q" and found["b.q"] == "after.q"
    assert found["a.qd"] == "before.qd" and found["dt"] == "0.1"


@pytest.mark.parametrize("how", ["list", "starred", "helper", "long"])
def test_where_it_is_not_known(how: str) -> None:
    x, y = floats(), floats()
    arguments = [x, y]
    with wp.Tape() as tape:
        if how == "list":
            wp.launch(double, 3, arguments)
        elif how == "starred":
            wp.launch(double, 3, [*arguments])
        elif how == "helper":
            run = wp.launch
            run(double, 3, [x], [y])
        else:
            wp.launch(
                double, 3, [x],
                [arguments[0 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1 - 1 + 1]],
            )  # fmt: skip
    assert names(tape)[1] == ""


def test_other_records_have_no_arguments() -> None:
    x, y = floats(), floats()
    with wp.Tape() as tape:
        wp.copy(y, x)
        y.zero_()
        tape.record_func(lambda: None, [x])
    assert [variable(r, 0) for r in tape.records] == ["", "", ""]


def test_two_launches_of_a_line() -> None:
    x, y, z = floats(), floats(), floats()
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y]), wp.launch(square, 3, [y], [z])
    assert [names(tape, k) for k in range(2)] == [["x", "y"], ["y", "z"]]
