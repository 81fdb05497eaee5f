"""Restores overwritten inputs of adjoints from saved parts and present contents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.classes import dataclass
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.storage import Hold

if TYPE_CHECKING:
    from engine.tape.outline import Outline

NumpyArray = np.ndarray[Any, Any]


@dataclass(slots=True)
class Change:
    """A write of a tape to memory that an earlier record of it had read.

    position: the number of the record that wrote, or, for a write without one, of the next.
    loose: whether it is one without a record. before, after: what the memory held around it;
    None where that is not known.
    """

    position: int
    dest: array
    name: str
    site: Site | None
    loose: bool = False
    before: Hold | None = None
    after: Hold | None = None


@dataclass(slots=True)
class Restoration:
    """Numbers of an array that the tape overwrote after a record had read them.

    index: the array among what the record reads. hold: what it held then, None where nobody
    kept it. by: the first write that changed some of them. size: how many.
    """

    index: int
    read: array
    hold: Hold | None
    by: Change
    size: int
    _packed: NumpyArray = field(repr=False)

    @staticmethod
    def of(index: int, read: array, hold: Hold | None, by: Change, where: NumpyArray
           ) -> Restoration:  # fmt: skip
        """where: which numbers, in the shape of the array, components last."""
        return Restoration(
            index, read, hold, by, int(np.count_nonzero(where)), np.packbits(where, axis=None)
        )

    @property
    def where(self) -> NumpyArray:
        """Which numbers, as booleans in the shape of the array, components last."""
        shape = tuple(self.read._parts.shape)
        found = np.unpackbits(self._packed, count=int(np.prod(shape, dtype=np.int64)))
        return found.view(np.bool_).reshape(shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return self.size * int(self.read._parts.dtype.itemsize)

    def contents(self) -> NumpyArray:
        """What is read of the array now: these numbers as they were, all others as they are."""
        was = contents(self.read, self.hold)
        assert was is not None  # looked at before the pass began
        out = present(self.read)
        np.copyto(out, was, where=self.where)
        return out

    def copy(self) -> array:
        """The same as an array of its own. Raises LaunchError (E209) where memory runs out."""
        a = self.read
        out = array._allocate(a.shape, a._ir.element, False, a.device)
        out.device.backend.put(out._parts, self.contents())
        return out

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Has the array itself contain it for a while."""
        a, put = self.read, self.read.device.backend.put
        a.storage.before_write(a.lo, a.hi)
        before = present(a)
        try:
            put(a._parts, self.contents())
            yield
        finally:
            # What was written meanwhile into the other numbers stays.
            after = present(a)
            np.copyto(after, before, where=self.where)
            put(a._parts, after)


def contents(a: array, hold: Hold | None) -> NumpyArray | None:
    """What a hold says that an array held, components last; None where it is lost."""
    if hold is None:
        return None
    return hold.read(a.ptr, a._parts.shape, a._parts.strides, a._parts.dtype)


def differing(a: array, hold: Hold) -> NumpyArray | None:
    """Which numbers of an array are not what a hold says, as booleans; None for none, or if lost.

    In the shape of the array, components last.
    """
    if a.is_contiguous and hold.storage is None and a.device.backend.on_host:
        if hold.has(a.lo, a._parts):
            return None
    was = contents(a, hold)
    if was is None:
        return None
    differs = differ(present(a), was)
    return differs if differs.any() else None


def present(a: array) -> NumpyArray:
    """What an array holds now, as a copy on the host, components last."""
    return np.array(a.device.backend.to_host(a._parts))


def planes(plane: NumpyArray, lo: int, a: array | Outline) -> NumpyArray:
    """The part of bytes from an address on that belongs to an array, those of a number last."""
    parts = a._parts
    shape, strides = tuple(parts.shape), tuple(parts.strides)
    at, size = (a.ptr - lo if a.size else 0), parts.dtype.itemsize
    view: NumpyArray = np.ndarray((*shape, size), plane.dtype, plane, at, (*strides, 1))
    return view


def raw(x: NumpyArray) -> NumpyArray:
    """Numbers as bytes, those of one number last."""
    x = np.ascontiguousarray(x)
    return x.reshape(-1).view(np.uint8).reshape((*x.shape, x.dtype.itemsize))


def differ(x: NumpyArray, y: NumpyArray) -> NumpyArray:
    """Which numbers of two arrays of one type and shape are not the same to the bit."""
    size = x.dtype.itemsize
    if size not in _WORDS:
        return np.asarray((raw(x) != raw(y)).any(-1))
    word = np.dtype(f"u{size}")
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    return np.asarray(x.reshape(-1).view(word) != y.reshape(-1).view(word)).reshape(x.shape)


def any_byte(x: NumpyArray) -> NumpyArray:
    """For which numbers some byte says so. x: booleans for bytes, those of one number last."""
    if x.shape[-1] not in _WORDS or x.strides[-1] != 1:
        return np.asarray(x.any(-1))
    return np.asarray(x.view(f"u{x.shape[-1]}")[..., 0] != 0)


# Numbers that are compared as a whole, which is many times faster.
_WORDS = (1, 2, 4, 8)
