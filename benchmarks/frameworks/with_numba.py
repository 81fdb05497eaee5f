"""Numba, on all cores where a loop can be parallel. It has no derivatives: forward passes alone."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numba
import numpy as np
from numba import prange

from benchmarks.case import Ready
from benchmarks.data import Springs, edges, random_springs, springs, values
from benchmarks.frameworks import Rows


def tiny(x: Any, y: Any) -> None:
    y[0] = x[0] * x[0]


def saxpy(a: Any, x: Any, y: Any, z: Any) -> None:
    for i in prange(x.size):
        z[i] = a * x[i] + y[i]


def elementwise(x: Any, y: Any) -> None:
    for i in prange(x.size):
        v = x[i]
        y[i] = math.sin(v) * math.exp(-v * v) + math.sqrt(v * v + np.float32(1.0))


def nbody(x: Any, mass: Any, a: Any) -> None:
    soft = np.float32(0.01)
    for i in prange(x.shape[0]):
        p = q = r = np.float32(0.0)
        for j in range(x.shape[0]):
            u, v, w = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            s = u * u + v * v + w * w + soft
            f = mass[j] / (s * math.sqrt(s))
            p += u * f
            q += v * f
            r += w * f
        a[i, 0], a[i, 1], a[i, 2] = p, q, r


def stencil(u: Any, out: Any) -> None:
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            out[i, j] = u[i, j] + np.float32(0.1) * (around - np.float32(4.0) * u[i, j])


def pull(x: Any, first: Any, second: Any, force: Any) -> None:
    for s in range(first.size):  # no atomics on the CPU: one after the other
        i, j = first[s], second[s]
        u, v, w = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
        length = math.sqrt(u * u + v * v + w * w)
        f = np.float32(10.0) * (length - np.float32(0.5)) / length
        force[i, 0] += u * f
        force[i, 1] += v * f
        force[i, 2] += w * f
        force[j, 0] -= u * f
        force[j, 1] -= v * f
        force[j, 2] -= w * f


def loop(x: Any, steps: Any, y: Any) -> None:
    for i in prange(x.size):
        v = x[i]
        for _ in range(steps):
            v += np.float32(0.1) * math.sin(v)
        y[i] = v


def cross(a: Any, b: Any, n: Any) -> None:
    for i in prange(a.shape[0]):
        u = a[i, 1] * b[i, 2] - a[i, 2] * b[i, 1]
        v = a[i, 2] * b[i, 0] - a[i, 0] * b[i, 2]
        w = a[i, 0] * b[i, 1] - a[i, 1] * b[i, 0]
        length = math.sqrt(u * u + v * v + w * w)
        n[i, 0], n[i, 1], n[i, 2] = u / length, v / length, w / length


def total(x: Any) -> Any:
    s = np.float32(0.0)
    for i in prange(x.size):
        s += x[i] * x[i]
    return s


def highest(x: Any) -> Any:
    s = np.float32(-1000.0)
    for i in prange(x.size):
        s = max(s, math.sin(x[i]) * math.exp(x[i]) + math.sqrt(x[i] + np.float32(2.0)))
    return s


def _ready(f: Any, given: list[Any], out: Any = None, parallel: bool = True) -> Ready:
    """A compiled loop over arrays; `out` is the last argument, or what is returned if None."""
    compiled = numba.njit(f, parallel=parallel, error_model="numpy")
    arguments = given if out is None else [*given, out]
    found = compiled(*arguments)
    result = np.atleast_1d(found if out is None else out).copy()
    return Ready(lambda: compiled(*arguments), None, [result])


def _zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def _tiny(size: int) -> Ready:
    return _ready(tiny, [np.full(1, 3.0, np.float32)], _zeros(1), parallel=False)


def _saxpy(size: int) -> Ready:
    return _ready(saxpy, [np.float32(2.5), values(size), values(size, 2)], _zeros(size))


def _elementwise(size: int) -> Ready:
    return _ready(elementwise, [values(size)], _zeros(size))


def _nbody(size: int) -> Ready:
    x = values(3 * size).reshape(-1, 3)
    return _ready(nbody, [x, values(size, 2) + np.float32(1.5)], _zeros(size, 3))


def _stencil(size: int) -> Ready:
    side = round(size**0.5)
    return _ready(stencil, [values(side * side).reshape(side, side)], _zeros(side, side))


def _springs(size: int, drawn: Springs = springs) -> Ready:
    particles, first, second = drawn(size)
    x = values(3 * particles).reshape(-1, 3)
    return _ready(pull, [x, first, second], _zeros(particles, 3), parallel=False)


def _loop(size: int) -> Ready:
    return _ready(loop, [values(size), 16], _zeros(size))


def _cross(size: int) -> Ready:
    return _ready(cross, list(edges(size)), _zeros(size, 3))


def rows() -> Rows:
    """What Numba can do."""
    return {
        "launch": _tiny, "saxpy": _saxpy, "elementwise": _elementwise, "nbody": _nbody,
        "stencil": _stencil, "springs": _springs,
        "random_springs": partial(_springs, drawn=random_springs), "loop": _loop, "cross": _cross,
        "sum": lambda size: _ready(total, [values(size)]),
        "maximum": lambda size: _ready(highest, [values(size)]),
    }  # fmt: skip
