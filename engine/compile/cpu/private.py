"""Arrays of which each part of a launch has its own, and how they become one again.

The first part has the array itself.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.compile.cpu.schedule import Private
from engine.lang.types import scalar_of, shape_of

_LINE = 128  # bytes: what two processors would take from each other


class Copies:
    """The copies of one array, `count` of them, in which nothing is added yet."""

    def __init__(self, private: Private, count: int) -> None:
        self.private = private
        a = private.array
        self.dtype = scalar_of(a.type).numpy
        inner = shape_of(a.type.element)
        self.shape = (*a.shape, *inner)
        self.length = math.prod(self.shape)
        step = -(-self.length * self.dtype.itemsize // _LINE) * _LINE // self.dtype.itemsize
        neutral = _neutral(private.kind, self.dtype)
        if neutral == 0:
            self.memory = np.zeros((count, step), self.dtype)
        else:
            self.memory = np.full((count, step), neutral, self.dtype)
        strides, size = [], a.type.element.size
        for n in reversed(a.shape):
            strides.append(size)
            size *= n
        self._tail = struct.pack(f"<{len(strides)}q", *reversed(strides))

    def place(self, args: bytearray, part: int) -> None:
        """Puts the copy of a part in the place of the array."""
        start = self.memory.ctypes.data + (part - 1) * self.memory.strides[0]
        ndim = len(self.private.array.shape)
        for at in self.private.at:
            struct.pack_into("<q", args, at, start)
            args[at + 8 * (1 + ndim) : at + 8 * (1 + 2 * ndim)] = self._tail

    def merge(self) -> None:
        """Brings the copies into the array, one after another."""
        target = _view(self)
        for row in self.memory:
            _MERGE[self.private.kind](target, row[: self.length].reshape(self.shape))


def prepare(private: Sequence[Private], args: bytes, count: int) -> tuple[list[Copies], bytes]:
    """Copies for the parts of a launch, and the arguments of all parts, one after another."""
    copies = [Copies(p, count - 1) for p in private]
    out = bytearray(args * count)
    for part in range(1, count):
        block = bytearray(args)
        for c in copies:
            c.place(block, part)
        out[part * len(args) : (part + 1) * len(args)] = block
    return copies, bytes(out)


def _view(c: Copies) -> NDArray[Any]:
    """The array itself."""
    a = c.private.array
    low, high = a.ends
    memory: Any = (ctypes.c_uint8 * (high - low)).from_address(low)
    inner = np.empty(shape_of(a.type.element), c.dtype).strides
    strides = (*a.strides, *inner)
    out: NDArray[Any] = np.ndarray(c.shape, c.dtype, memory, a.address - low, strides)
    return out


def _neutral(kind: str, t: np.dtype[Any]) -> Any:
    """What an update of a kind leaves as it is."""
    if kind in ("min", "max"):
        if t.kind == "f":
            return math.nan  # a missing value
        ends = np.iinfo(t)
        return ends.max if kind == "min" else ends.min
    return np.invert(np.zeros((), t)) if kind == "and" else 0


def _add(target: NDArray[Any], part: NDArray[Any]) -> None:
    # Where nothing was added, nothing changes: -0.0 stays.
    with np.errstate(all="ignore"):
        np.add(target, part, out=target, where=part != 0)


def _lesser(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.copyto(target, part, where=(part < target) | (_missing(target) & ~_missing(part)))


def _greater(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.copyto(target, part, where=(part > target) | (_missing(target) & ~_missing(part)))


def _missing(a: NDArray[Any]) -> NDArray[Any]:
    return np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool)


def _and(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.bitwise_and(target, part, out=target)


def _or(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.bitwise_or(target, part, out=target)


def _xor(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.bitwise_xor(target, part, out=target)


_MERGE = {"add": _add, "min": _lesser, "max": _greater, "and": _and, "or": _or, "xor": _xor}
