"""The warning of values of two times: restored and journaled ones beside present ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from tests.unit.tape.overwriting import F, cube, floats, seeded, silent, times, twice


@wp.kernel
def step(x: F, p: F):
    i = wp.tid()
    x[i] = x[i] * p[i]


@wp.kernel
def scale(p: F, x: F):
    i = wp.tid()
    x[i] *= p[i]


@wp.kernel
def within(p: F, y: F):
    i = wp.tid()
    y[i] = p[i]
    y[i] = y[i] * y[i] * p[i]


@wp.kernel
def branches(p: F, y: F):
    i = wp.tid()
    if p[i] > 0.0:
        y[i] = y[i] * y[i] * p[i]
    else:
        y[i] = y[i] * p[i]


@wp.kernel
def from_left(x: F, p: F):
    i = wp.tid()
    if i > 0:
        x[i] = x[i] * x[i - 1] * p[i]


@wp.kernel
def count(p: F, total: F, y: F):
    i = wp.tid()
    y[i] = wp.atomic_add(total, 0, p[i]) * p[i]


@wp.kernel
def through(at: wp.array(dtype=int), x: F, p: F):
    i = wp.tid()
    x[at[i]] = x[at[i]] * p[i]


class Loop:
    """p is a leaf, x0 the start of a state x that each pass changes in place."""

    def __init__(self, body: Callable[[Loop], Any]) -> None:
        self.p, self.q = floats(0.5, 1.5, -2.0), floats(1.0, 2.0, 3.0)
        self.x0, self.x, self.one = floats(1.0, 2.0, 3.0), floats(0, 0, 0), floats(0)
        self.at = wp.array([0, 1, 2], dtype=int)
        self.body, self.tape = body, wp.Tape()
        with self.tape:
            self.forward()

    def forward(self) -> None:
        wp.copy(self.x, self.x0)
        self.one.zero_()
        self.body(self)

    def told(self) -> list[str]:
        self.tape.zero()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            self.tape.backward(grads=seeded(self.x))
        return [str(w.message) for w in found]


def repeated(s: Loop) -> None:
    for _ in range(3):
        wp.launch(step, 3, [s.x, s.p])


MIXED = {
    "in place": repeated,
    "update": lambda s: [wp.launch(scale, 3, [s.p, s.x]) for _ in range(2)],
    "aliasing arguments": lambda s: [wp.launch(times, 3, [s.x, s.p, s.x]) for _ in range(2)],
    "within a launch": lambda s: wp.launch(within, 3, [s.p, s.x]),
    "branches": lambda s: wp.launch(branches, 3, [s.p, s.x]),
    "of other threads": lambda s: wp.launch(from_left, 3, [s.x, s.p]),
    "result of an atomic": lambda s: wp.launch(count, 3, [s.p, s.one, s.x]),
}


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("how", MIXED)
def test_journaled_values_of_another_time_are_told(how: str, again: bool) -> None:
    s = Loop(MIXED[how])
    assert not s.told()
    s.p.assign(s.p.numpy() + 0.5)
    if again:
        s.forward()
    (said,) = s.told()
    for words in ("of kernel", "was changed outside", "overwrites values", "mixes both", "again"):
        assert words in said
    s.p.assign([0.5, 1.5, -2.0])
    if again:
        s.forward()
    assert not s.told()


def test_a_changed_index_of_a_journaled_value() -> None:
    s = Loop(lambda s: wp.launch(through, 3, [s.at, s.x, s.p]))
    assert not s.told()
    s.at.assign([2, 1, 0])
    assert s.told()


CHANGES = {
    "nothing": lambda s: None,
    "forward again": lambda s: s.forward(),
    "put back": lambda s: (s.p.zero_(), s.p.assign([0.5, 1.5, -2.0]), s.forward()),
    "through a view": lambda s: s.p.numpy().__setitem__(0, 0.5),
    "what nothing reads": lambda s: s.q.fill_(7.0),
    "gradients": lambda s: (s.p.grad.fill_(3.0), s.x.grad.zero_()),
    "the state": lambda s: s.x.fill_(4.0),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("how", MIXED)
def test_journaled_values_of_one_time_are_no_alarm(how: str, change: str) -> None:
    s = Loop(MIXED[how])
    CHANGES[change](s)
    assert not s.told()


@pytest.mark.parametrize("kernel", ["step", "scale", "times"])
def test_one_launch_that_journals_what_does_not_depend_on_the_change(kernel: str) -> None:
    """Its adjoint reads x as it was, which came from x0 alone, and p as it is: right at both."""
    args = {"step": lambda s: [step, 3, [s.x, s.p]], "scale": lambda s: [scale, 3, [s.p, s.x]],
            "times": lambda s: [times, 3, [s.x, s.p, s.x]]}  # fmt: skip
    s = Loop(lambda s: wp.launch(*args[kernel](s)))
    s.p.assign([2, 3, 4])
    assert not s.told()
    assert (s.p.grad.list(), s.x0.grad.list()) == ([1, 2, 3], [2, 3, 4])
    s.forward()
    assert not s.told()
    s.x0.fill_(5.0)
    assert s.told()


def test_a_launch_whose_adjoint_reads_no_journal() -> None:
    s = Loop(lambda s: [wp.launch(step, 3, [s.x, s.p]) for _ in range(2)])
    s.p.fill_(3.0)
    assert s.told()
    x, p, y = floats(1, 2, 3), floats(4, 5, 6), floats(0, 0, 0)
    with wp.Tape() as tape:
        wp.launch(cube, 3, [p], [x])
        wp.launch(twice, 3, [x], [x])  # in place, and linear
        wp.launch(times, 3, [x, p], [y])
    p.fill_(1.0)
    with silent():
        tape.backward(grads=seeded(y))


def test_present_watches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "overwrites", "present")
    s = Loop(repeated)
    s.p.fill_(3.0)
    assert not s.told()
    assert s.tape.memory.inputs == 0


# ---- restored values


def test_a_restored_value_that_is_the_changed_array() -> None:
    """All that is read of x is restored: the gradient belongs to the operations that ran."""
    x, y, z = floats(1, 2, 3), floats(0, 0, 0), floats(0, 0, 0)
    with wp.Tape() as tape:
        wp.launch(cube, 3, [x], [y])
        wp.copy(x, floats(7, 8, 9))
        wp.launch(twice, 3, [y], [z])
    x.assign([4, 5, 6])
    with silent():
        tape.backward(grads=seeded(z))
    assert x.grad.list() == [6, 24, 54]


def test_an_array_that_is_used_for_something_else_afterwards() -> None:
    """The same with values that were computed from it, and are restored or as they were."""
    x, y, z, end = (floats(1, 2, 3) for _ in range(4))
    with wp.Tape() as tape:
        wp.launch(cube, 3, [x], [y])
        wp.launch(cube, 3, [y], [z])
        wp.launch(cube, 3, [z], [end])
        x.zero_()
        y.zero_()
    x.assign([4, 5, 6])
    with silent():
        tape.backward(grads=seeded(end))
    np.testing.assert_allclose(x.grad.numpy(), 27 * np.array([1.0, 2, 3]) ** 26, rtol=1e-5)
    z.fill_(2.0)  # present, and of no time of x
    with pytest.warns(UserWarning, match="mixes both"):
        tape.backward(grads=seeded(end))


@pytest.mark.parametrize(("where", "told"), [(3, False), (0, False)])
def test_parts_of_one_array(where: int, told: bool) -> None:
    """The tape overwrote the first two; another one changes, or one of these afterwards."""
    x, y = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    with wp.Tape() as tape:
        wp.launch(cube, 4, [x], [y])
        wp.copy(x[0:2], floats(8, 9))
    x[where : where + 1].fill_(5.0)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        tape.backward(grads=seeded(y))
    assert bool(found) == told
    assert x.grad.list() == [3, 12, 27, 75 if where == 3 else 48]


def test_a_gradient_that_is_all_of_what_ran_is_told_as_such() -> None:
    """The tape leaves x as it is, so who changes x wants to know."""
    x, y, z = floats(1, 2, 3), floats(0, 0, 0), floats(0, 0, 0)
    with wp.Tape() as tape:
        wp.copy(y, x)
        wp.launch(cube, 3, [y], [z])
        y.zero_()
    x.fill_(3.0)
    with pytest.warns(UserWarning, match="the gradient belongs to the operations that ran"):
        tape.backward(grads=seeded(z))
    assert x.grad.list() == [3, 12, 27]


@pytest.mark.parametrize("adjoint", [True, False])
def test_a_value_that_no_gradient_reaches(adjoint: bool) -> None:
    """What the launches make of the state is stored over before anything reads it."""

    def body(s: Loop) -> None:
        repeated(s)
        wp.launch(twice if adjoint else twice_without_adjoint, 3, [s.q, s.x])

    s = Loop(body)
    s.p.fill_(3.0)
    s.forward()
    assert bool(s.told()) == (not adjoint)


@wp.kernel(enable_backward=False)
def twice_without_adjoint(x: F, y: F):
    i = wp.tid()
    y[i] = 2.0 * x[i]
