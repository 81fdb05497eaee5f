"""Values that a launch read linearly and overwrote itself, or read back and lost later: notes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import Overwritten
from tests.unit.autograd.watch.programs import F, add, facts, floats, ones, overwrites, zeros


@wp.kernel
def taken(x: F, y: F):
    i = wp.tid()
    y[i] = x[i]
    x[i] = 7.0


@wp.kernel
def damped(v: F):
    i = wp.tid()
    v[i] = 0.5 * v[i]


@wp.kernel
def made_and_used(c: F, a: F, b: F):
    i = wp.tid()
    a[i] = c[i]
    b[i] = 2.0 * a[i]


@wp.kernel
def set_to(d: F, a: F):
    i = wp.tid()
    a[i] = d[i]


@wp.kernel
def set_where_large(d: F, a: F):
    i = wp.tid()
    if d[i] > 10.0:
        a[i] = d[i]


def notes(program: Any) -> list[Overwritten]:
    return overwrites(facts(program), notes=True)


def test_what_a_launch_read_and_overwrote_itself() -> None:
    def program() -> None:
        x, y = floats(7, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(taken, 3, [x, y])
        tape.backward(grads=ones(y))
        assert x.grad.list() == [1, 1, 1]

    (f,) = notes(program)
    assert (f.kind, f.argument, f.launch, f.by.launch) == ("unneeded", "x", 0, 0)
    assert (f.first, f.count) == ((1,), 2)  # 7 is what was there


def test_a_loop_of_launches_in_place_is_one_note() -> None:
    def program() -> None:
        v = floats(1, 2, 3)
        with wp.Tape() as tape:
            for _ in range(5):
                wp.launch(damped, 3, [v])
        tape.backward(grads=ones(v))

    (f,) = notes(program)
    assert (f.kind, f.argument, f.launch, f.launches) == ("unneeded", "v", 0, 5)


def read_back(later: Any, *, grad: bool = True) -> list[Overwritten]:
    def program() -> None:
        c, d, a, b = floats(1, 2, 3), floats(4, 5, 6), zeros(grad=grad), zeros()
        with wp.Tape() as tape:
            wp.launch(made_and_used, 3, [c], [a, b])
            later(d, a)
        tape.backward(grads=ones(b))

    return notes(program)


@pytest.mark.parametrize(
    ("later", "name"),
    [
        (lambda d, a: wp.launch(set_to, 3, [d], [a]), "set_to"),
        (lambda d, a: a.zero_(), "zero_"),
        (lambda d, a: wp.copy(a, d), "copy"),
    ],
)
def test_what_a_launch_read_back_and_another_record_overwrote(later: Any, name: str) -> None:
    (f,) = read_back(later)
    assert (f.kind, f.kernel, f.argument, f.by.name) == ("unneeded", "made_and_used", "a", name)


def test_what_is_added_to_or_perhaps_overwritten_is_silent() -> None:
    assert read_back(lambda d, a: wp.launch(add, 3, [d], [a])) == []
    assert read_back(lambda d, a: wp.launch(set_where_large, 3, [d], [a])) == []
    assert read_back(lambda d, a: None) == []


def test_sums_in_place_are_silent() -> None:
    @wp.kernel
    def moved(v: F, x: F):
        i = wp.tid()
        x[i] = x[i] + 0.1 * v[i]
        v[i] += 1.0

    def program() -> None:
        v, x = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            for _ in range(3):
                wp.launch(moved, 3, [v, x])
        tape.backward(grads=ones(x))
        assert np.allclose(v.grad.numpy(), 0.3)

    assert notes(program) == []


@wp.kernel
def step_along(states: F, t: int):
    i = wp.tid()
    s = states[3 * t + i]
    states[3 * t + 3 + i] = s + 0.5 * wp.sin(s)


def along(at: int, restart: Any) -> list[Overwritten]:
    def program() -> None:
        start = np.concatenate([[0.3, -0.8, 1.1], np.zeros(12)])
        states = wp.array(start, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for t in range(4):
                wp.launch(step_along, 3, [states, t])
                if t == at:
                    restart(states)
        seeds = np.zeros(15, np.float32)
        seeds[12:] = 1.0
        after = restart if at == 4 else lambda states: None
        after(states)
        tape.backward(grads={states: seeds})

    return notes(program)


def test_a_trajectory_in_one_array_is_silent() -> None:
    assert along(-1, None) == []


@pytest.mark.parametrize(("at", "name"), [(2, "damped"), (4, "")])
def test_what_was_saved_is_told_of_by_who_overwrote_it(at: int, name: str) -> None:
    """On the tape, and after it by something else; not by the launch, which wrote elsewhere."""

    def restart(states: Any) -> None:
        if at == 4:
            states[3:6].fill_(2.0)
        else:
            wp.launch(damped, 3, [states[3:6]])

    (f,) = [f for f in along(at, restart) if f.kernel == "step_along"]
    assert (f.kind, f.argument, f.launch, f.launches) == ("restored", "states", 1, 1)
    assert (f.first, f.last, f.count) == ((3,), (5,), 3)
    assert (f.by.name, f.by.launch) == (name, 3 if name else -1)


@wp.kernel
def squared_in_place(w: F):
    i = wp.tid()
    w[i] = w[i] * w[i]


def test_a_gradient_that_was_dropped_since_is_no_trouble() -> None:
    def program() -> None:
        x, w, y = floats(1, 2, 3), floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(taken, 3, [x, y])
            wp.launch(squared_in_place, 3, [w])
        w.requires_grad = False
        tape.backward(grads=ones(y))
        assert x.grad.list() == [1, 1, 1]

    assert [f.variable for f in notes(program)] == ["x"]
