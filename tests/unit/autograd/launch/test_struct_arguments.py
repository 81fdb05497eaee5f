"""Checks of launches with structs name their leaves, and masks their arguments."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, gradcheck_tape


@wp.struct
class State:
    pos: wp.vec2
    mass: float
    id: int


@wp.struct
class Params:
    gains: wp.array(dtype=float)
    states: wp.array(dtype=State)
    by: float


@wp.func
def spoiled(x: float):
    return x * x


@wp.func_grad(spoiled)
def adj_spoiled(x: float, adj: float):
    wp.adjoint[x] += x * adj


@wp.kernel
def step(p: Params, after: wp.array(dtype=State)):
    i = wp.tid()
    s = p.states[i]
    s.pos *= p.gains[i] * p.by
    s.mass = s.mass * s.mass + s.pos.x
    after[i] = s


@wp.kernel
def wrong(p: Params, after: wp.array(dtype=State)):
    i = wp.tid()
    after[i].mass = spoiled(p.states[i].mass) * p.gains[i]


@wp.kernel
def neighbours(a: wp.array(dtype=State)):
    i = wp.tid()
    a[i].mass = a[i].pos.x * a[i].pos.y


def recorded(kernel):
    n = 3
    states = wp.array(
        [State((i + 1.0, 2.0 - i), 1.5, i) for i in range(n)], dtype=State, requires_grad=True
    )
    gains = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    after = wp.zeros(n, dtype=State, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=n, inputs=[Params(gains, states, 0.5)], outputs=[after])
    return tape


def pairs(tape, **named):
    return [(p.input, p.output, p.verdict) for p in check_tape(tape, **named).launches[0].pairs]


def test_leaves_are_named():
    found = pairs(recorded(step))
    inputs = {"p.gains", "p.states.pos", "p.states.mass"}
    assert {(a, b) for a, b, _ in found} == {(a, f"after.{f}") for a in inputs
                                             for f in ("pos", "mass")}  # fmt: skip
    assert {v for _, _, v in found} == {"pass"}


def test_a_wrong_gradient_is_caught_and_named(capsys):
    found = pairs(recorded(wrong))
    assert [x for x in found if x[2] == "fail"] == [("p.states.mass", "after.mass", "fail")]
    with pytest.raises(wp.GradcheckError, match=r"'after.mass' with respect to 'p.states.mass'"):
        gradcheck_tape(recorded(wrong))
    assert "p.states.mass" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mask", "passes"),
    [
        (("p", "after"), False),
        ((0, 0), False),
        (("p.gains", "after"), True),
        (("p.states.mass", "after.mass"), False),
        (("p.gains", 0), True),
    ],
)
def test_masks_name_arguments_or_leaves(mask, passes):
    tape = recorded(wrong)
    got = gradcheck_tape(
        tape, input_output_masks={"wrong": [mask]}, raise_exception=False, show_summary=False
    )
    assert got is passes


def test_masks_refuse_other_names():
    for mask in (("q", "after"), (5, 0), ("p", 1), ("p.nothing", 0), (-1, 0)):
        with pytest.raises(wp.LaunchError, match="its arguments are p, after"):
            gradcheck_tape(recorded(wrong), input_output_masks={"wrong": [mask]})


def test_fields_of_one_array_do_not_overlap():
    a = wp.array([State((1.0, 2.0)), State((3.0, 4.0))], dtype=State, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(neighbours, dim=2, inputs=[a])
    assert tape.records[0].journal is None
    assert ("a.pos", "a.mass", "pass") in pairs(tape)
    seed = np.ones(2, State.numpy_dtype())
    tape.backward(grads={a: seed})
    assert a.grad.numpy()["pos"].tolist() == [[3.0, 2.0], [5.0, 4.0]]
    assert a.grad.numpy()["mass"].tolist() == [0.0, 0.0]


def test_forward_mode_of_a_launch_with_structs():
    states = wp.array([State((1.0, 2.0), 3.0, i) for i in range(3)], dtype=State)
    p = Params(wp.array([1.0, 2.0, 3.0], dtype=float), states, 0.5)
    after = wp.zeros(3, dtype=State)
    direction = np.zeros(3, State.numpy_dtype())
    direction["mass"], direction["id"] = 1.0, 7
    jvp = wp.autograd.jvp
    moved = jvp(step, dim=3, inputs=[p], outputs=[after], tangents={states: direction})
    assert moved[after].numpy()["mass"].tolist() == [6.0] * 3
    assert moved[after].numpy()["id"].tolist() == [0] * 3
    assert list(moved) == [after]
    assert moved["after"].numpy()["mass"].tolist() == moved[1].numpy()["mass"].tolist() == [6.0] * 3
    moved = jvp(step, dim=3, inputs=[p], outputs=[after],
                tangents={"p.gains": np.ones(3, np.float32)})  # fmt: skip
    assert moved["after.pos"].numpy().tolist() == [[0.5, 1.0]] * 3
    with pytest.raises(wp.TapeError, match="no array argument 'p'"):
        jvp(step, dim=3, inputs=[p], outputs=[after], tangents={"p": direction})


def test_captured_tapes_notice_flags_of_struct_arrays():
    states = wp.array([State((1.0, 2.0), 3.0, i) for i in range(3)], dtype=State)
    gains = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    after = wp.zeros(3, dtype=State, requires_grad=True)
    with wp.capturing() as capture:
        with wp.Tape():
            wp.launch(step, dim=3, inputs=[Params(gains, states, 0.5)], outputs=[after])
        states.requires_grad = True
        capture.tapes[0].look()
    found = {(p.input, p.output) for p in check_tape(capture.tapes[0]).launches[0].pairs}
    assert ("p.states.mass", "after.mass") in found and ("p.gains", "after.pos") in found
