"""Finds the records that a gradient may flow through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.storage import Storage
from engine.tape.records import CopyRecord, FillRecord, FunctionRecord, LaunchRecord
from engine.tape.records.foreign import ForeignRecord
from engine.tape.records.record import Record


def flowing(records: Sequence[Record]) -> frozenset[int]:
    """The numbers of the records of which a result may be read later, or is there at the end.

    A result is not if just its array is stored whole before anything reads it.
    """
    unread = _Unread()
    out = set()
    for number in range(len(records) - 1, -1, -1):
        record = records[number]
        if not isinstance(record, FunctionRecord) and all(map(unread.has, record.written)):
            continue
        out.add(number)
        for a in _stored(record):
            unread.add(a)
        for a in _sources(record):
            unread.discard(a)
    return frozenset(out)


def _stored(record: Record) -> Iterable[array]:
    """What it certainly stores whole."""
    if isinstance(record, LaunchRecord):  # without an adjoint it takes no gradient away
        return [a for a in record.written if record._now().useful and record.fills(a)]
    if isinstance(record, ForeignRecord):
        return record.outputs
    return [record.dest] if isinstance(record, (CopyRecord, FillRecord)) else ()


def _sources(record: Record) -> Iterable[array]:
    if isinstance(record, LaunchRecord):
        return [a for i in record.plan.held if (a := record.values[i]) is not None]
    if isinstance(record, CopyRecord):
        return [record.src]
    if isinstance(record, ForeignRecord):
        return record.inputs
    return () if isinstance(record, FillRecord) else record.arrays


class _Unread:
    """Arrays that nothing reads before they are stored again."""

    def __init__(self) -> None:
        self._by: dict[Storage, list[array]] = {}

    def has(self, a: array) -> bool:
        return any(_same(a, b) for b in self._by.get(a.storage, ()))

    def add(self, a: array) -> None:
        self._by.setdefault(a.storage, []).append(a)

    def discard(self, a: array) -> None:
        some = self._by.get(a.storage)
        if some:
            self._by[a.storage] = [b for b in some if not may_meet(a, b)]


def _same(a: array, b: array) -> bool:
    """Whether two arrays have just the same elements."""
    return (a.ptr, a.shape, a.strides, a._ir.element) == (b.ptr, b.shape, b.strides, b._ir.element)
