"""Finds who has memory by its address, so that pieces of one block become known as one block."""

from __future__ import annotations

import weakref
from bisect import bisect_left
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.runtime.storage import Storage

_LEAST = 1 << 12  # entries, from which on those that are gone are looked for


class Neighbours:
    """Storages that others may come to know by their addresses; they are not kept alive.

    They are sorted by address among those of about one size, so that few have to be looked at,
    however large some are.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        # By the number of bits of the size: addresses, and who begins there.
        self._by: dict[int, tuple[list[int], list[weakref.ref[Storage]]]] = {}
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
        with self._lock:
            new = self._new
            while new:
                storage = new.pop()()
                if storage is not None and storage.nbytes:
                    self._enter(storage)
            found: list[Storage] = []
            for bits, (starts, who) in self._by.items():
                k = bisect_left(starts, lo - (1 << bits))
                while k < len(starts) and starts[k] < hi:
                    storage = who[k]()
                    if storage is None or storage.lo != starts[k] or _bits(storage) != bits:
                        del starts[k], who[k]  # gone, or of another size now
                        self._count -= 1
                        continue
                    if storage.lo + storage.nbytes > lo and storage not in found:
                        found.append(storage)
                    k += 1
            return found

    def _enter(self, storage: Storage) -> None:
        starts, who = self._by.setdefault(_bits(storage), ([], []))
        k = bisect_left(starts, storage.lo)
        while k < len(starts) and starts[k] == storage.lo:
            known = who[k]()
            if known is storage:
                return
            if known is None:
                who[k] = weakref.ref(storage)
                return
            k += 1
        starts.insert(k, storage.lo)
        who.insert(k, weakref.ref(storage))
        self._count += 1
        if self._count >= self._most:
            self._forget()

    def _forget(self) -> None:
        for starts, who in self._by.values():
            alive = [k for k, r in enumerate(who) if r() is not None]
            starts[:], who[:] = [starts[k] for k in alive], [who[k] for k in alive]
        self._count = sum(len(starts) for starts, _ in self._by.values())
        self._most = max(_LEAST, 2 * self._count)


def _bits(storage: Storage) -> int:
    return storage.nbytes.bit_length()
