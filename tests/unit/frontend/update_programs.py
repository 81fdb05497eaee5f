"""Augmented assignments whose right side changes the target, as Python has them, with doubles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import engine as wp
from engine.frontend import UserFunc

Array = wp.array(dtype=wp.float64)


@wp.func
def grown(a: Array, k: int, by: float):
    a[k] = a[k] * 2.0 + wp.float64(by)
    return a[k] + wp.float64(0.5)


@wp.func
def deeper(a: Array, k: int):
    return grown(a, k, 0.25) * a[k]


@wp.func
def reads(a: Array, k: int):
    return a[k] * a[0]


@wp.func
def every_operator(a: Array, n: int):
    a[0] += grown(a, 0, 1.0)
    a[1] -= grown(a, 1, 1.0)
    a[2] *= grown(a, 2, 1.0)
    a[3] /= grown(a, 3, 1.5) + 40.0
    a[4] **= wp.float64(2.0) + grown(a, 4, 1.0) * 0.0
    a[5] += deeper(a, 5)


@wp.func
def other_elements(a: Array, n: int):
    a[0] += grown(a, 1, 1.0)
    a[2] *= grown(a, 0, 1.0)
    a[n - 1] += grown(a, 0, 0.5) * reads(a, n - 1)
    a[1] += reads(a, 1)


@wp.func
def in_branches_and_loops(a: Array, n: int):
    for i in range(n):
        if a[i] > 0.5:
            a[i] += grown(a, i, 0.5)
        else:
            a[0] -= grown(a, i, 0.25) if i > 1 else a[i]
    k = 0
    while k < n:
        a[k] += grown(a, (k + 1) % 6, 0.125)
        k += 1


@wp.func
def nested_updates(a: Array, n: int):
    a[0] += grown(a, 0, 1.0) + grown(a, 0, 2.0) * grown(a, 1, 1.0)
    a[1] += grown(a, 0, 1.0) if grown(a, 1, 1.0) > 2.0 else grown(a, 2, 1.0)


@wp.func
def through_views(a: Array, n: int):
    b = a[1:4]
    b[0] += grown(a, 1, 1.0)
    a[2] += grown(b, 1, 1.0)
    b[2] *= grown(b, 2, 0.5)


@wp.func
def chosen_arrays(a: Array, n: int):
    b = a[1:4] if n > 2 else a[2:5]
    b[0] += grown(a, 1, 1.0)
    b[1] *= grown(b, 1, 1.0)
    b[2] -= reads(b, 1)
    if n > 4:
        b = a
    b[0] += grown(b, 0, 0.5)
    b[1] *= grown(a, 1, 0.5)


@wp.func
def indices_first(a: Array, n: int):
    k = 0
    a[k] += wp.float64(k := n - 1) + 1.0
    a[k] *= wp.float64(k := 1) + 1.0
    a[k] = a[k] + 1.0


def programs() -> dict[str, Callable[..., Any]]:
    """Every program of this module that takes an array and a number, by name."""
    helpers = ("grown", "deeper", "reads")
    return {k: v for k, v in globals().items() if isinstance(v, UserFunc) and k not in helpers}
