"""Arrays of which each part of a launch has its own. The first part has the array itself.

There are two kinds: what threads only add to or replace is brought together in the end; what
they take from, gradients of minima and maxima, is dealt out at the begin.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.compile.cpu.schedule import Private
from engine.compile.threads import Placed, Threads
from engine.lang.types import is_float, scalar_of, shape_of

_LINE = 128  # bytes: what two processors would take from each other


@dataclass(frozen=True)
class Winners:
    """Who replaced the scalars of an array last.

    names: parameters that are the array. parts: numbers of parts; the first one's also where
    nothing was replaced.
    """

    names: tuple[str, ...]
    parts: NDArray[np.uint8]


class Copies:
    """The copies of one array, for `count` parts. at: where the arguments name it."""

    def __init__(self, array: Placed, at: Sequence[int], count: int, value: Any) -> None:
        self.at = at
        self.array = array
        dtype = scalar_of(array.type).numpy
        self.shape = (*array.shape, *shape_of(array.type.element))
        length = math.prod(self.shape)
        step = -(-length * dtype.itemsize // _LINE) * _LINE // dtype.itemsize
        # Memory that is zero is not touched before it is used.
        self._memory = np.zeros((count, step), dtype)
        if value != 0:
            self._memory[...] = value
        self.parts = [row[:length].reshape(self.shape) for row in self._memory]
        strides, size = [], array.type.element.size
        for n in reversed(array.shape):
            strides.append(size)
            size *= n
        self._tail = struct.pack(f"<{len(strides)}q", *reversed(strides))

    def place(self, args: bytearray, part: int) -> None:
        """Puts the copy of a part in the place of the array."""
        start = self._memory.ctypes.data + (part - 1) * self._memory.strides[0]
        ndim = len(self.array.shape)
        for at in self.at:
            struct.pack_into("<q", args, at, start)
            args[at + 8 * (1 + ndim) : at + 8 * (1 + 2 * ndim)] = self._tail


class Merged(Copies):
    """Copies in which nothing is added yet."""

    def __init__(self, private: Private, count: int) -> None:
        a = private.array
        neutral = _neutral(private.kind, scalar_of(a.type).numpy)
        super().__init__(a, private.at, count, neutral)
        self.private = private

    def merge(self, tell: bool) -> Winners | None:
        """Brings the copies into the array, one after another.

        tell: give the winners, if gradients may be theirs.
        """
        kind, target = self.private.kind, _view(self.array)
        if kind not in _REPLACE:
            for part in self.parts:
                _COMBINE[kind](target, part)
            return None
        winners = np.zeros(self.shape, np.uint8) if tell and is_float(self.array.type) else None
        for k, part in enumerate(self.parts, 1):
            better = _REPLACE[kind](target, part)
            if winners is not None:
                winners[better] = k
        return None if winners is None else Winners(self.private.names, winners)


def dealt(winners: Sequence[Winners], threads: Threads) -> frozenset[str]:
    """Names of the arrays of an adjoint that hold the gradients of what was won."""
    gradients = threads.gradients
    return frozenset(gradients[k] for w in winners for k in w.names if k in gradients)


def deal(winners: Sequence[Winners], threads: Threads, args: bytes, count: int) -> list[Copies]:
    """Copies of such gradients, which have what their parts may take; the array has the rest."""
    out = []
    arrays = threads.arrays(args)
    for w in winners:
        mine = dealt([w], threads)
        left = [a for a in arrays if a.name in mine and not a.empty]
        while left:
            same = [a for a in left if a.same_as(left[0])]
            left = [a for a in left if not a.same_as(same[0])]
            copies = Copies(same[0], [a.at for a in same], count - 1, 0)
            target = _view(same[0])
            for k, part in enumerate(copies.parts, 1):
                np.copyto(part, target, where=w.parts == k)
            target[w.parts != 0] = 0
            out.append(copies)
    return out


def blocks(copies: Sequence[Copies], args: bytes, count: int) -> bytes:
    """The arguments of all parts, one after another."""
    out = bytearray(args * count)
    for part in range(1, count):
        block = bytearray(args)
        for c in copies:
            c.place(block, part)
        out[part * len(args) : (part + 1) * len(args)] = block
    return bytes(out)


def _view(a: Placed) -> NDArray[Any]:
    """The array itself."""
    dtype, inner = scalar_of(a.type).numpy, shape_of(a.type.element)
    low, high = a.ends
    memory: Any = (ctypes.c_uint8 * (high - low)).from_address(low)
    strides = (*a.strides, *np.empty(inner, dtype).strides)
    out: NDArray[Any] = np.ndarray((*a.shape, *inner), dtype, memory, a.address - low, strides)
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


def _lesser(target: NDArray[Any], part: NDArray[Any]) -> NDArray[Any]:
    return _replace(target, part, part < target)


def _greater(target: NDArray[Any], part: NDArray[Any]) -> NDArray[Any]:
    return _replace(target, part, part > target)


def _replace(
    target: NDArray[Any], part: NDArray[Any], better: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Replaces what is better, or where no number was; says where."""
    better |= _missing(target) & ~_missing(part)
    np.copyto(target, part, where=better)
    return better


def _missing(a: NDArray[Any]) -> NDArray[Any]:
    return np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool)


def _and(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.bitwise_and(target, part, out=target)


def _or(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.bitwise_or(target, part, out=target)


def _xor(target: NDArray[Any], part: NDArray[Any]) -> None:
    np.bitwise_xor(target, part, out=target)


_COMBINE = {"add": _add, "and": _and, "or": _or, "xor": _xor}
_REPLACE = {"min": _lesser, "max": _greater}
