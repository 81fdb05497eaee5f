"""Finds the owner of memory by address, so that pieces of one block are known as one."""

from __future__ import annotations

import weakref
from bisect import bisect_left
from typing import TYPE_CHECKING

from engine.locks import Lock

if TYPE_CHECKING:
    from engine.runtime.storage import Storage

    Entry = tuple[int, weakref.ref[Storage]]

_LEAST = 1 << 12  # entries, from which on those that are gone are looked for


class Neighbours:
    """Storages that others may come to know by their addresses; they are not kept alive.

    They are sorted by address among those of about one size, so that few have to be looked at,
    however large some are. Each change is one operation on a list, as who is interrupted may ask.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        # By the number of bits of the size: addresses, and who begins there.
        self._by: dict[int, list[Entry]] = {}
        self._all: tuple[tuple[int, list[Entry]], ...] = ()
        self._count = 0
        self._most = _LEAST
        # Those that are to be entered once somebody asks: most never have to be.
        self._new: list[weakref.ref[Storage]] = []
        self._new_most = _LEAST

    def add(self, storage: Storage) -> None:
        """Enters memory, now or when somebody asks."""
        new = self._new
        new.append(weakref.ref(storage))
        if len(new) >= self._new_most:
            with self._lock:
                alive = {id(s): r for r in new if (s := r()) is not None}
                new[:] = alive.values()
                self._new_most = max(_LEAST, 2 * len(new))

    def meeting(self, lo: int, hi: int) -> list[Storage]:
        """Who has some byte from address `lo` up to `hi`."""
        found: list[Storage] = []
        with self._lock:
            new = self._new
            while new:
                storage = new.pop()()
                if storage is not None and storage.nbytes:
                    self._enter(storage)
            for size, entries in self._all:
                k = bisect_left(entries, (lo - size,))
                while k < len(entries) and entries[k][0] < hi:
                    at, who = entries[k]
                    storage = who()
                    if (
                        storage is None
                        or storage.lo != at
                        or not size >> 1 <= storage.nbytes < size
                    ):
                        del entries[k]  # gone, or of another size now
                        self._count -= 1
                        continue
                    if at + storage.nbytes > lo and storage not in found:
                        found.append(storage)
                    k += 1
        return found

    def _enter(self, storage: Storage) -> None:
        bits = storage.nbytes.bit_length()
        entries = self._by.get(bits)
        if entries is None:
            entries = self._by[bits] = []
            self._all = tuple((1 << n, some) for n, some in self._by.items())
        k, new = bisect_left(entries, (storage.lo,)), (storage.lo, weakref.ref(storage))
        while k < len(entries) and entries[k][0] == storage.lo:
            known = entries[k][1]()
            if known is storage:
                return
            if known is None:
                entries[k] = new
                return
            k += 1
        entries.insert(k, new)
        self._count += 1
        if self._count >= self._most:
            self._forget()

    def _forget(self) -> None:
        for entries in self._by.values():
            entries[:] = [e for e in entries if e[1]() is not None]
        self._count = sum(map(len, self._by.values()))
        self._most = max(_LEAST, 2 * self._count)
