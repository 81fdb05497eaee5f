"""Names that are computed of literals alone take the type that is asked of them, in loops too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp


def middle(x: Any, y: Any, t: Any) -> None:
    lo = 0.1
    hi = 2.3
    for _k in range(5):
        mid = (lo + hi) * 0.5
        lo = mid
    y[0] = lo * x[0]


def cast(x: Any, y: Any, t: Any) -> None:
    lo = 0.1
    hi = 2.3
    for _k in range(5):
        mid = (lo + hi) * 0.5
        lo = mid
    y[0] = t(lo) * x[0]


def bisection(x: Any, y: Any, t: Any) -> None:
    lo = 0.1
    hi = 2.3
    k = 0
    while k < 30:
        mid = (lo + hi) * 0.5
        if mid * mid > x[0]:
            hi = mid
        else:
            lo = mid
        k += 1
    y[0] = lo


def of_a_part(x: Any, y: Any, t: Any) -> None:
    lo = 0.1
    for _k in range(3):
        part = lo * 0.3
        lo = lo + 0.7
        y[0] = t(part) * x[0]


def other_than_literals(x: Any, y: Any, t: Any) -> None:
    lo = x[0]
    for _k in range(3):
        mid = (lo + x[0]) * t(0.5)
        lo = mid
    y[0] = lo


@pytest.mark.parametrize("body", [middle, cast, bisection, of_a_part, other_than_literals])
@pytest.mark.parametrize("t", [wp.float32, wp.float64])
def test_names_of_literals_are_exact(body: Any, t: Any) -> None:
    x, y = wp.array([1.375], dtype=t), wp.zeros(1, dtype=t)
    function = wp.func(body)

    @wp.kernel
    def caller(x: wp.array(dtype=t), y: wp.array(dtype=t)):  # type: ignore[valid-type]
        function(x, y, t)

    wp.launch(caller, 1, inputs=[x], outputs=[y])
    host = np.zeros(1)
    body(np.array([1.375]), host, float)
    if t == wp.float64:
        assert y.numpy()[0] == host[0]
    else:
        assert y.numpy()[0] == pytest.approx(host[0], rel=1e-6)
