"""A tape for the runs of a check, invisible to the program."""

from __future__ import annotations

from engine.runtime import recording
from engine.tape.capture import Captures
from engine.tape.records import Record
from engine.tape.tape import Tape


class _NoCaptures(Captures):
    """Where the records of a private tape go: nowhere."""

    def _begin(self, records: list[Record]) -> None:
        self._records = records
        self._tapes = []
        self._traced = False


class PrivateTape(Tape):
    """A tape that no capture sees, and that records also while another tape is active."""

    def _listeners(self) -> Captures:
        return _NoCaptures(self.records, self)

    def _verifies(self) -> bool:
        return False  # marks belong to the user's tapes

    def __enter__(self) -> PrivateTape:
        self._token = recording.active.set(self)
        return self
