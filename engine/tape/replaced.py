"""Finds the elements that a record read and that the tape overwrote later.

Where it is known which numbers a write stores, these count, equal ones too: something else may
change them later. Of other launches the numbers count that they changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.leaves import leaf_arrays
from engine.runtime.storage import Hold, Storage
from engine.tape.origins import Origin
from engine.tape.records.record import Record
from engine.tape.restoration import Change, NumpyArray, Restoration, any_byte, contents, planes, raw


def replaced(
    records: Sequence[Record], changes: Sequence[Change], origins: Sequence[Origin]
) -> dict[int, list[Restoration]]:
    """Of what each record may read in its backward pass, what was overwritten, by its number.

    Goes back through a tape, and marks in memory of its own what its writes changed. Notes in
    `origins` what the tape left in them.
    """
    out: dict[int, list[Restoration]] = {}
    sought: dict[int, list[Origin]] = {}
    for o in origins:
        sought.setdefault(o.position, []).append(o)
    blocks: dict[Storage, _Block] = {}
    left = list(changes)
    for number in range(len(records) - 1, -1, -1):
        while left and left[-1].position > number:
            c = left.pop()
            memory = c.dest.storage
            if memory not in blocks:
                blocks[memory] = _Block(memory)
            blocks[memory].mark(c, _whole(records, c))
        if not blocks:
            continue
        for index, a, hold in records[number].watched():
            block = blocks.get(a.storage)
            found = block.restoration(index, a, hold) if block is not None else None
            if found is not None:
                out.setdefault(number, []).append(found)
        for o in sought.get(number, ()):
            block = blocks.get(o.read.storage)
            if block is not None and o.watched:
                o.watched, o.end = block.end_of(o.read, o.hold)
    return out


class _Block:
    """A block of memory: for each byte whether a later record changed it, and the last value.

    stored: bytes that one certainly stored. unsure: bytes that may have changed, and whose last
    value is not known.
    """

    def __init__(self, memory: Storage) -> None:
        self.lo = memory.lo
        self.changed = np.zeros(memory.nbytes, np.bool_)
        self.end = np.zeros(memory.nbytes, np.uint8)
        self.stored = np.zeros(memory.nbytes, np.bool_)
        self.unsure = np.zeros(memory.nbytes, np.bool_)
        self.by: list[Change] = []

    def mark(self, c: Change, whole: bool) -> None:
        """Adds a write that came before those that are marked. whole: it stored every number."""
        lo, hi = c.dest.lo, c.dest.hi
        here = slice(lo - self.lo, hi - self.lo)
        before, after = (_bytes(hold, lo, hi) for hold in (c.before, c.after))
        if whole or before is None or after is None:
            differs = np.ones(hi - lo, np.bool_)
        else:
            differs = before != after
        new = _whole_numbers(differs, c.dest)
        if not new.any():
            return
        last = new & ~self.changed[here]
        if after is None:
            self.unsure[here] |= last
        else:
            self.end[here][last] = after[last]
        self.changed[here] |= new
        if whole:
            self.stored[here] |= new
        self.by.append(c)

    def restoration(self, index: int, a: array, hold: Hold | None) -> Restoration | None:
        """What of an array is not what a hold says that it was; None for nothing."""
        changed = self._view(self.changed, a)
        was = contents(a, hold) if changed.any() else None
        if was is not None:
            certain = self._view(self.unsure, a) | self._view(self.stored, a)
            differs = certain | (raw(was) != self._view(self.end, a))
            changed = changed & differs
        if not changed.any():
            return None
        where = any_byte(changed)
        by = next((c for c in reversed(self.by) if may_meet(c.dest, a)), self.by[-1])
        return Restoration.of(index, a, hold, by, where)

    def end_of(self, a: array, hold: Hold) -> tuple[bool, NumpyArray | None]:
        """Whether it is known what the tape left in an array, and that, if not what a hold says."""
        changed = self._view(self.changed, a)
        was = contents(a, hold) if changed.any() else None
        if was is None or self._view(self.unsure, a).any():
            return not changed.any(), None
        out = np.ascontiguousarray(was)
        np.copyto(raw(out), self._view(self.end, a), where=changed)
        return True, out

    def _view(self, plane: NumpyArray, a: array) -> NumpyArray:
        return planes(plane, self.lo, a)


def _whole(records: Sequence[Record], c: Change) -> bool:
    """Whether a write certainly stored every number of its array."""
    record = None if c.loose else records[c.position]
    return record is None or record.fills(c.dest)


def _whole_numbers(differs: NumpyArray, a: array) -> NumpyArray:
    """The bytes of those numbers of an array of which some byte differs."""
    out = np.zeros_like(differs)
    for x in [a] if a._info.numpy.names is None else leaf_arrays(a):
        planes(out, a.lo, x)[...] = any_byte(planes(differs, a.lo, x))[..., None]
    return out


def _bytes(hold: Hold | None, lo: int, hi: int) -> NumpyArray | None:
    return None if hold is None else hold.read(lo, (hi - lo,), (1,), np.uint8)
