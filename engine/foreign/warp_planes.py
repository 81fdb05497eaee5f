"""Gradients of all memory that a Warp tape touches, in float64, by address.

Arrays that share memory share their gradients here, however views of them were made.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.foreign.warp_kernels import kind_of
from engine.foreign.warp_values import Array, ArrayOf
from engine.lang.strided import row_major

UNIT = 2  # bytes that have a number of their own: those of the narrowest floats


class Planes:
    """arrays: all that are to have a place."""

    def __init__(self, arrays: Iterable[ArrayOf]) -> None:
        spans = sorted({(a.begin, a.end) for a in arrays if a.begin and a.end > a.begin})
        self._begins: list[int] = []
        self._planes: list[NDArray[np.float64]] = []
        merged: list[list[int]] = []
        for begin, end in spans:
            if merged and begin < merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([begin, end])
        for begin, end in merged:
            self._begins.append(begin)
            self._planes.append(np.zeros((end - begin + UNIT - 1) // UNIT))
        # What belongs to contents that something else than the tape put there.
        self._left = [np.zeros_like(p) for p in self._planes]

    def _places(self, a: ArrayOf) -> Iterator[tuple[str, int, Array | slice, tuple[int, ...]]]:
        """Of each leaf of floats: its name, the plane's number, where its numbers are, its shape.

        Where they are, is a slice of the plane where they lie evenly, else an array of places.
        """
        if not a.begin or not all(a.shape):
            return
        k = bisect_right(self._begins, a.begin) - 1
        at = a.begin - self._begins[k]
        for name, offset, shape, size in _leaves(a.dtype, a.path):
            full = (*a.shape, *shape)
            if (*a.strides, *row_major(shape, size)) == row_major(full, size):
                begin, count = at + offset, math.prod(full)
                step = size // UNIT
                yield name, k, slice(begin // UNIT, begin // UNIT + count * step, step), full
            else:
                yield name, k, _spread(a, at + offset, shape, size) // UNIT, full

    def read(self, a: ArrayOf) -> dict[str, Array]:
        """The gradients of an array, by leaf."""
        return {n: self._planes[k][at].reshape(full).copy() for n, k, at, full in self._places(a)}

    def total(self, a: ArrayOf) -> dict[str, Array]:
        """The gradients of an array by all contents that nothing on the tape has computed."""
        return {n: (self._planes[k][at] + self._left[k][at]).reshape(full)
                for n, k, at, full in self._places(a)}  # fmt: skip

    def write(self, a: ArrayOf, values: Mapping[str, Array]) -> None:
        """Puts gradients in place."""
        for name, k, at, _ in self._places(a):
            if name in values:
                self._planes[k][at] = values[name].reshape(-1)

    def leave(self, begin: int, end: int) -> None:
        """Says that something else than the tape wrote at some addresses: gradients end there."""
        for base, plane, left in zip(self._begins, self._planes, self._left, strict=True):
            low, high = max(begin - base, 0), min(end - base, plane.size * UNIT)
            if low < high:
                part = slice(low // UNIT, (high + UNIT - 1) // UNIT)
                left[part] += plane[part]
                plane[part] = 0.0


def _spread(a: ArrayOf, at: int, shape: tuple[int, ...], size: int) -> Array:
    """The distances of an array's numbers from where its plane begins, in bytes, one by one."""
    index = np.full((), at, np.int64)
    for n, stride in zip((*a.shape, *shape), (*a.strides, *row_major(shape, size)), strict=True):
        index = index[..., None] + np.arange(n) * stride
    return index.reshape(-1)


def _leaves(dtype: Any, path: str) -> Iterator[tuple[str, int, tuple[int, ...], int]]:
    """Of each leaf of floats: name, offset and shape in an element, and bytes of a number."""
    if kind_of(dtype) == "Struct":
        yield from _fields(np.dtype(dtype.numpy_dtype()), path, 0)
        return
    scalar = getattr(dtype, "_wp_scalar_type_", dtype)
    size = {"float64": 8, "float32": 4, "float": 4, "float16": 2, "bfloat16": 2}.get(
        getattr(scalar, "__name__", "")
    )
    if size:
        yield path, 0, tuple(getattr(dtype, "_shape_", ())), size


def _fields(
    kind: np.dtype[Any], path: str, offset: int
) -> Iterator[tuple[str, int, tuple[int, ...], int]]:
    if kind.names:
        for name in kind.names:
            inner, at = kind.fields[name][:2]  # type: ignore[index]
            yield from _fields(inner, f"{path}.{name}", offset + at)
        return
    base, shape = kind.subdtype or (kind, ())
    if base.kind == "f":
        yield path, offset, shape, base.itemsize
