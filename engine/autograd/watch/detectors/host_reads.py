"""Finds what only another run of the program can check: host reads, and recorded functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np

from engine.autograd.facts import Recorded, Sought
from engine.autograd.watch.detector import Detector
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.functions import FunctionReads
from engine.autograd.watch.moved import value_of
from engine.autograd.watch.paths import read_name, recorded_function
from engine.autograd.watch.program import Program
from engine.autograd.watch.views import View, Views
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.tape.backward import Pass
from engine.tape.records.record import Record


@dataclass(slots=True, eq=False)
class _Reads:
    """Of one tape, until its first backward pass.

    reads: by the host: where, what the user calls the array, and which elements. used: something
    was recorded after that. seen: views that the host had while it recorded.
    """

    reads: list[tuple[Span, str, bytes]] = field(default_factory=list)
    used: bool = False
    seen: set[View] = field(default_factory=set)
    functions: list[tuple[int, Recorded]] = field(default_factory=list)
    reading: FunctionReads = field(default_factory=FunctionReads)


class HostReads(Detector):
    """Tells tapes that another run has to check (`Sought`), at their first backward pass."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._views = Views()
        self._tapes: dict[Followed, _Reads] = {}

    def _of(self, tape: Followed) -> _Reads:
        found = self._tapes.get(tape)
        if found is None:
            found = self._tapes[tape] = _Reads()
        return found

    def lent(self, a: array, site: Site | None) -> None:
        if not a._info.floating:
            return
        self._views.lent(a, site)
        tape = self.program.current()
        if tape is None or tape.paths is None:
            return
        tape.catch_up()
        tape.touches.touch(a, True, self.program.aside.meets(a))
        if site is not None and (tape.touches.has(a) or tape.paths.depends(a)):
            self._of(tape).reads.append((site.span, read_name(site), a._packed))

    def recorded(self, tape: Followed, record: Record) -> None:
        known = self._of(tape)
        known.used |= bool(known.reads)
        if tape.paths is not None:
            known.seen.update(self._views.alive())
        if record.function is not None:
            known.functions.append((len(tape.tape.records) - 1, recorded_function(record)))
            if tape.paths is not None:
                known.reading.recorded(tape.tape, record, self.program.writes.clock)

    def began(self, tape: Followed, run: Pass) -> None:
        self._of(tape).reading.began(run)

    def before(self, tape: Followed, number: int) -> None:
        if self._of(tape).functions:
            self._of(tape).reading.before(number)

    def reading_in_pass(self, tape: Followed, arrays: Sequence[array]) -> None:
        self._of(tape).reading.looked_at(arrays, self.program.writes)

    def ended(self, tape: Followed, run: Pass) -> None:
        if tape.paths is not None:
            sought = self._sought(tape, self._of(tape), run)
            if sought is not None:
                tape.tell(sought)

    def pass_over(self, tape: Followed, done: bool) -> None:
        self._of(tape).reading.ended()

    def _sought(self, tape: Followed, known: _Reads, run: Pass) -> Sought | None:
        """What another run of the program would have to show, where only that can."""
        # Where the host read something before the tape, its total may be asked for.
        early = tape.tape.index == 0 and bool(self.program.early)
        if not (known.reads or known.seen or known.functions or early) or not run.seeds:
            return None  # without a seed, nobody knows what the gradient is of
        tape.catch_up(run.records)
        seen = _looked_through(tape, known)
        loose = not all(tape.touches.computed(a) for a, _ in run.seeds)
        known.used |= loose and bool(known.reads)
        if not (known.used or seen or known.functions or early):
            return None
        for a, _ in run.seeds:
            tape.touches.seeded(a)
        derivative, value = tape.touches.derivative(), value_of(run)
        if derivative is None or not np.isfinite([derivative, value]).all():
            return None
        tape.total = value, derivative
        if not (known.used or seen or known.functions):
            return None
        read = _read_by_host(tape, known)
        reads = tuple(dict.fromkeys(span for span, _ in read)) if known.used else ()
        inputs = tuple(dict.fromkeys(name for _, name in (*read, *seen) if name))
        lost = known.reading.found
        functions = tuple(replace(f, lost=lost.get(number)) for number, f in known.functions)
        views = tuple(dict.fromkeys(span for span, _ in seen))
        late = tape.touches.held_back
        return Sought(
            tape.tape.index, value, derivative, reads, functions, inputs, loose, views, late
        )


def _read_by_host(tape: Followed, known: _Reads) -> list[tuple[Span, str]]:
    """What the host read, but for what it overwrote then: views serve for both."""
    some = [x for x in known.reads if x[2] not in tape.touches.late] or known.reads
    return [(span, name) for span, name, _ in some]


def _looked_through(tape: Followed, known: _Reads) -> list[tuple[Span, str]]:
    """Views of what depends on inputs, which the host had while the tape recorded."""
    assert tape.paths is not None
    return [
        (v.span, v.name) for v in known.seen
        if (a := v.array()) is not None and a._packed not in tape.touches.late
        and (tape.touches.has(a) or tape.paths.depends(a))
    ]  # fmt: skip
