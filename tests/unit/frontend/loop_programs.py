"""Loops whose meaning in kernels is that of Python itself, run with doubles."""

# What kernels may do and linters do not like:
# ruff: noqa: B905, E713, RUF060

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import engine as wp
from engine.frontend import UserFunc

Array = wp.array(dtype=wp.float64)
TABLE = (0.5, 1.3, -0.7)
PAIRS = ((1, 2.5), (3, 0.25), (0, -1.5))


@wp.func
def for_else(a: Array, n: int):
    for i in range(n):
        if a[i] > 2.0:
            a[0] = 7.0
            break
    else:
        a[1] = 9.0
    for i in range(n):
        a[i] = a[i] * 2.0
        if a[i] < 0.0:
            continue
    else:
        a[2] = a[2] + 0.5


@wp.func
def while_else(a: Array, n: int):
    k = 0
    while k < n:
        k += 1
        if k == 4:
            break
    else:
        k = 10
    a[0] = wp.float64(k)
    while k > 2:
        k -= 2
    else:
        a[1] = wp.float64(k)


@wp.func
def values_of_both_ends(a: Array, n: int):
    for i in range(n):
        if a[i] < 0.0:
            found = i
            break
    else:
        found = -1
    a[0] = wp.float64(found)


@wp.func
def else_in_loops(a: Array, n: int):
    for i in range(n):
        for j in range(i):
            if a[j] * 2.0 > a[i]:
                break
        else:
            if i > 2:
                break
            a[i] = a[i] + 1.0
            continue
        a[i] = a[i] - 3.0
    else:
        a[5] = 100.0


@wp.func
def else_that_leaves(a: Array, n: int):
    while True:
        for x in (a[0], a[1], a[2]):
            if x > 3.0:
                break
        else:
            a[0] = a[0] + a[1] * 0.0 + 1.0
            if a[0] > 50.0:
                break
            continue
        break
    a[4] = a[0]


@wp.func
def else_of_a_tuple(a: Array, n: int):
    for k in (0, 1, 2):
        if k == n:
            break
        if a[k] < 0.0:
            continue
        a[k] = a[k] * 3.0
    else:
        a[3] = 4.0
    for _ in ():
        a[0] = 1.0
    else:
        a[4] = a[4] + 1.0


@wp.func
def else_that_never_runs(a: Array, n: int):
    k = n
    while True:
        k -= 1
        if k <= 0:
            break
    else:
        a[0] = 1.0
    for i in range(0):
        break
    else:
        a[1] = 2.0
    for i in range(3):
        if n > 2:
            return
    else:
        a[2] = 3.0


@wp.func
def numbered(a: Array, n: int):
    for i, c in enumerate(TABLE):
        a[i] = a[i] * c
    for i, c in enumerate((a[3], 2.0, a[4]), 3):
        if i == n:
            continue
        a[i] = c + wp.float64(i)
    for k, v in enumerate(TABLE, start=-2):
        a[5] = a[5] + v * wp.float64(k)
    for i, (k, v) in enumerate(PAIRS):
        a[k] = a[i] + v
    a[0] = a[0] + wp.float64(i)


@wp.func
def side_by_side(a: Array, n: int):
    for x, c in zip((a[0], a[1]), TABLE):
        a[2] = a[2] + x * c
        if n > 4:
            break
    for k, x, c in zip((3, 4, 5), TABLE, (a[0], 1.5, a[1])):
        a[k] = a[k] * x + c
    for p in zip(TABLE, (1, 0, 2)):
        a[p[1]] = p[0]
    for x, y in zip(TABLE, TABLE, strict=True):
        a[0] = a[0] + x * y
    for i, (x, y) in enumerate(zip(TABLE, reversed(TABLE))):
        a[i] = a[i] + x - y


@wp.func
def several_names(a: Array, n: int):
    for i, j in ((1, 2), (3, 4), (0, 5)):
        a[i] = a[i] + a[j]
    for k, v in PAIRS:
        a[k] = v * a[k + 1]
    for (i, j), c in (((0, 1), 0.5), ((2, 3), a[4])):
        a[i] = a[j] * c
    for first, *rest in ((1, a[1], 2.0), (2, a[3], a[0])):
        a[first] = rest[0] * rest[1]
    for [i, v] in reversed(PAIRS):
        a[i] = a[i] - v


@wp.func
def membership(a: Array, n: int):
    if n in (1, 3):
        a[0] = 1.0
    if n not in (1, 3, a[0]):
        a[1] = 1.0
    for i in range(n):
        if a[i] in (1.0, 0.25, -2.0, i):
            a[i] = 9.0
        elif i not in TABLE and not (i in (0, n)):
            a[i] = 8.0
    if 2 in (1, 2) and n not in ():
        a[3] = 3.0
    a[4] = 1.5 if 0 < n in (2, 5) else 2.5
    t = (a[0], n)
    if 3 in t:
        a[5] = 0.125
    if (n > 2) in (True, 7):
        a[2] = 0.5


def programs() -> dict[str, Callable[..., Any]]:
    """Every program of this module by name."""
    return {k: v for k, v in globals().items() if isinstance(v, UserFunc)}
