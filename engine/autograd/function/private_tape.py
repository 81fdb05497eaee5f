"""A tape for the runs of a check, invisible to the program."""

from __future__ import annotations

from engine.runtime import events
from engine.tape.tape import Tape


class PrivateTape(Tape):
    """A tape that nobody follows, and that records also while another tape is active."""

    def _announce(self) -> None:
        """Nobody is told of it."""

    def _verifies(self) -> bool:
        return False  # marks belong to the user's tapes

    def __enter__(self) -> PrivateTape:
        self._token = True
        events.enter(self)
        return self
