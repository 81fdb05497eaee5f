"""`target += f(target)` where `f` changes the target: read, call, write, for every kind of target.

The oracle is a function of Python numbers: what the target was, and what the call gives.
"""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import gradcheck

Doubles = wp.array(dtype=wp.float64)


@wp.struct
class Box:
    value: wp.float64
    v: wp.vec2d


@wp.struct
class Holder:
    data: Doubles


@wp.func
def grown(x: wp.ref[wp.float64], by: wp.float64) -> wp.float64:
    x = x * x + by
    return x * wp.float64(3.0)


@wp.func
def filled(loc: Doubles, by: wp.float64):
    loc[0] = loc[0] * loc[0] + by
    return loc[0] * 3.0


@wp.func
def stored(h: Holder, by: wp.float64):
    h.data[0] = h.data[0] * h.data[0] + by
    return h.data[0] * 3.0


def result(old: float, by: float) -> float:
    """What `grown`, `filled` and `stored` give for a target that was `old`."""
    return (old * old + by) * 3.0


@wp.kernel
def updates(x: Doubles, boxes: wp.array(dtype=Box), h: Holder, y: Doubles):
    by = x[1]
    s = Box()
    s.value = x[0]
    s.value *= grown(s.value, by)
    y[0] = s.value
    s.value = x[0]
    s.value += grown(s.value, by)
    y[1] = s.value
    s.v = wp.vec2d(x[0], x[1])
    s.v[0] *= grown(s.v[0], by)
    y[2] = s.v[0]
    v = wp.vec2d(x[0], x[1])
    v.x -= grown(v.x, by)
    y[3] = v[0]
    v = wp.vec2d(x[0], x[1])
    v[1] *= grown(v[0], by)
    y[4] = v[1]
    y[5] = x[0]
    y[5] += grown(y[5], by)
    boxes[0].value = x[0]
    boxes[0].value -= grown(boxes[0].value, by)
    y[6] = boxes[0].value
    boxes[0].v = wp.vec2d(x[0], x[1])
    boxes[0].v[0] += grown(boxes[0].v[0], by)
    y[7] = boxes[0].v[0]
    loc = wp.zeros(shape=(2,), dtype=wp.float64)
    loc[0] = x[0]
    loc[0] *= filled(loc, by)
    y[8] = loc[0]
    h.data[0] = x[0]
    h.data[0] += stored(h, by)
    y[9] = h.data[0]
    one = x[0]
    one += grown(one, by)
    y[10] = one
    pair = wp.zeros(shape=(2, 2), dtype=wp.float64)
    row = pair[0] if x[0] < 100.0 else pair[1]
    row[0] = x[0]
    row[0] += filled(row, by)
    y[11] = row[0]


def expected(a: float, by: float) -> list[float]:
    got = result(a, by)
    return [a * got, a + got, a * got, a - got, by * got, a + got, a - got, a + got, a * got,
            a + got, a + got, a + got]  # fmt: skip


def arguments() -> tuple[wp.array, list[object]]:
    x = wp.array([0.75, 1.5], dtype=wp.float64, requires_grad=True)
    boxes = wp.zeros(1, dtype=Box, requires_grad=True)
    h = Holder()
    h.data = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    return x, [x, boxes, h, wp.zeros(12, dtype=wp.float64, requires_grad=True)]


def test_the_target_is_read_first() -> None:
    _, args = arguments()
    wp.launch(updates, dim=1, inputs=args)
    np.testing.assert_array_equal(args[-1].numpy(), expected(0.75, 1.5))


def test_gradients() -> None:
    x, args = arguments()
    with wp.Tape() as tape:
        wp.launch(updates, dim=1, inputs=args)
    weights = np.linspace(0.5, 1.5, 12)
    tape.backward(grads={args[-1]: wp.array(weights, dtype=wp.float64)})
    h = 1e-6
    slopes = [
        (np.dot(weights, expected(0.75 + h * (k == 0), 1.5 + h * (k == 1)))
         - np.dot(weights, expected(0.75 - h * (k == 0), 1.5 - h * (k == 1)))) / (2 * h)
        for k in range(2)
    ]  # fmt: skip
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-8)
    assert gradcheck(updates, 1, args)


@pytest.mark.parametrize("n", [1, 7])
def test_updates_of_other_arrays_stay_atomic(n: int) -> None:
    """All threads add to one element, though the right side writes another array."""

    @wp.func
    def counted(z: wp.array(dtype=int), i: int):
        wp.atomic_add(z, 0, 1)
        return wp.float64(i)

    @wp.kernel
    def total(z: wp.array(dtype=int), y: Doubles):
        i = wp.tid()
        y[0] += counted(z, i)

    z = wp.zeros(1, dtype=int)
    y = wp.zeros(1, dtype=wp.float64)
    wp.launch(total, dim=n, inputs=[z, y])
    assert z.numpy()[0] == n
    assert y.numpy()[0] == n * (n - 1) / 2
