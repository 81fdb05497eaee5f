"""Restores the user's arrays after repeated runs of a function."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.storage import Storage

Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


class Restorer(events.Observer):
    """Copies memory just before it changes for the first time, and puts it all back."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[Storage] | Storage, int, Bytes]] = {}

    def writing(self, memory: Storage, lo: int, hi: int) -> None:
        self.keep(memory)

    def keep(self, storage: Storage) -> None:
        """Takes a copy of the memory, unless there is one."""
        known = self._kept.get(id(storage))
        if known is not None and _alive(known[0]) is storage:
            return
        if not storage.writable or not storage.nbytes:
            return
        data = storage.bytes(storage.lo, storage.lo + storage.nbytes).copy()
        # Memory from outside lives on without its storage; the engine's own does not.
        held = storage if storage.external else weakref.ref(storage)
        self._kept[id(storage)] = held, storage.lo, data

    def changed(self, a: array) -> bool:
        """Whether an array holds other bits than it did when its memory was kept."""
        known = self._kept.get(id(a.storage))
        if known is None or not a.size:
            return False
        _, lo, data = known
        now = a._host()
        before = np.ndarray(now.shape, now.dtype, data, a._ptr - lo, a._parts.strides)
        return bool(now.tobytes() != before.tobytes())

    def restore(self) -> None:
        """Gives all memory its contents back."""
        for held, lo, data in self._kept.values():
            storage = _alive(held)
            if storage is None:
                continue
            hi = lo + data.nbytes
            now = storage.bytes(lo, hi)
            if not np.array_equal(now, data):
                storage.before_write(lo, hi)
                storage.put_bytes(lo, data)


def _alive(held: weakref.ref[Storage] | Storage) -> Storage | None:
    return held if isinstance(held, Storage) else held()


@contextmanager
def restoring(arrays: Iterable[array]) -> Iterator[Restorer]:
    """Afterwards every array that the engine wrote meanwhile is bit for bit as it was.

    arrays: those that other code (NumPy views) may write too; their gradients are kept as well.
    """
    restorer = Restorer()
    for a in arrays:
        restorer.keep(a.storage)
        grad = a.existing_grad
        if grad is not None:
            restorer.keep(grad.storage)
    token = events.with_observer(restorer)
    try:
        yield restorer
    finally:
        events.restore(token)
        restorer.restore()
