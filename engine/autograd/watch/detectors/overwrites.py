"""Finds overwritten arrays that a backward pass reads, and passes that read what is out of date.

It must get a pass after `aliasing`, which puts arrays back and so gives memory other versions.
"""

from __future__ import annotations

import warnings
from dataclasses import field

from engine.autograd.facts import Overwritten, Stale
from engine.autograd.tape.operations import NotReplayable
from engine.autograd.watch.detector import Detector
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.overwritten import OverwrittenReads
from engine.autograd.watch.program import Program
from engine.autograd.watch.recomputed import Recomputed
from engine.classes import dataclass
from engine.diagnostics import EngineError
from engine.tape.backward import Pass
from engine.tape.records import launches


@dataclass(slots=True, eq=False)
class _Reads:
    """Of one tape. recomputed: None where it cannot be run again.

    stale: found as a pass began, to be told if it comes to its end. told: facts of passes so far.
    """

    reads: OverwrittenReads
    recomputed: Recomputed | None
    begun: bool = False
    stale: list[Stale] = field(default_factory=list)
    told: list[Overwritten] = field(default_factory=list)


class Overwrites(Detector):
    """Tells tapes what was overwritten (`Overwritten`), and of what is out of date (`Stale`)."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._tapes: dict[Followed, _Reads] = {}

    def began(self, tape: Followed, run: Pass) -> None:
        known = self._tapes.get(tape)
        if known is None:
            reads = OverwrittenReads(self.program.writes)
            known = self._tapes[tape] = _Reads(reads, Recomputed(tape.tape))
        first, known.begun = not known.begun, True
        known.reads.began(run, tape.clocks)
        if run.mixed is not None:
            site = None if run.site is None else run.site.span
            known.stale.append(Stale("saved", "", site, text=run.mixed))
        elif not first or known.reads.outside:
            self._mixture(known, run, first)

    def before(self, tape: Followed, number: int) -> None:
        self._tapes[tape].reads.before(number)

    def pass_over(self, tape: Followed, done: bool) -> None:
        known = self._tapes.get(tape)
        if known is None:
            return
        if tape.run is None:  # what the detector has seen of the pass is not all
            known.reads, known.begun = OverwrittenReads(self.program.writes), False
            return
        known.reads.ended()
        if done:
            for stale in known.stale:
                tape.tell(stale)
            known.stale.clear()
            self._tell(tape, known)

    def _tell(self, tape: Followed, known: _Reads) -> None:
        """Puts what is known by now in place of what was told of earlier passes."""
        old = set(map(id, known.told))
        known.told = known.reads.facts
        others = (f for f in tape.tape.facts if id(f) not in old)
        tape.tape.facts[:] = [*known.told, *others]

    def closed(self) -> None:
        for tape in self.program.tapes.values():
            self._rehearse(tape)

    def _rehearse(self, tape: Followed) -> None:
        """Looks at a tape that has run no backward pass and still may."""
        reads = OverwrittenReads(self.program.writes)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run = tape.tape.rehearsal()
                if run is None:
                    return
                reads.rehearse(run, tape.clocks)
        except (EngineError, MemoryError):
            return
        for fact in reads.facts:
            tape.tell(fact)

    def _mixture(self, known: _Reads, run: Pass, first: bool) -> None:
        """Looks whether what is read fits together, where something has changed."""
        if known.recomputed is None or not (first or _changed(run)):
            return
        for other in self._tapes.values():  # tapes that run again do so one after the other
            if other is not known and other.recomputed is not None:
                other.recomputed.close()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = known.recomputed.mixture(run, results=first)
        except (NotReplayable, MemoryError):
            known.recomputed = None
            return
        if first:
            if found is None:
                known.reads.forgive()
        elif found is not None:
            site = None if run.site is None else run.site.span
            known.stale.append(Stale("recompute", found.array, site, by=found.by))


def _changed(run: Pass) -> bool:
    """Whether some launch's input may not be what it was at its launch."""
    return any(
        r.values[i] is not None and not r.values[i].storage.unchanged(hold)
        for r in launches(run.records)
        for i, hold in r.holds.items()
    )
