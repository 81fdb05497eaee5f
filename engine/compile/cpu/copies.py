"""Private memory for each part of a launch; the first part uses the arguments' own memory."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.compile.cpu.pool import LINE, pool
from engine.compile.threads import Placed
from engine.lang.strided import row_major
from engine.lang.types import scalar_of, shape_of

_ADDRESS = struct.Struct("<q")
_LARGE = 20_000  # numbers, from which on several threads add


class Lent:
    """Memory of `count` parts, with the arrays that are in it.

    arrays: for each, its offset in the arguments, and its offset, shape and strides in bytes in
    the memory of a part. size: scalars of each, which are zero. memory: theirs, if it is there.
    """

    def __init__(
        self, count: int, size: int, dtype: np.dtype[Any],
        arrays: Sequence[tuple[int, int, Sequence[int], Sequence[int]]],
        memory: NDArray[np.uint8] | None = None,
    ) -> None:  # fmt: skip
        step = -(-size * dtype.itemsize // LINE) * LINE
        if memory is None:
            memory = np.zeros(count * step, np.uint8)  # not touched before it is used
        self._memory = memory.view(dtype).reshape(count, step // dtype.itemsize)
        self.rows = [row[:size] for row in self._memory]
        self.start, self.step = self._memory.ctypes.data, self._memory.strides[0]
        self._places = [(at, self.start + offset) for at, offset, _, _ in arrays]
        self._arrays = arrays

    def shape(self, args: bytearray) -> None:
        """Writes the shapes and strides of a part's arrays into arguments."""
        for at, _, shape, strides in self._arrays:
            struct.pack_into(f"<{2 * len(shape)}q", args, at + 8, *shape, *strides)

    def place(self, args: bytearray, at: int, part: int) -> None:
        """Writes where a part's arrays are into its arguments, which begin at `at`."""
        for k, start in self._places:
            _ADDRESS.pack_into(args, at + k, start + (part - 1) * self.step)

    def deal(self, target: NDArray[Any], owner: NDArray[np.uint8]) -> None:
        """Gives each part, from 1, the scalars of an array that it owns."""
        parts = np.arange(1, len(self._memory) + 1, dtype=np.uint8)[:, None]
        mine = self._memory[:, : target.size]
        np.copyto(mine, target.reshape(-1), where=owner.reshape(-1) == parts)

    def is_like(self, a: NDArray[Any]) -> bool:
        """Whether all parts are an array of floats as `a` is one, in the same order in memory."""
        return False

    @property
    def touched(self) -> Sequence[int]:
        """The parts, from 0, in whose memory there is anything but zeros."""
        found: Sequence[int] = np.flatnonzero(self._memory.any(axis=1)).tolist()
        return found


class Copies(Lent):
    """Copies of one array, side by side. at: where the arguments name it."""

    def __init__(
        self, array: Placed, at: Sequence[int], count: int,
        memory: NDArray[np.uint8] | None = None,
    ) -> None:  # fmt: skip
        self.array = array
        inner = array.scalars
        strides = row_major(array.shape, array.type.element.size)
        places = [(k, 0, array.shape, strides) for k in at]
        super().__init__(count, math.prod(inner), scalar_of(array.type).numpy, places, memory)
        self.parts = [row.reshape(inner) for row in self.rows]

    def is_like(self, a: NDArray[Any]) -> bool:
        return (
            a.flags.c_contiguous
            and a.flags.aligned
            and a.dtype in (np.float32, np.float64)
            and a.dtype == self._memory.dtype
            and a.size == self.rows[0].size
        )


def blocks(lent: Sequence[Lent], args: bytes, count: int) -> bytes:
    """The arguments of all parts, one after another."""
    block = bytearray(args)
    for c in lent:
        c.shape(block)
    out = bytearray(args) + block * (count - 1)
    for c in lent:
        for part in range(1, count):
            c.place(out, part * len(args), part)
    return bytes(out)


def view(a: Placed, scalars: bool = False) -> NDArray[Any]:
    """The array itself. scalars: its elements are taken for scalars."""
    dtype = scalar_of(a.type).numpy
    inner = () if scalars else shape_of(a.type.element)
    low, high = a.ends
    memory: Any = (ctypes.c_uint8 * (high - low)).from_address(low)
    strides = (*a.strides, *np.empty(inner, dtype).strides)
    out: NDArray[Any] = np.ndarray((*a.shape, *inner), dtype, memory, a.address - low, strides)
    return out


def add(target: NDArray[Any], lent: Lent, parts: Sequence[NDArray[Any]]) -> None:
    """Adds parts to an array in place. Where nothing was added, nothing changes: -0.0 stays."""
    if target.size >= _LARGE and lent.is_like(target) and (workers := pool()) is not None:
        workers.add(target.ctypes.data, lent.start, lent.step, len(parts), target.size,
                    target.itemsize)  # fmt: skip
        return
    with np.errstate(all="ignore"):
        for k in lent.touched:
            np.add(target, parts[k], out=target, where=parts[k] != 0)


def write(view: NDArray[Any], values: NDArray[Any]) -> None:
    """Writes many values of the same type over an array's, by all threads where that can be."""
    plain = view.flags.writeable and view.flags.c_contiguous and values.flags.c_contiguous
    if plain and values.shape == view.shape:
        to, source, size = view.ctypes.data, values.ctypes.data, values.nbytes
        apart = to + size <= source or source + size <= to
        if apart and (workers := pool()) is not None:
            workers.copy(to, source, size)
            return
    view[...] = values
