"""Which numbers that a record read were overwritten later on its tape, to the bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.storage import Hold, Storage
from engine.tape.records import CopyRecord, LaunchRecord, Record
from engine.tape.restoration import Change, NumpyArray, Restoration, contents, present, raw

Tag = TypeVar("Tag")


@dataclass(slots=True)
class Leaf:
    """An array that came into a tape from outside: the record that read it, and what it held.

    end: what the tape left there, where it overwrote some of it.
    """

    position: int
    read: array
    name: str
    hold: Hold
    end: NumpyArray | None = None

    def moved(self) -> bool:
        """Whether something that is not on the tape has changed it since; it is not where unknown.

        What the tape overwrote may be put back to what it was.
        """
        if self.hold.lost or self.read.storage.unchanged(self.hold):
            return False
        was = contents(self.read, self.hold)
        now = present(self.read)
        assert was is not None
        differs = (raw(now) != raw(was)).any(-1)
        if self.end is not None:
            differs &= (raw(now) != raw(self.end)).any(-1)
        return bool(differs.any())


@dataclass(slots=True)
class Replaced:
    """by_record: what was overwritten of what a record may read in its backward pass."""

    by_record: dict[int, list[Restoration]] = field(default_factory=dict)
    leaves: list[Leaf] = field(default_factory=list)


def replaced(records: Sequence[Record], changes: Sequence[Change]) -> Replaced:
    """Goes back through a tape, and marks in memory of its own what its writes changed."""
    out = Replaced(leaves=_leaves(records, changes))
    leaves: dict[int, list[Leaf]] = {}
    for leaf in out.leaves:
        leaves.setdefault(leaf.position, []).append(leaf)
    blocks: dict[Storage, _Block] = {}
    left = list(changes)
    for number in range(len(records) - 1, -1, -1):
        while left and left[-1].position > number:
            c = left.pop()
            memory = c.dest.storage
            if memory not in blocks:
                blocks[memory] = _Block(memory)
            blocks[memory].mark(c)
        if not blocks:
            continue
        for index, a, hold in records[number].watched():
            block = blocks.get(a.storage)
            found = block.restoration(index, a, hold) if block is not None else None
            if found is not None:
                out.by_record.setdefault(number, []).append(found)
        for leaf in leaves.get(number, ()):
            block = blocks.get(leaf.read.storage)
            if block is not None:
                leaf.end = block.end_of(leaf.read, leaf.hold)
    return out


class _Block:
    """A block of memory: for each byte whether a later record changed it, and the last value.

    unsure: bytes that may have changed, and whose last value is not known.
    """

    def __init__(self, memory: Storage) -> None:
        self.lo = memory.lo
        self.changed = np.zeros(memory.nbytes, np.bool_)
        self.end = np.zeros(memory.nbytes, np.uint8)
        self.unsure = np.zeros(memory.nbytes, np.bool_)
        self.by: list[Change] = []

    def mark(self, c: Change) -> None:
        """Adds a write that came before those that are marked."""
        lo, hi = c.dest.lo, c.dest.hi
        here = slice(lo - self.lo, hi - self.lo)
        before, after = (_bytes(hold, lo, hi) for hold in (c.before, c.after))
        if before is None or after is None:
            new = np.zeros(self.changed.size, np.bool_)
            self._view(new, c.dest)[...] = True
            self.unsure |= new & ~self.changed
            self.changed |= new
        else:
            new = before != after
            if not new.any():
                return
            last = new & ~self.changed[here]
            self.end[here][last] = after[last]
            self.changed[here] |= new
        self.by.append(c)

    def restoration(self, index: int, a: array, hold: Hold | None) -> Restoration | None:
        """What of an array is not what a hold says that it was; None for nothing."""
        changed = self._view(self.changed, a)
        was = contents(a, hold) if changed.any() else None
        if was is not None:
            differs = self._view(self.unsure, a) | (raw(was) != self._view(self.end, a))
            changed = changed & differs
        if not changed.any():
            return None
        where = np.asarray(changed.any(-1))
        by = next((c for c in reversed(self.by) if may_meet(c.dest, a)), self.by[-1])
        return Restoration.of(index, a, hold, by, where)

    def end_of(self, a: array, hold: Hold) -> NumpyArray | None:
        """What the tape left in an array, where it is not what a hold says that it was."""
        changed = self._view(self.changed, a)
        was = contents(a, hold) if changed.any() else None
        if was is None:
            return None
        out = np.ascontiguousarray(was)
        np.copyto(raw(out), self._view(self.end, a), where=changed)
        return out

    def _view(self, plane: NumpyArray, a: array) -> NumpyArray:
        """The part of some bytes that belongs to an array, the bytes of a number last."""
        parts = a._parts
        shape, strides = tuple(parts.shape), tuple(parts.strides)
        at = a.ptr - self.lo if a.size else 0
        size = parts.dtype.itemsize
        view: NumpyArray = np.ndarray((*shape, size), plane.dtype, plane, at, (*strides, 1))
        return view


def _bytes(hold: Hold | None, lo: int, hi: int) -> NumpyArray | None:
    return None if hold is None else hold.read(lo, (hi - lo,), (1,), np.uint8)


# ---- what came from outside


def read_by(record: Record) -> Iterator[tuple[array, str, Hold | None]]:
    """What a launch or a copy read, what to call it, and what it held."""
    if isinstance(record, LaunchRecord):
        for i in record.plan.inputs:
            if record.values[i] is not None:
                yield record.values[i], record.argument(i), record.holds.get(i)
    elif isinstance(record, CopyRecord):
        yield record.src, "the source of a copy", record.source


def key_of(a: array) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Equal for arrays in the same place of one block of memory."""
    return a.ptr, a.shape, a.strides


class Places(Generic[Tag]):
    """Arrays with something said of each, to be asked of memory that may be theirs."""

    def __init__(self) -> None:
        self._by: dict[Storage, dict[Any, tuple[array, Tag]]] = {}

    def add(self, a: array, tag: Tag) -> None:
        """Adds an array, in the place of one with just its elements."""
        self._by.setdefault(a.storage, {})[key_of(a)] = (a, tag)

    def discard(self, a: array) -> None:
        """Forgets an array with just these elements."""
        self._by.get(a.storage, {}).pop(key_of(a), None)

    def find(self, a: array) -> Tag | None:
        """What was said of an array that may share memory with this one; None for no array."""
        known = self._by.get(a.storage)
        if not known:
            return None
        if (same := known.get(key_of(a))) is not None:
            return same[1]
        return next((tag for b, tag in known.values() if may_meet(a, b)), None)


def _leaves(records: Sequence[Record], changes: Sequence[Change]) -> list[Leaf]:
    """What records read before anything on the tape had written it, where that is known."""
    out: list[Leaf] = []
    written: Places[bool] = Places()
    seen: set[Any] = set()
    loose = [c for c in changes if c.loose]
    for number, record in enumerate(records):
        while loose and loose[0].position <= number:
            written.add(loose.pop(0).dest, True)
        for a, name, hold in read_by(record):
            key = (a.storage, *key_of(a))
            if hold is not None and a.size and key not in seen and not written.find(a):
                seen.add(key)
                out.append(Leaf(number, a, name, hold))
        for a in record.written:
            written.add(a, True)
    return out
