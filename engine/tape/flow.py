"""Finds the records that a gradient may flow through."""

from __future__ import annotations

from collections.abc import Sequence

from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.storage import Storage
from engine.tape.records import Record


def flowing(records: Sequence[Record]) -> frozenset[int]:
    """The numbers of the records of which a result may be read later, or is there at the end.

    A result is not if just its array is stored whole before anything reads it.
    """
    unread = _Unread()
    out = set()
    for number in range(len(records) - 1, -1, -1):
        record = records[number]
        if record.function is None and all(map(unread.has, record.written)):
            continue
        out.add(number)
        for a in record.stored:
            unread.add(a)
        for a in record.sources:
            unread.discard(a)
    return frozenset(out)


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
