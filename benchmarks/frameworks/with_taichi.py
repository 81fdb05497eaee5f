"""Taichi on the CPU, all cores. Backward passes are those of its kernels, into gradient arrays."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import taichi as ti

from benchmarks.case import Ready
from benchmarks.data import Springs, edges, random_springs, springs, values
from benchmarks.frameworks import Rows
from benchmarks.frameworks import taichi_kernels as kernels

VECTOR = ti.types.vector(3, ti.f32)


def _array(a: Any, dtype: Any = None, grad: bool = True) -> Any:
    """A Taichi array with these values; rows of three are vectors."""
    vectors = a.ndim == 2 and a.shape[1] == 3
    dtype = dtype or (VECTOR if vectors else ti.f32)
    made = ti.ndarray(dtype, a.shape[:1] if vectors else a.shape, needs_grad=grad)
    made.from_numpy(a)
    return made


def _ready(kernel: Any, given: list[Any], out: Any, wrt: list[Any], seed: Any = None) -> Ready:
    """A kernel whose last argument is what it writes."""
    kept = np.ones(out.to_numpy().shape, np.float32) if seed is None else seed
    kernel(*given, out)
    outputs = [out.to_numpy().copy()]

    def forward() -> None:
        kernel(*given, out)
        ti.sync()

    def backward() -> None:
        kernel.grad(*given, out)
        ti.sync()

    for a in wrt:
        a.grad.fill(0.0)
    out.grad.from_numpy(kept)
    backward()
    return Ready(forward, backward, outputs, [a.grad.to_numpy().copy() for a in wrt])


def _tiny(size: int) -> Ready:
    x = _array(np.full(1, 3.0, np.float32))
    return _ready(kernels.tiny, [x], _array(values(1)), [x])


def _saxpy(size: int) -> Ready:
    x, y = _array(values(size)), _array(values(size, 2))
    return _ready(kernels.saxpy, [2.5, x, y], _array(values(size)), [x, y])


def _elementwise(size: int) -> Ready:
    x = _array(values(size))
    return _ready(kernels.elementwise, [x], _array(values(size)), [x])


def _nbody(size: int) -> Ready:
    x, mass = _array(values(3 * size).reshape(-1, 3)), _array(values(size, 2) + np.float32(1.5))
    out = _array(np.zeros((size, 3), np.float32))
    return _ready(kernels.nbody, [x, mass, size], out, [x, mass])


def _stencil(size: int) -> Ready:
    side = round(size**0.5)
    u = _array(values(side * side).reshape(side, side))
    return _ready(kernels.stencil, [u], _array(np.zeros((side, side), np.float32)), [u])


def _springs(size: int, drawn: Springs = springs) -> Ready:
    particles, first, second = drawn(size)
    x = _array(values(3 * particles).reshape(-1, 3))
    ends = [_array(a, ti.i32, False) for a in (first, second)]
    out = _array(np.zeros((particles, 3), np.float32))
    seed = values(3 * particles, 4).reshape(-1, 3)
    return _ready(kernels.springs, [x, *ends], out, [x], seed)


def _loop(size: int) -> Ready:
    x = _array(values(size))
    return _ready(kernels.loop, [x, 16], _array(values(size)), [x])


def _cross(size: int) -> Ready:
    a, b = (_array(e) for e in edges(size))
    out, seed = _array(np.zeros((size, 3), np.float32)), values(3 * size, 5).reshape(-1, 3)
    return _ready(kernels.cross, [a, b], out, [a, b], seed)


def _sum(size: int) -> Ready:
    x = _array(values(size))
    return _ready(kernels.total, [x], _array(np.zeros(1, np.float32)), [x])


def rows() -> Rows:
    """What Taichi can do."""
    return {
        "launch": _tiny, "saxpy": _saxpy, "elementwise": _elementwise, "nbody": _nbody,
        "stencil": _stencil, "springs": _springs,
        "random_springs": partial(_springs, drawn=random_springs),
        "loop": _loop, "cross": _cross, "sum": _sum,
    }  # fmt: skip
