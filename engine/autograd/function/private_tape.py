"""A tape for the runs of a check: nothing but the check knows of it."""

from __future__ import annotations

from typing import Any

from engine.runtime import recording
from engine.tape.records import Record
from engine.tape.tape import Tape


class _NoCaptures:
    """Where the records of a private tape go: nowhere."""

    def __bool__(self) -> bool:
        return False

    def copies(self, kernel: str) -> bool:
        del kernel
        return False

    def add(self, record: Record, records: list[Record]) -> None:
        """Nobody is told."""

    def look(self) -> None:
        """Nobody looks."""

    def forget(self) -> None:
        """Nobody remembers."""


class PrivateTape(Tape):
    """A tape that no capture sees, and that records also while another tape is active."""

    def _listeners(self) -> Any:
        return _NoCaptures()

    def __enter__(self) -> PrivateTape:
        self._token = recording.active.set(self)
        return self
