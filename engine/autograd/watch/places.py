"""Arrays in one block of memory, to be asked which of them may share elements with another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.leaves import leaf_arrays
from engine.tape.outline import Outline, outline
from engine.tape.restoration import NumpyArray, planes

Tag = TypeVar("Tag")
Geometry: TypeAlias = "tuple[int, tuple[int, ...], tuple[int, ...]]"


def geometry(a: array | Outline) -> Geometry:
    """Equal for arrays with the same elements."""
    return a.ptr, a.shape, a.strides


class Places(Generic[Tag]):
    """Outlines of arrays, with something said of each. Keeps no array alive.

    They lie in buckets by address, of about their own size, so that a question takes time for
    those near by: a tape may have a slice of one array for each of thousands of steps.
    """

    __slots__ = ("_levels", "known")

    def __init__(self) -> None:
        self.known: dict[Geometry, tuple[Outline, Tag]] = {}
        self._levels: dict[int, dict[int, set[Geometry]]] = {}

    def put(self, a: array, tag: Tag) -> None:
        """Adds an array, in the place of one with just its elements."""
        key = geometry(a)
        if key not in self.known:
            level, bucket = _bucket(a)
            self._levels.setdefault(level, {}).setdefault(bucket, set()).add(key)
        self.known[key] = (outline(a), tag)

    def pop(self, a: array) -> None:
        """Forgets an array with just these elements."""
        key = geometry(a)
        if self.known.pop(key, None) is not None:
            level, bucket = _bucket(a)
            self._levels[level][bucket].discard(key)

    def meeting(self, a: array) -> Iterator[Tag]:
        """What was said of all arrays that may share memory with this one."""
        for key in self._near(a):
            b, tag = self.known[key]
            if may_meet(a, b):
                yield tag

    def meets(self, a: array) -> bool:
        """Whether one of them may share memory with this one."""
        return geometry(a) in self.known or any(True for _ in self.meeting(a))

    def _near(self, a: array) -> Iterator[Geometry]:
        for level, buckets in self._levels.items():
            first, last = (a.lo >> level) - 1, max(a.hi - 1, a.lo) >> level
            if last - first >= len(buckets):
                for some in buckets.values():
                    yield from some
            else:
                for k in range(first, last + 1):
                    yield from buckets.get(k, ())


def _bucket(a: array) -> tuple[int, int]:
    """One of its size: no array reaches beyond the next."""
    level = max(a.hi - a.lo, 1).bit_length()
    return level, a.lo >> level


def meeting(a: array | Outline, others: Sequence[array]) -> NumpyArray:
    """Which numbers of an array are in others too, as booleans in its shape, components last."""
    shape = tuple(a._parts.shape)
    if any(geometry(a) == geometry(b) for b in others):
        return np.ones(shape, np.bool_)
    others = [b for b in others if may_meet(a, b)]
    if not others:
        return np.zeros(shape, np.bool_)
    lo = min(x.lo for x in (a, *others))
    plane = np.zeros(max(x.hi for x in (a, *others)) - lo, np.bool_)
    for b in others:
        for x in [b] if b._info.numpy.names is None else leaf_arrays(b):
            planes(plane, lo, x)[...] = True
    return np.asarray(planes(plane, lo, a).any(-1))
