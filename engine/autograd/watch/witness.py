"""What watches a program as it runs: see `engine.tape.capture.Watcher`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

from engine.autograd.facts import Broken, Stale
from engine.autograd.tape.operations import NotReplayable
from engine.autograd.watch.accumulated import Accumulated, merged
from engine.autograd.watch.overwritten import OverwrittenReads
from engine.autograd.watch.paths import Paths
from engine.autograd.watch.recomputed import Recomputed
from engine.autograd.watch.writes import Writes
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.plan import Call
from engine.runtime.storage import Storage
from engine.tape.capture import CapturedTape, Pass
from engine.tape.record import Record
from engine.tape.records import LaunchRecord


class _Followed:
    """What is known of one tape."""

    def __init__(self, tape: CapturedTape) -> None:
        self.clocks: list[int] = []
        self.overwritten: OverwrittenReads | None = None
        self.recomputed: Recomputed | None = Recomputed(tape)
        self.stale: list[Stale] = []
        self.run: Pass | None = None
        # Until its first backward pass.
        self.paths: Paths | None = Paths()
        self.broken: list[Broken] = []


class Witness:
    """Finds what no check of recorded launches can see: overwrites and gradients that mix."""

    def __init__(self) -> None:
        self._writes = Writes()
        self._accumulated = Accumulated()
        self._tapes: dict[int, _Followed] = {}
        self._busy = False

    def recorded(self, tape: CapturedTape, record: Record) -> None:
        followed = self._of(tape)
        followed.clocks.append(self._writes.clock)
        if followed.paths is not None:
            followed.paths.recorded(record)

    def launched(self, call: Call, site: Site | None) -> None:
        for paths in self._open():
            paths.launched(call, site)

    def copied(self, dest: array, src: array, meant: bool, clone: bool) -> None:
        for paths in self._open():
            paths.copied(dest, src, meant, clone)

    def filled(self, dest: array) -> None:
        for paths in self._open():
            paths.filled(dest)

    def _open(self) -> Iterator[Paths]:
        """The ways of all tapes that have not run backward."""
        if not self._busy:
            for f in self._tapes.values():
                if f.paths is not None:
                    yield f.paths

    def wrote(self, memory: Storage, lo: int, hi: int) -> None:
        if not self._busy:
            self._writes.note(memory, lo, hi)

    def began(self, tape: CapturedTape, run: Pass) -> Callable[[int], None] | None:
        self._busy = True
        followed = self._of(tape)
        followed.run = run
        self._accumulated.began(tape, run)
        first = followed.overwritten is None
        if followed.overwritten is None:
            followed.overwritten = OverwrittenReads(self._writes)
        followed.overwritten.began(run, followed.clocks)
        if run.mixed is not None:
            followed.stale.append(_saved(run))
        elif not first or followed.overwritten.outside:
            self._mixture(followed, run, first)
        return followed.overwritten.before

    def ended(self, tape: CapturedTape, done: bool) -> None:
        followed = self._of(tape)
        if not done:
            self._accumulated.failed()
        elif followed.run is not None:
            followed.stale += self._accumulated.ended(tape, followed.run)
            assert followed.overwritten is not None
            if followed.paths is not None:
                followed.broken += followed.paths.broken(followed.run)
                followed.paths = None
            tape.facts[:] = [
                *followed.overwritten.facts, *merged(followed.stale), *followed.broken
            ]  # fmt: skip
        if followed.overwritten is not None:
            followed.overwritten.ended()
        followed.run = None
        self._busy = False

    def _mixture(self, followed: _Followed, run: Pass, first: bool) -> None:
        """Looks whether what is read fits together, where something has changed."""
        if followed.recomputed is None or not (first or _changed(run)):
            return
        for other in self._tapes.values():  # tapes that run again do so one after the other
            if other is not followed and other.recomputed is not None:
                other.recomputed.close()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = followed.recomputed.mixture(run, results=first)
        except (NotReplayable, MemoryError):
            followed.recomputed = None
            return
        if first:
            if found is None:
                assert followed.overwritten is not None
                followed.overwritten.forgive()
        elif found is not None:
            site = None if run.site is None else run.site.span
            followed.stale.append(Stale("recompute", found.array, site, by=found.by))

    def _of(self, tape: CapturedTape) -> _Followed:
        found = self._tapes.get(id(tape))
        if found is None:
            found = self._tapes[id(tape)] = _Followed(tape)
        return found


def _changed(run: Pass) -> bool:
    """Whether some launch's input may not be what it was at its launch."""
    return any(
        r.values[i] is not None and not r.values[i].storage.unchanged(hold)
        for r in run.records
        if isinstance(r, LaunchRecord)
        for i, hold in r.holds.items()
    )


def _saved(run: Pass) -> Stale:
    site = None if run.site is None else run.site.span
    return Stale("saved", "", site, text=run.mixed or "")
