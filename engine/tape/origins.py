"""Inputs of a tape from outside, and whether they have changed since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from engine.classes import dataclass
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.storage import Hold, Storage
from engine.tape.records import Record
from engine.tape.restoration import Change, NumpyArray, contents, differ, present

Tag = TypeVar("Tag")
Key = tuple[Storage, int, tuple[int, ...], tuple[int, ...]]


@dataclass(slots=True)
class Origin:
    """An array that came into a tape from outside: the first record that read it, and a hold.

    watched: whether the tape's changes of it are known to the bit. rewritten: whether a record
    may have changed it. left: where that is not known to the bit, what it held then. end: where
    it is, what the tape left there.
    """

    position: int
    read: array
    name: str
    hold: Hold
    watched: bool
    rewritten: bool = False
    left: Hold | None = None
    end: NumpyArray | None = None

    def moved(self) -> NumpyArray | None:
        """Which numbers something that is not on the tape has changed since; None: none known.

        What the tape overwrote may be put back to what it was.
        """
        a = self.read
        if self.hold.lost or a.storage.unchanged(self.hold):
            return None
        end = self.end
        if self.rewritten and end is None:
            # A launch that reads again what it wrote itself is watched, but nobody kept the end.
            end = None if self.watched else contents(a, self.left)
            if end is None:
                return None
        was = contents(a, self.hold)
        assert was is not None
        now = present(a)
        differs = differ(now, was)
        if end is not None:
            differs &= differ(now, end)
        return differs if differs.any() else None


class Origins:
    """Finds what came from outside, while records are added to a tape."""

    def __init__(self) -> None:
        self._found: dict[Storage, list[Origin]] = {}
        self._seen: set[Key] = set()
        self._written: Places[bool] = Places()
        self._scanned = 0
        self._loose = 0

    @property
    def all(self) -> list[Origin]:
        """All of them, in order."""
        return sorted((o for some in self._found.values() for o in some), key=_position)

    @property
    def holds(self) -> Iterable[Hold]:
        """The holds on what the tape left in them."""
        return (o.left for some in self._found.values() for o in some if o.left is not None)

    def scan(self, records: Sequence[Record], changes: Sequence[Change]) -> None:
        """Looks at the records that came since, and at the writes without one."""
        for number in range(self._scanned, len(records)):
            record = records[number]
            while self._loose < len(changes) and changes[self._loose].position <= number:
                if changes[self._loose].loose:
                    self._wrote(changes[self._loose].dest)
                self._loose += 1
            for a, name, hold, watched in record.operands():
                key = (a.storage, *_place(a))
                if hold is None or not a.size or key in self._seen or self._written.find(a):
                    continue
                self._seen.add(key)
                found = Origin(number, a, name, hold, watched)
                self._found.setdefault(a.storage, []).append(found)
            for a in record.written:
                self._wrote(a)
        self._scanned = len(records)

    def _wrote(self, a: array) -> None:
        self._written.add(a, True)
        for o in self._found.get(a.storage, ()):
            if not o.rewritten or o.left is not None:
                if may_meet(o.read, a):
                    o.rewritten, o.left = True, None

    def leave(self) -> None:
        """To be called when the tape stops recording, after `scan`."""
        for some in self._found.values():
            for o in some:
                if o.rewritten and not o.watched and o.left is None:
                    o.left = o.read.storage.hold(o.read.lo, o.read.hi)


def _position(o: Origin) -> int:
    return o.position


def _place(a: array) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return a.ptr, a.shape, a.strides


class Places(Generic[Tag]):
    """Arrays with something said of each, to be asked of memory that may be theirs."""

    def __init__(self) -> None:
        self._by: dict[Storage, dict[Any, tuple[array, Tag]]] = {}

    def add(self, a: array, tag: Tag) -> None:
        """Adds an array, in the place of one with just its elements."""
        self._by.setdefault(a.storage, {})[_place(a)] = (a, tag)

    def discard(self, a: array) -> None:
        """Forgets an array with just these elements."""
        self._by.get(a.storage, {}).pop(_place(a), None)

    def find(self, a: array) -> Tag | None:
        """What was said of an array that may share memory with this one; None for no array."""
        known = self._by.get(a.storage)
        if not known:
            return None
        if (same := known.get(_place(a))) is not None:
            return same[1]
        return next((tag for b, tag in known.values() if may_meet(a, b)), None)

    def every(self, a: array) -> list[Tag]:
        """What was said of all arrays that may share memory with this one."""
        known = self._by.get(a.storage)
        return [tag for b, tag in known.values() if may_meet(a, b)] if known else []
