"""Copies between arrays of all kinds, and lists that arrays get: what is there, or the error."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import engine as wp
from engine import LaunchError


@wp.struct
class Pair:
    a: wp.int8
    b: wp.float64


DTYPES = [float, wp.float64, int, wp.vec3, wp.bool, wp.bfloat16, Pair, wp.mat22, wp.float16]


def outcome(make: Callable[[], Any], act: Callable[..., Any]) -> tuple[Any, list[Any]]:
    """What is in the arrays after `act`, how often they were written, or the error."""
    arrays = make()
    try:
        act(*arrays)
        said = None
    except LaunchError as e:
        said = e.diagnostics[0].code, e.diagnostics[0].message
    return said, [(a.storage.version, shown(a)) for a in arrays]


def shown(a):
    """What it holds; of structs, not what lies between their fields."""
    return repr(a.numpy().tolist()) if a.dtype is Pair else a.numpy().tobytes()


def filled(shape, dtype, start):
    if dtype is Pair:
        a = wp.zeros(shape, dtype=Pair)
        seen = a.numpy()
        seen["a"], seen["b"] = start, np.arange(a.size).reshape(a.shape) + start
        return a
    a = wp.zeros(shape, dtype=dtype)
    seen = a.numpy()
    seen[...] = (np.arange(seen.size).reshape(seen.shape) + start) % 7
    return a


def changed(r, a):
    """A view of it, of some kind."""
    kind = r.randrange(9)
    if kind == 0 and a.ndim > 1:
        return a.transpose()
    if kind == 1:
        return a[::-1]
    if kind == 2:
        return a[1:]
    if kind == 3:
        return a[::2]
    if kind == 4 and a.size:
        _kept.append(a)
        return wp.array(ptr=a.ptr, dtype=a.dtype, shape=a.shape, strides=(0,) * a.ndim)
    return a


_kept = []


def two(seed):
    """Two arrays, and offsets and a count that fit or not."""
    r = random.Random(seed)
    dtype = r.choice(DTYPES)
    shapes = [(6,), (2, 3), (3, 2), (1, 6), (7,), (2, 1, 3), (0,), (4, 0), (5000,)]
    dest = changed(r, filled(r.choice(shapes), dtype, 1))
    if r.randrange(4):
        of = dtype if r.randrange(3) else r.choice(DTYPES)
        src = changed(r, filled(r.choice(shapes), of, 3))
    else:
        src = changed(r, dest)  # they overlap
    part = [r.choice([0, 0, 0, 1, 2, 5, -1, True, np.int64(1), 1.0]) for _ in range(3)]
    return (dest, src), part if r.randrange(3) else [0, 0, 0]


def copies(first: int, count: int) -> list[Any]:
    """Of `two`, from one seed on."""
    out = []
    for seed in range(first, first + count):
        arrays, part = two(seed)
        out.append(outcome(lambda a=arrays: a, lambda dest, src, p=part: wp.copy(dest, src, *p)))
    return out


_ONE = wp.ones(1)


def locked() -> Any:
    n = np.zeros(3, np.float32)
    n.flags.writeable = False
    return wp.array(n, dtype=float, copy=False)


def to_read_only() -> list[Any]:
    """Writes to memory that cannot be written."""
    makes: list[Callable[[], Any]] = [
        locked,
        lambda: wp.array(ptr=_ONE.ptr, dtype=float, shape=3, strides=(0,)),
    ]
    acts: list[Callable[[Any], Any]] = [
        lambda a: a.assign([1.0, 2.0, 3.0]),
        lambda a: a.assign(np.ones(3, np.float32)),
        lambda a: wp.copy(a, wp.ones(3)),
        lambda a: wp.copy(a, wp.ones(3), 1, 1, 1),
    ]
    return [outcome(lambda make=make: [make()], act) for make in makes for act in acts]


LISTS = [
    [1.0] * 6, [1, 2, 3, 4, 5, 6], (0.1,) * 6, [[1, 2, 3], [4, 5, 6]], [[1.0, 2.0]] * 3, [1.0] * 5,
    [1.0] * 7, [], [[]], [[1.0], [2.0, 3.0]], ["a"] * 6, [None] * 6, [1e300] * 6, [1 << 70] * 6,
    [float("nan")] * 6, [1.5] * 6, [True] * 6, [wp.vec3(1.0, 2.0, 3.0)] * 6, [(1.0, 2.0, 3.0)] * 6,
    [[1.0, 2.0, 3.0, 4.0]] * 6, np.ones(6).tolist(), [np.float32(1)] * 6, [np.ones(3)] * 6,
    np.arange(18.0).tolist(), [1j] * 6, [300] * 6, [-1] * 6,
]  # fmt: skip


NUMBERS = [
    np.arange(12, dtype=t)[::step].reshape(shape)
    for t in (np.float32, np.float64, np.int32, np.float16)
    for step, shape in ((2, 6), (2, (2, 3)), (2, (3, 2)), (1, 12))
]


def assigned(dtype: Any) -> list[Any]:
    """What arrays of all layouts are after `assign` of each list, and of NumPy's numbers."""
    makes: list[Callable[[], Any]] = [
        lambda: filled(6, dtype, 1), lambda: filled((2, 3), dtype, 1),
        lambda: filled((3, 2), dtype, 1).transpose(), lambda: filled(12, dtype, 1)[::2],
        lambda: filled(0, dtype, 1),
    ]  # fmt: skip
    return [
        outcome(lambda make=make: [make()], lambda a, values=values: a.assign(values))
        for make in makes
        for values in (*LISTS, *NUMBERS)
    ]
