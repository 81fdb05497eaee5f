"""A kernel that writes down what its floats decide, and one that takes that path elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import ad
from engine.ir import interp
from tests.unit.ad.kernels import prepared

F = wp.array(dtype=float)


@wp.kernel
def smooth(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * float(i)


@wp.kernel
def decides(x: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(int(x[i])):
        if x[i] > 1.5 and k != 1:
            s += wp.floor(-x[i])
        s = wp.max(s + x[i], 0.5 * x[i])
    y[i] = wp.min(s, 4.0 * x[i])


@wp.kernel
def loops(x: F, y: F):
    i = wp.tid()
    t = float(0.0)
    while t < x[i]:
        t += 0.25 * x[i] + 0.25
    y[i] = t * x[i]


@wp.kernel
def vectors(x: F, y: F):
    i = wp.tid()
    v = wp.vec3(x[i], -2.0 * x[i], 0.3)
    y[i] = v[wp.argmax(v)] + wp.sign(v)[1] * x[i] * x[i]


X = np.float32([0.5, 1.0, 1.75, 3.25, -2.0])


def scouted(kernel: Any, x: Any) -> tuple[ad.Steering, Any, Any]:
    found = ad.steering(prepared(kernel))
    assert found is not None
    frames, y = [], np.zeros_like(x)
    for k in range(len(x)):  # a frame ends with where it began
        one = [np.roll(x, -k)[:1].copy(), np.zeros(1, np.float32)]
        slots = [int(v) for v in interp.run(found.scout, one, (1,)).slots]
        frames += [*slots, 0]
        y[k] = one[1][0]
    return found, ad.routes(np.array(frames, np.int64)), y


@pytest.mark.parametrize("kernel", [decides, loops, vectors])
def test_the_path_is_that_of_where_it_was_written(kernel: Any) -> None:
    found, (route, starts), y = scouted(kernel, X)
    assert len(starts) == len(X) and starts[0] == 0
    again = np.zeros_like(y)
    interp.run(found.steered, [X.copy(), again, route, starts], (len(X),))
    np.testing.assert_array_equal(again, y)
    # Beside them it goes on smoothly: second differences are those of a polynomial or less.
    away = [np.zeros_like(y, np.float64) for _ in range(3)]
    lifted = ad.lift(found.steered)
    for out, h in zip(away, (-0.3, 0.0, 0.3), strict=True):
        interp.run(lifted, [np.float64(X) + h, out, route, starts], (len(X),))
    np.testing.assert_allclose(away[1], y, rtol=1e-6)
    for k in range(len(X)):
        near = [np.zeros(len(X)) for _ in range(2)]
        for out, h in zip(near, (-1e-4, 1e-4), strict=True):
            interp.run(lifted, [np.float64(X) + h, out, route, starts], (len(X),))
        central = (near[1][k] - near[0][k]) / 2e-4
        assert central == pytest.approx((away[2][k] - away[0][k]) / 0.6, rel=1e-6, abs=1e-6)


def test_numbers_keep_their_sign() -> None:
    words = np.array([-1 - 5, -1 - ((1 << 62) - 7), 0, 2, -1 - 3, 2], np.int64)
    numbers, starts = ad.routes(words)
    assert numbers.tolist() == [5, -7, 3] and starts.tolist() == [0, 2, 2]


def test_a_kernel_whose_floats_decide_nothing_has_no_such_form() -> None:
    assert ad.steering(prepared(smooth)) is None
