"""Pinned memory of the host, which GPUs read while the host continues."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

# Memory that nobody has any more, with the events that somebody reads it until.
_read: list[tuple[Any, list[Any]]] = []


class Pinned:
    """Memory of CuPy's pool, which gets it back when nothing reads it any more."""

    pinned = True  # which owners of other memory are not

    __slots__ = ("__weakref__", "_events", "_memory")

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._events: list[Any] = []

    def read_until(self, event: Any) -> None:
        """Notes that a device reads it until an event."""
        self._events = [*_waited(self._events), event]

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the process nothing may be left of CuPy
            events = _waited(self._events)
            if events:
                _read.append((self._memory, events))


def release() -> None:
    """Gives back what was read meanwhile."""
    _read[:] = [(memory, left) for memory, events in _read if (left := _waited(events))]


def _waited(events: list[Any]) -> list[Any]:
    """Those that are still to come."""
    return [e for e in events if not e.done]
