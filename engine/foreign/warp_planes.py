"""Gradients of all memory that a Warp tape touches, in float64, by address.

Arrays that share memory share their gradients here, however views of them were made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.foreign.warp_kernels import kind_of
from engine.foreign.warp_values import Array, ArrayOf

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

    def places(self, a: ArrayOf) -> Iterator[tuple[str, int, Array]]:
        """Of each leaf of floats: its name, the plane's number, and where its numbers are."""
        if not a.begin or not all(a.shape):
            return
        k = bisect_right(self._begins, a.begin) - 1
        at = a.begin - self._begins[k]
        index = np.full(a.shape, at, np.int64)
        for axis, (n, stride) in enumerate(zip(a.shape, a.strides, strict=True)):
            reach = (np.arange(n) * stride).reshape([-1 if d == axis else 1 for d in range(a.ndim)])
            index = index + reach
        for name, offset, shape, size in _leaves(a.dtype, a.path):
            inner = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape) * size
            spread = index.reshape(*index.shape, *(1 for _ in shape)) + offset + inner
            yield name, k, spread // UNIT

    def read(self, a: ArrayOf) -> dict[str, Array]:
        """The gradients of an array, by leaf."""
        return {name: self._planes[k][at] for name, k, at in self.places(a)}

    def total(self, a: ArrayOf) -> dict[str, Array]:
        """The gradients of an array by all contents that nothing on the tape has computed."""
        return {n: self._planes[k][at] + self._left[k][at] for n, k, at in self.places(a)}

    def write(self, a: ArrayOf, values: dict[str, Array]) -> None:
        """Puts gradients in place."""
        for name, k, at in self.places(a):
            if name in values:
                self._planes[k][at] = values[name].reshape(at.shape)

    def leave(self, begin: int, end: int) -> None:
        """Says that something else than the tape wrote at some addresses: gradients end there."""
        for base, plane, left in zip(self._begins, self._planes, self._left, strict=True):
            low, high = max(begin - base, 0), min(end - base, plane.size * UNIT)
            if low < high:
                part = slice(low // UNIT, (high + UNIT - 1) // UNIT)
                left[part] += plane[part]
                plane[part] = 0.0


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
