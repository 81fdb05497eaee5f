"""Keeps the user's arrays as they were while functions run again and again."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from engine.runtime import recording
from engine.runtime.array import array
from engine.runtime.storage import Storage, watching
from engine.tape.records import Record
from engine.tape.tape import Tape

Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


class Keeper:
    """Copies memory just before it changes for the first time, and puts it all back."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[Storage] | Storage, Bytes]] = {}

    def keep(self, storage: Storage) -> None:
        """Takes a copy of the memory, unless there is one."""
        known = self._kept.get(id(storage))
        if known is not None and _alive(known[0]) is storage:
            return
        if not storage.writable or not storage.nbytes:
            return
        data = storage.bytes(storage.lo, storage.lo + storage.nbytes).copy()
        # Memory from outside lives on without its storage; the engine's own does not.
        self._kept[id(storage)] = (storage if storage.external else weakref.ref(storage), data)

    def restore(self) -> None:
        """Gives all memory its contents back."""
        for held, data in self._kept.values():
            storage = _alive(held)
            if storage is None:
                continue
            now = storage.bytes(storage.lo, storage.lo + storage.nbytes)
            if not np.array_equal(now, data):
                storage.before_write(storage.lo, storage.lo + storage.nbytes)
                now[...] = data


def _alive(held: weakref.ref[Storage] | Storage) -> Storage | None:
    return held if isinstance(held, Storage) else held()


@contextmanager
def keeping(arrays: Iterable[array]) -> Iterator[Keeper]:
    """Afterwards every array that the engine wrote meanwhile is bit for bit as it was.

    arrays: those that other code (NumPy views) may write too; their gradients are kept as well.
    """
    keeper = Keeper()
    for a in arrays:
        keeper.keep(a.storage)
        grad = a.existing_grad
        if grad is not None:
            keeper.keep(grad.storage)
    token = watching.set(keeper.keep)
    try:
        yield keeper
    finally:
        watching.reset(token)
        keeper.restore()


class _NoCaptures:
    """Where the records of a private tape go: nowhere."""

    def copies(self, kernel: str) -> bool:
        del kernel
        return False

    def add(self, record: Record, records: list[Record]) -> None:
        """Nobody is told."""

    def look(self) -> None:
        """Nobody looks."""

    def ran(self, records: list[Record], seeded: Sequence[array]) -> None:
        """Nobody cares."""

    def forget(self) -> None:
        """Nobody remembers."""


class PrivateTape(Tape):
    """A tape that no capture sees, and that records also while another tape is active."""

    def _listeners(self) -> Any:
        return _NoCaptures()

    def __enter__(self) -> PrivateTape:
        self._token = recording.active.set(self)
        return self
