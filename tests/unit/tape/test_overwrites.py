"""A backward pass reads the right contents of overwritten arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from tests.unit.tape.overwriting import (
    F,
    cube,
    floats,
    gather,
    overwritten,
    seeded,
    silent,
    times,
    twice,
)

WRITES = {
    "fill_": lambda x: x.fill_(7.0),
    "zero_": lambda x: x.zero_(),
    "assign": lambda x: x.assign([7, 8, 9]),
    "copy": lambda x: wp.copy(x, floats(7, 8, 9)),
    "copy without gradient": lambda x: wp.copy(x, floats(7, 8, 9, grad=False)),
    "items": lambda x: x.__setitem__(slice(None), 7.0),
    "view": lambda x: x[::-1].assign([7, 8, 9]),
    "one by one": lambda x: [x.__setitem__(i, 7.0 + i) for i in range(3)],
    "reinterpreted": lambda x: x.view(int).fill_(7),
    "launch": lambda x: wp.launch(twice, 3, [floats(7, 8, 9)], [x]),
    "in place": lambda x: wp.launch(twice, 3, [x], [x]),
}


@pytest.mark.parametrize("snapshots", ["lazy", "eager"])
@pytest.mark.parametrize("how", WRITES)
def test_what_the_tape_overwrote_is_restored(how: str, snapshots: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(config, "tape_snapshots", snapshots)
    tape, x, y = overwritten(then=WRITES[how])
    after = x.list()
    assert after != [1, 2, 3]
    with silent():
        for _ in range(3):
            tape.zero()
            tape.backward(grads=seeded(y))
            assert x.grad.list() == [3, 12, 27]
    assert x.list() == after


@pytest.mark.parametrize("back", ["copy", "launch", "items", "part"])
def test_a_value_that_goes_round(back: str) -> None:
    """x becomes x**27 by three rounds through the same two arrays; half of it in "part"."""
    x, y = floats(1.1, 0.9), floats(0, 0)
    with wp.Tape() as tape:
        for _ in range(3):
            wp.launch(cube, 2, [x], [y])
            if back == "copy":
                wp.copy(x, y)
            elif back == "launch":
                wp.launch(times, 2, [y, floats(1, 1)], [x])
            elif back == "items":
                x[:] = y
            else:
                wp.copy(x[:1], y[:1])
    tape.backward(grads=seeded(x))
    expected = 27 * np.array([1.1, 0.9]) ** 26
    if back == "part":
        expected[1] = 1.0  # only the first went round
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)


def test_indices_without_a_gradient() -> None:
    x, at, y, z = floats(1, 2, 3), wp.array([0, 1, 2], dtype=int), floats(0, 0, 0), floats(0, 0, 0)
    with wp.Tape() as tape:
        wp.launch(gather, 3, [x, at], [y])
        at.assign([2, 2, 2])
        wp.launch(gather, 3, [x, at], [z])
    tape.backward(grads={y: np.ones(3), z: np.ones(3)})
    assert x.grad.list() == [2, 4, 6 + 3 * 6]
    assert at.list() == [2, 2, 2]


@wp.struct
class Body:
    mass: float
    speed: wp.vec2


@wp.kernel
def energy(b: wp.array(dtype=Body), e: F):
    i = wp.tid()
    e[i] = b[i].mass * wp.dot(b[i].speed, b[i].speed)


@wp.kernel
def stop(b: wp.array(dtype=Body)):
    i = wp.tid()
    b[i].speed = wp.vec2(0.0, 0.0)


@pytest.mark.host("arrays of NumPy that are views")
def test_fields_of_structs() -> None:
    """One field is overwritten by the tape; the other one, which lies beside it, is not."""
    records = np.array([(2.0, (3.0, 4.0))], dtype=Body.numpy_dtype())
    b, e = wp.array(records, dtype=Body, requires_grad=True), floats(0)
    with wp.Tape() as tape:
        wp.launch(energy, 1, [b], [e])
        wp.launch(stop, 1, [b])
    b.numpy()["mass"] = 5.0
    with silent():
        tape.backward(grads=seeded(e))
    assert b.grad.numpy()["mass"] == 25.0
    assert b.grad.numpy()["speed"].tolist() == [[30.0, 40.0]]  # at the present mass


# ---- what anything else wrote


@pytest.mark.parametrize(
    "write", [lambda x, v: x.assign(v), lambda x, v: x.numpy().put([0, 1, 2], v)]
)
@pytest.mark.host("arrays of NumPy that are views", only=("<lambda>1",))
def test_what_came_from_elsewhere_is_read_as_it_is(write: Any) -> None:
    x, y = floats(1, 2, 3), floats(0, 0, 0)
    with wp.Tape() as tape:
        wp.launch(cube, 3, [x], [y])
    for v in ([2, 3, 4], [1, 2, 3], [5, 6, 7]):
        write(x, v)
        tape.zero()
        with silent():
            tape.backward(grads=seeded(y))
        assert x.grad.list() == [3.0 * a * a for a in v]
    assert tape.memory.inputs <= 2 * 12


@pytest.mark.host("arrays of NumPy that are views")
def test_each_number_counts_by_itself() -> None:
    """The tape overwrote the first one only; the others follow the present."""
    x, y = floats(1, 2, 3), floats(0, 0, 0)
    with wp.Tape() as tape:
        wp.launch(cube, 3, [x], [y])
        x[:1].fill_(9.0)
    x.numpy()[1:] = [4, 5]
    with silent():  # the first one belongs to no other value of them
        tape.backward(grads=seeded(y))
    assert x.grad.list() == [3, 48, 75]


EQUAL = {
    "fill_": lambda x: x.fill_(2.0),
    "assign": lambda x: x.assign([2, 2, 2]),
    "copy": lambda x: wp.copy(x, floats(2, 2, 2)),
    "parts": lambda x: (wp.copy(x[:2], floats(2, 2)), x[2:].fill_(2.0)),
    "backwards": lambda x: x[::-1].assign([2, 2, 2]),
    "put back": lambda x: (x.zero_(), x.fill_(2.0)),
    "launch": lambda x: wp.launch(twice, 3, [floats(1, 1, 1)], [x]),
    "larger launch": lambda x: wp.launch(some_of, 5, [floats(2, 2, 2), 3, x]),
}


@pytest.mark.parametrize("how", EQUAL)
def test_what_the_tape_wrote_counts_although_it_is_equal(how: str) -> None:
    """Each write stores what is there already; something else changes it later."""
    x, y = floats(2, 2, 2), floats(0, 0, 0)
    with wp.Tape() as tape:
        wp.launch(cube, 3, [x], [y])
        EQUAL[how](x)
    x.assign([4, 5, 6])
    with silent():
        tape.backward(grads=seeded(y))
    stored = how != "larger launch"  # what a thread stores if it likes is told by what changed
    assert x.grad.list() == ([12, 12, 12] if stored else [48, 75, 108])


@wp.kernel
def some_of(x: F, n: int, y: F):
    i = wp.tid()
    if i < n:
        y[i] = x[i]


@wp.kernel
def turned(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[j, i] = x[i, j]


@wp.kernel
def if_positive(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.0:
        y[i] = x[i]


@wp.kernel
def shifted(x: F, y: F):
    i = wp.tid()
    y[i + 1] = x[i]


@wp.kernel
def first_alone(x: F, y: F):
    y[0] = x[wp.tid()]


@wp.kernel
def left_early(x: F, y: F):
    i = wp.tid()
    if x[i] < 0.0:
        return
    y[i] = x[i]


@wp.struct
class Two:
    a: float
    b: float


@wp.kernel
def one_field(x: F, y: wp.array(dtype=Two)):
    i = wp.tid()
    y[i].a = x[i]


def fills(kernel: Any, dim: Any, *args: Any) -> bool:
    with wp.Tape() as tape:
        wp.launch(kernel, dim, list(args))
    (record,) = tape.records
    return record.fills(args[-1])


def test_launches_that_store_every_element() -> None:
    x, y = floats(1, 2, 3), floats(0, 0, 0)
    assert fills(twice, 3, x, y) and fills(twice, (3, 2), x, y)
    assert not fills(twice, 2, x, y) and not fills(twice, 0, x, y)
    a, b = wp.zeros((2, 3), dtype=float), wp.zeros((3, 2), dtype=float)
    assert fills(turned, (2, 3), a, b) and not fills(turned, (2, 2), a, b)
    for k in (if_positive, left_early):
        assert not fills(k, 3, x, y)
    assert not fills(shifted, 2, x, y) and not fills(first_alone, 3, x, y)
    assert not fills(one_field, 3, x, wp.zeros(3, dtype=Two))
    assert not fills(squares, 3, x, y)


@pytest.mark.host("arrays of NumPy that are views")
def test_recorded_once_and_stepped_like_an_optimizer_does() -> None:
    """The loss is cleared and computed again by launches that are not on the tape."""
    x, loss = floats(1, 2, 3), floats(0)
    tape = wp.Tape()
    with tape:
        wp.launch(squares, 3, [x, loss])
    view = x.numpy()
    for _ in range(20):
        tape.zero()
        with silent():
            tape.backward(loss)
        np.testing.assert_array_equal(x.grad.numpy(), 2 * view)
        view -= 0.1 * x.grad.numpy()
        loss.zero_()
        wp.launch(squares, 3, [x, loss])
    assert np.abs(view).max() < 0.1


@wp.kernel
def squares(x: F, loss: F):
    wp.atomic_add(loss, 0, x[wp.tid()] * x[wp.tid()])


def test_another_tape_is_something_else() -> None:
    x, y, z = floats(1, 2, 3), floats(0, 0, 0), floats(0, 0, 0)
    one, other = wp.Tape(), wp.Tape()
    with one:
        wp.launch(cube, 3, [x], [y])
    with other:
        wp.launch(cube, 3, [x], [z])
        x.fill_(2.0)
    one.backward(grads=seeded(y))
    assert x.grad.list() == [12, 12, 12]
    x.grad.zero_()
    other.backward(grads=seeded(z))
    assert x.grad.list() == [3, 12, 27]
    with one:
        x.fill_(5.0)
    one.zero()
    one.backward(grads=seeded(y))
    assert x.grad.list() == [3, 12, 27]


def test_a_tape_forgets_with_reset() -> None:
    tape, x, y = overwritten(then=lambda x: x.fill_(7.0))
    tape.reset()
    assert tape.memory.inputs == 0
    with tape:
        wp.launch(cube, 3, [x], [y])
    x.fill_(1.0)
    with silent():
        tape.backward(grads=seeded(y))
    assert x.grad.list() == [3, 3, 3]


def test_recorded_afterwards() -> None:
    x, y, z = floats(1, 2, 3), floats(0, 0, 0), floats(4, 5, 6)
    tape = wp.Tape()
    with tape:
        wp.launch(cube, 3, [x], [y])
    wp.launch(twice, 3, [z], [x])
    tape.record_launch(twice, 3, inputs=[z], outputs=[x])
    tape.backward(grads=seeded(y))
    assert x.grad.list() == [3, 12, 27]


def test_gradients_that_are_asked_for_late() -> None:
    """The output gets its gradient from the seeds of the backward pass."""
    x, y = floats(1, 2, 3), floats(0, 0, 0, grad=False)
    with wp.Tape() as tape:
        wp.launch(cube, 3, [x], [y])
        x.fill_(7.0)
    tape.backward(grads=seeded(y))
    assert x.grad.list() == [3, 12, 27]


# ---- functions of the user


def test_a_recorded_function_finds_what_there_was() -> None:
    x, y = floats(1, 2, 3), floats(0, 0, 0)
    tape, seen = wp.Tape(), []

    def backward() -> None:
        seen.append(x.list())
        x.grad.assign(x.grad.numpy() + 3 * x.numpy() ** 2 * y.grad.numpy())
        if len(seen) > 1:
            raise ValueError("on purpose")

    with tape:
        y.assign(x.numpy() ** 3)
        tape.record_func(backward, [x, y])
        x.fill_(7.0)
    tape.backward(grads=seeded(y))
    assert (seen, x.list(), x.grad.list()) == ([[1, 2, 3]], [7, 7, 7], [3, 12, 27])
    with pytest.raises(ValueError, match="on purpose"):
        tape.backward(grads=seeded(y))
    assert (seen[1], x.list()) == ([1, 2, 3], [7, 7, 7])
