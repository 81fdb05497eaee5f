"""Backward passes that add to, or pass on, what an earlier one left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.unit.autograd.watch.programs import (
    Cell,
    add,
    descend,
    facts,
    floats,
    ones,
    pack,
    said,
    square,
    stale,
    times,
    total,
    unpack,
    upper,
    watched,
    zeros,
)


def step(x: Any, y: Any) -> None:
    """y = x * x, and its backward pass."""
    with wp.Tape() as tape:
        wp.launch(square, x.size, [x], [y])
    tape.backward(grads=ones(y))  # of a step


def moved(how: str, x: Any) -> None:
    if how == "launch":
        wp.launch(descend, x.size, [x, x.grad])
    elif how == "assign":
        x.assign(x.numpy() - 0.1 * x.grad.numpy())
    else:
        x.numpy()[...] -= 0.1 * x.grad.numpy()


@pytest.mark.parametrize("how", ["launch", "assign", "numpy"])
@pytest.mark.host("arrays of NumPy that are views", only=("numpy",))
def test_a_training_loop_that_never_clears(how: str) -> None:
    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        for _ in range(4):
            step(x, y)
            moved(how, x)

    found = facts(program)
    assert [(f.kind, f.array, f.passes) for f in found] == [("values", "x", 1)] * 3
    assert {said(f.site) for f in found} == {said(f.earlier) for f in found}
    assert said(found[0].site).endswith("# of a step")


CLEARED: dict[str, Any] = {
    "zero_": lambda x, tape: x.grad.zero_(),
    "fill": lambda x, tape: x.grad.fill_(0.0),
    "tape.zero": lambda x, tape: tape.zero(),
    "tape.reset": lambda x, tape: tape.reset(),
    "numpy": lambda x, tape: x.grad.numpy().fill(0.0),
    "assign": lambda x, tape: x.grad.assign(np.zeros(x.shape, np.float32)),
    "anew": lambda x, tape: setattr(x, "grad", wp.zeros(x.shape, dtype=float)),
    "decayed": lambda x, tape: x.grad.assign(0.9 * x.grad.numpy()),  # the user's own momentum
}


@pytest.mark.parametrize("clear", CLEARED.values(), ids=list(CLEARED))
@pytest.mark.parametrize("how", ["launch", "numpy"])
@pytest.mark.host("arrays of NumPy that are views", only=("numpy",))
def test_loops_that_clear(how: str, clear: Any) -> None:
    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        for _ in range(3):
            with wp.Tape() as tape:
                wp.launch(square, 3, [x], [y])
            tape.backward(grads=ones(y))
            moved(how, x)
            clear(x, tape)

    assert facts(program) == []


def test_one_array_of_two_is_not_cleared() -> None:
    def program() -> None:
        x, w, y = floats(1, 2, 3), floats(4, 5, 6), zeros()
        for _ in range(2):
            with wp.Tape() as tape:
                wp.launch(times, 3, [x, w], [y])
            tape.backward(grads=ones(y))
            moved("assign", x)
            moved("assign", w)
            x.grad.zero_()

    assert [(f.kind, f.array) for f in facts(program)] == [("values", "w")]


def test_mini_batches_at_unchanged_values() -> None:
    def program() -> None:
        w, y, loss = floats(1, 2, 3), zeros(), zeros(1)
        for batch in range(3):
            data = floats(batch, 1, 2, grad=False)
            loss.zero_()
            with wp.Tape() as tape:
                wp.launch(times, 3, [w, data], [y])
                wp.launch(total, 3, [y], [loss])
            tape.backward(loss)
        assert w.grad.list() == [3, 3, 6]

    assert facts(program) == []


@pytest.mark.parametrize("how", ["assign", "numpy"])
@pytest.mark.host("arrays of NumPy that are views", only=("numpy",))
def test_mini_batches_on_one_tape(how: str) -> None:
    def program() -> None:
        w, data, y = floats(1, 2, 3), floats(0, 1, 2, grad=False), zeros()
        with wp.Tape() as tape:
            wp.launch(times, 3, [w, data], [y])
        for batch in range(3):
            if how == "assign":
                data.assign(np.array([batch, 1, 2], np.float32))
            else:
                data.numpy()[0] = batch
            wp.launch(times, 3, [w, data], [y])
            tape.backward(grads=ones(y))
        assert w.grad.list() == [3, 3, 6]

    assert facts(program) == []


def test_one_tape_twice() -> None:
    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        tape.backward(grads=ones(y))  # the first
        tape.backward(grads=ones(y))  # the second
        assert x.grad.list() == [4, 8, 12]

    (f,) = facts(program)
    assert (f.kind, f.array) == ("twice", "x")
    assert said(f.site).endswith("# the second") and said(f.earlier).endswith("# the first")


def test_rows_of_a_jacobian() -> None:
    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        for k in range(3):
            tape.backward(grads={y: np.eye(3, dtype=np.float32)[k]})

    assert facts(program) == []


def test_two_losses_of_one_tape() -> None:
    def program() -> None:
        x, y, z = floats(1, 2, 3), zeros(1), zeros(1)
        with wp.Tape() as tape:
            wp.launch(total, 3, [x], [y])
            wp.launch(total, 3, [x], [z])
        tape.backward(y)
        y.grad.zero_()
        tape.backward(z)
        assert x.grad.list() == [2, 2, 2]

    assert facts(program) == []


@pytest.mark.parametrize("cleared", [False, True])
@pytest.mark.parametrize("how", ["accumulated", "retained"])
def test_the_gradient_of_what_the_tape_computes(how: str, cleared: bool) -> None:
    """It is not consumed where a launch adds, or by request: the next pass passes it on."""

    def program() -> None:
        x, y, loss = floats(1, 2, 3), zeros(), zeros(1)
        y.retain_grad = how == "retained"
        for _ in range(3):
            loss.zero_()
            y.zero_()
            x.grad.zero_()
            if cleared:
                y.grad.zero_()
            with wp.Tape() as tape:
                wp.launch(add if how == "accumulated" else square, 3, [x], [y])
                wp.launch(total, 3, [y], [loss])
            tape.backward(loss)
        alone = [1, 1, 1] if how == "accumulated" else [2, 4, 6]
        assert (x.grad.list() == alone) is cleared

    found = facts(program)
    assert [(f.kind, f.array) for f in found] == ([] if cleared else [("passed on", "y")])


def test_a_leaf_of_which_the_tape_writes_the_other_half() -> None:
    def program() -> None:
        x, loss = floats(1, 2, 3, 0, 0, 0), zeros(1)
        for _ in range(3):
            loss.zero_()
            with wp.Tape() as tape:
                wp.launch(upper, 3, [x, 3])
                wp.launch(total, 6, [x], [loss])
            tape.backward(loss)
        assert x.grad.list() == [12, 12, 12, 0, 0, 0]

    assert facts(program) == []


def test_what_a_half_written_array_passes_on() -> None:
    def program() -> None:
        x = floats(1, 2, 3, 0, 0, 0)
        y = zeros(6)
        for _ in range(2):
            x.grad.assign(np.array([0, 0, 0, 1, 1, 1], np.float32))  # left by these passes
            with wp.Tape() as tape:
                wp.launch(square, 6, [x], [y])
            tape.backward(grads={y: np.zeros(6, np.float32)})
        with wp.Tape() as tape:
            wp.launch(upper, 3, [x, 3])
        tape.backward(grads={y: np.zeros(6, np.float32)})
        assert x.grad.list() == [3, 3, 3, 0, 0, 0]

    (f,) = facts(program)
    assert (f.kind, f.array) == ("passed on", "x")


def test_slices_that_are_made_anew() -> None:
    def program(clears: bool) -> Any:
        def run() -> None:
            x, y, loss = floats(1, 2, 3, 4), zeros(2), zeros(1)
            for _ in range(3):
                loss.zero_()
                with wp.Tape() as tape:
                    wp.launch(square, 2, [x[:2]], [y])
                    wp.launch(total, 2, [y], [loss])
                tape.backward(loss)
                wp.launch(descend, 4, [x, x.grad])
                if clears:
                    x.grad.zero_()

        return run

    assert facts(program(True)) == []
    assert [(f.kind, f.array) for f in facts(program(False))] == [("values", "x[:2]")] * 2


def test_a_part_that_was_moved_while_another_accumulates() -> None:
    def program() -> None:
        p, y = floats(1, 2, 3, 4, 5, 6), zeros()
        for k in range(3):
            step(p[3:], y)  # at the same values
            p[:3].assign([k, k, k])
        assert p.grad.list() == [0, 0, 0, 24, 30, 36]

    assert facts(program) == []


def test_seeds_replace_what_was_there() -> None:
    def program() -> None:
        x, out = floats(1, 2), zeros(2)
        first = out[:1]
        for _ in range(3):
            out.zero_()
            x.grad.zero_()
            with wp.Tape() as tape:
                wp.launch(total, 2, [x], [first])
            tape.backward(out[:1])
            assert x.grad.list() == [1, 1]

    assert facts(program) == []


def test_arrays_of_structs() -> None:
    def program(clears: bool) -> Any:
        def run() -> None:
            c, y = wp.zeros(3, dtype=Cell, requires_grad=True), zeros()
            seen: list[Any] = []
            for k in range(2):
                wp.launch(pack, 3, [floats(k, 1, 2), c])
                with wp.Tape() as tape:
                    wp.launch(unpack, 3, [c, y])
                tape.backward(grads=ones(y))
                seen.append(c.grad.list())
                if clears:
                    tape.zero()

        return run

    assert facts(program(True)) == []
    assert [(f.kind, f.array) for f in facts(program(False))] == [("values", "c")]


def test_a_pass_that_fails_leaves_no_gradient() -> None:
    def program() -> None:
        def fails() -> None:
            raise ValueError("of the user")

        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            tape.record_func(fails, [x])
            wp.launch(square, 3, [x], [y])
        with pytest.raises(ValueError, match="of the user"):
            tape.backward(grads=ones(y))
        step(x, y)  # the user's own affair: backward() asks for a zero

    assert facts(program) == []


def test_gradients_that_do_not_move_are_silent() -> None:
    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        step(x, y)
        x.assign([4.0, 5.0, 6.0])
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        tape.backward(grads={y: np.zeros(3, np.float32)})  # adds nothing

    assert facts(program) == []


def test_passes_of_one_place_and_cause_are_one() -> None:
    with watched() as found:
        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        for _ in range(4):
            tape.backward(grads=ones(y))
        assert x.grad.list() == [8, 16, 24]
    assert [(f.kind, f.passes) for f in stale(found)] == [("twice", 3)]


SHARED: dict[str, Any] = {
    "given": lambda v, g: wp.array(v, dtype=float, requires_grad=True, grad=g),
    "set": lambda v, g: _with_gradient(wp.array(v, dtype=float, requires_grad=True), g),
}


def _with_gradient(x: Any, g: Any) -> Any:
    x.grad = g
    return x


@pytest.mark.parametrize("step_by", ["host", "kernel"])
@pytest.mark.parametrize("make", SHARED.values(), ids=list(SHARED))
@pytest.mark.parametrize("clears", [False, True])
def test_new_arrays_with_one_gradient(make: Any, clears: bool, step_by: str) -> None:
    def program() -> None:
        values, buffer, y = np.array([1, 2, 3], np.float32), zeros(grad=False), zeros()
        for _ in range(4):
            x = make(values, buffer)
            step(x, y)
            if step_by == "host":
                values = values - 0.1 * buffer.numpy()
            else:
                wp.launch(descend, 3, [x, buffer])
                values = x.numpy().copy()
            if clears:
                buffer.zero_()

    found = facts(program)
    assert {(f.kind, f.array) for f in found} == (set() if clears else {("values", "x")})
    assert sum(f.passes for f in found) == (0 if clears else 3)


@pytest.mark.parametrize("values", ["equal", "other"])
@pytest.mark.parametrize("make", SHARED.values(), ids=list(SHARED))
def test_a_sum_over_new_arrays(make: Any, values: str) -> None:
    """Samples at one point after the other add up in one memory, which is read in the end."""

    def program() -> None:
        buffer, y = zeros(grad=False), zeros()
        for k in range(4):
            x = make(np.array([1, 2, 3 + (k if values == "other" else 0)], np.float32), buffer)
            step(x, y)
            if values == "equal":
                buffer.numpy()
        buffer.numpy()

    assert facts(program) == []


def test_arrays_that_live_on_may_share_a_gradient() -> None:
    def program() -> None:
        buffer, y = zeros(grad=False), zeros()
        arrays = [SHARED["set"](np.array([k, 2, 3], np.float32), buffer) for k in range(1, 4)]
        for x in arrays:
            step(x, y)
            buffer.numpy()

    assert facts(program) == []
