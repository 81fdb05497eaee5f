"""Finds where arrays without requires_grad were made that a tape computes, and then reads."""

from __future__ import annotations

from engine.autograd.watch.detector import Detector
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.program import Program


class Creation(Detector):
    """Tells a tape that has run backward where such arrays were made (`Made`)."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._told: dict[Followed, int] = {}

    def pass_over(self, tape: Followed, done: bool) -> None:
        if not done or tape.run is None:
            return
        tape.look(tape.run.records)
        found = list(tape.read.facts())
        for made in found[self._told.get(tape, 0) :]:
            tape.tell(made)
        self._told[tape] = len(found)
