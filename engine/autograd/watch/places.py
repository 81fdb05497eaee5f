"""Arrays in one block of memory, indexed by the elements that they may share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import ref

import numpy as np

from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.leaves import leaf_arrays
from engine.tape.outline import Outline, outline
from engine.tape.restoration import NumpyArray, planes

Tag = TypeVar("Tag")
Geometry: TypeAlias = bytes

# Arrays that are looked at one by one.
_FEW = 8


def geometry(a: array | Outline) -> Geometry:
    """Equal for arrays with the same elements."""
    return a._packed


class Weak(Generic[Tag]):
    """Something said of each of some objects, by identity. Keeps none of them alive.

    A tape meets thousands of them: what is said of one that is gone is forgotten later, by and by.
    """

    __slots__ = ("_limit", "_refs", "_said")

    def __init__(self) -> None:
        self._refs: dict[int, ref[Any]] = {}
        self._said: dict[int, Tag] = {}
        self._limit = 256

    def get(self, x: object) -> Tag | None:
        """What was said of an object; None for nothing."""
        found = self._refs.get(id(x))
        return self._said[id(x)] if found is not None and found() is x else None

    def put(self, x: object, tag: Tag) -> None:
        """Says something of an object."""
        if len(self._refs) >= self._limit:
            self._sweep()
            self._limit = 2 * len(self._refs) + 256
        self._refs[id(x)] = ref(x)
        self._said[id(x)] = tag

    def setdefault(self, x: object, tag: Tag) -> Tag:
        """What was said of an object; this, from now on, where nothing was."""
        found = self.get(x)
        if found is None:
            self.put(x, tag)
            return tag
        return found

    def values(self) -> list[Tag]:
        """What was said of those that are still there."""
        return [self._said[key] for key, r in self._refs.items() if r() is not None]

    def __bool__(self) -> bool:
        """False where nothing was ever said."""
        return bool(self._refs)

    def __contains__(self, x: object) -> bool:
        found = self._refs.get(id(x))
        return found is not None and found() is x

    def _sweep(self) -> None:
        for key in [k for k, r in self._refs.items() if r() is None]:
            del self._refs[key], self._said[key]


class Places(Generic[Tag]):
    """Outlines of arrays, with something said of each. Keeps no array alive.

    Where they are many, they lie in buckets by address, of about their own size, so that a
    question takes time for those near by: a tape may have a slice of one array for each of
    thousands of steps.
    """

    __slots__ = ("_levels", "known")

    def __init__(self) -> None:
        self.known: dict[Geometry, tuple[Outline, Tag]] = {}
        self._levels: dict[int, dict[int, tuple[Geometry, ...]]] | None = None

    def put(self, a: array, tag: Tag) -> None:
        """Adds an array, in the place of one with just its elements."""
        known, key = self.known, a._packed
        new = key not in known
        known[key] = (a._outline or outline(a), tag)  # any of them says where it is
        if not new:
            return
        if self._levels is not None:
            self._sort(key, a)
        elif len(known) > _FEW:
            self._levels = {}
            for k, (b, _) in known.items():
                self._sort(k, b)

    def pop(self, a: array) -> None:
        """Forgets an array with just these elements."""
        key = a._packed
        if self.known.pop(key, None) is not None and self._levels is not None:
            level, bucket = _bucket(a)
            some = self._levels[level]
            some[bucket] = tuple(k for k in some[bucket] if k != key)

    def meeting(self, a: array) -> Iterable[Tag]:
        """What was said of all arrays that may share memory with this one."""
        known = self.known
        if len(known) == 1 and (same := known.get(a._packed)) is not None and a.lo < a.hi:
            return (same[1],)
        some = known.values() if self._levels is None else self._near(self._levels, a)
        return [tag for b, tag in some if b.lo < a.hi and a.lo < b.hi and may_meet(a, b)]

    def meets(self, a: array) -> bool:
        """Whether one of them may share memory with this one."""
        return a._packed in self.known or bool(self.meeting(a))

    def _sort(self, key: Geometry, a: array | Outline) -> None:
        assert self._levels is not None
        level, bucket = _bucket(a)
        some = self._levels.setdefault(level, {})
        some[bucket] = (*some.get(bucket, ()), key)

    def _near(
        self, levels: dict[int, dict[int, tuple[Geometry, ...]]], a: array
    ) -> Iterator[tuple[Outline, Tag]]:
        known = self.known
        for level, buckets in levels.items():
            first, last = (a.lo >> level) - 1, max(a.hi - 1, a.lo) >> level
            if last - first >= len(buckets):
                for some in buckets.values():
                    for key in some:
                        yield known[key]
            else:
                for k in range(first, last + 1):
                    for key in buckets.get(k, ()):
                        yield known[key]


class WeakPlaces(Weak[Places[Tag]]):
    """The places in each of some blocks of memory."""

    __slots__ = ()

    def at(self, memory: object) -> Places[Tag]:
        """Those in a block: none, where nothing was said of it before."""
        found = self.get(memory)
        if found is None:
            found = Places()
            self.put(memory, found)
        return found

    def meets(self, a: array) -> bool:
        """Whether something was said of an array that may share memory with this one."""
        known = self.get(a.storage)
        return known is not None and known.meets(a)


def _bucket(a: array | Outline) -> tuple[int, int]:
    """One of its size: no array reaches beyond the next."""
    level = max(a.hi - a.lo - 1, 0).bit_length()
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
