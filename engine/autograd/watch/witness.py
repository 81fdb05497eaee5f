"""The monitor of a running program (`engine.tape.capture.Monitor`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from threading import get_ident
from types import FrameType
from typing import Any

import numpy as np

from engine.autograd.facts import Sought, Stale, Ungraded
from engine.autograd.tape.operations import NotReplayable
from engine.autograd.watch.accumulated import Accumulated, name_of
from engine.autograd.watch.alone import alone, lock
from engine.autograd.watch.beforehand import Beforehand
from engine.autograd.watch.chained import Chained, latest
from engine.autograd.watch.creations import Creations
from engine.autograd.watch.followed import Followed
from engine.autograd.watch.moved import Touches, value_of
from engine.autograd.watch.names import Names
from engine.autograd.watch.overwritten import OverwrittenReads
from engine.autograd.watch.paths import Paths, read_name, recorded_function
from engine.autograd.watch.places import WeakPlaces
from engine.autograd.watch.reach import Kind
from engine.autograd.watch.shared import SharedGradients
from engine.autograd.watch.ungraded import Asked
from engine.autograd.watch.unread import Mixture
from engine.autograd.watch.views import Views
from engine.autograd.watch.writes import Writes
from engine.diagnostics import EngineError, Span
from engine.diagnostics.site import Site, call_site
from engine.runtime.array import array
from engine.runtime.events import Optimized
from engine.runtime.plan_parts import BoundLaunch
from engine.runtime.storage import Storage
from engine.tape.backward import Pass
from engine.tape.capture import CapturedTape, Monitor, active_tape, passed_over
from engine.tape.outline import root_array
from engine.tape.records import launches
from engine.tape.records.record import Record

_ALL = -1  # no thread has that number
_EARLY = 256  # arrays that the host read before the first tape, kept to be looked at later


class Witness(Monitor):
    """Finds what no check of recorded launches can see: overwrites and gradients that mix."""

    def __init__(self) -> None:
        self._writes = Writes()
        self._accumulated = Accumulated()
        self._names = Names()
        self._beforehand = Beforehand(self._names)
        self._creations = Creations()
        self._chained = Chained()
        self._asked = Asked(self._creations)
        self._views = Views()
        # What launches off the tapes wrote.
        self._aside: WeakPlaces[None] = WeakPlaces()
        # What the host read before the first tape recorded anything.
        self._prelude = Touches()
        self._early: list[tuple[array, Span, str]] = []
        # The tape that recorded last: of each thread, and of all.
        self._last: dict[int, Followed] = {}
        self._tapes: dict[int, Followed] = {}
        self._not_run: list[Followed] = []
        # Threads whose backward pass runs, and its tape if that has functions.
        self._passes: dict[int, Followed | None] = {}
        self._closed = False
        # Tapes that are gone, to be looked at when no other thread is here.
        self._gone: list[tuple[CapturedTape, Sequence[Record]]] = []

    @property
    def _busy(self) -> bool:
        """Whether what happens now is part of a backward pass, or too late."""
        return self._closed or get_ident() in self._passes

    @alone
    def recording(self, tape: CapturedTape, reads: Sequence[array], values: Sequence[Any]) -> None:
        followed = self._recording(tape)
        others = len(self._not_run) > 1 and self._others(followed)
        if followed.paths is not None and (others or followed.touches.waits):
            followed.catch_up()
            for a in reads:
                if followed.touches.touch(a) is not None and others:
                    self._chained.read(tape, a, latest(self._tapes.values()))

    def _others(self, followed: Followed) -> bool:
        """Whether there are tapes that this one may go on from."""
        return any(f is not followed and f.paths is not None for f in self._not_run)

    @alone
    def reading(self, arrays: Sequence[array], host: bool, written: Sequence[array] = ()) -> None:
        running = self._passes.get(get_ident())
        if running is not None:
            running.reading.looked_at(arrays, self._writes)
        if not self._busy:
            for a in arrays:
                self._chained.looked_at(a)
            self._accumulated.reading(arrays, written)
            if not self._accumulated.unread.empty:
                self._stale(self._accumulated.unread.reading(arrays, host, written))

    @alone
    def optimized(self, steps: Sequence[Optimized]) -> None:
        if not self._busy:
            self._accumulated.optimized(steps)
            if not self._accumulated.unread.empty:
                self._stale(self._accumulated.unread.optimized(steps))

    @alone
    def asked(self, a: array, frame: FrameType) -> None:
        if not self._closed:
            self._asked.asked(a, frame, [f.tape for f in self._tapes.values()])

    def ungraded(self) -> Sequence[Ungraded]:
        """Gradients that the program read, and that were None for want of requires_grad."""
        return self._asked.facts

    def _stale(self, mixtures: Iterable[Mixture]) -> None:
        """Notes mixtures that somebody has read."""
        for m in mixtures:
            followed = self._of(m.tape)
            followed.stale.append(m.fact)
            followed.publish()

    @alone
    def lent(self, a: array) -> None:
        site = call_site()
        if not self._tapes and not self._busy and active_tape(self) is None:
            self._lent_early(a, site)
        if not a._info.floating:
            return
        self._views.lent(a, site)
        followed = self._current()
        if followed is None or followed.paths is None:
            return
        followed.catch_up()
        followed.touches.touch(a, True, self._aside.meets(a))
        if site is not None and (followed.touches.has(a) or followed.paths.depends(a)):
            followed.reads.append((site.span, read_name(site), a._packed))

    def _lent_early(self, a: array, site: Site | None) -> None:
        if a.requires_grad and site is not None and len(self._early) < _EARLY:
            self._prelude.touch(a, True, self._aside.meets(a))
            self._early.append((root_array(a), site.span, read_name(site)))

    def _current(self) -> Followed | None:
        """The tape that what happens now belongs to: it records, or did last and is to run."""
        if self._busy:
            return None
        tape = active_tape(self)
        if tape is not None:
            return self._of(tape)
        return self._last.get(get_ident()) or self._last.get(_ALL)

    def _recording(self, tape: CapturedTape) -> Followed:
        followed = self._last[get_ident()] = self._last[_ALL] = self._of(tape)
        return followed

    @alone
    def recorded(self, tape: CapturedTape, record: Record) -> None:
        followed = self._recording(tape)
        followed.used |= bool(followed.reads)
        if followed.paths is not None:
            followed.seen.update(self._views.alive())
        if record.function is not None:
            followed.functions.append((len(tape.records) - 1, recorded_function(record)))
            if followed.paths is not None:
                followed.reading.recorded(tape, record, self._writes.clock)
        followed.launches += record.launch is not None
        number = followed.launches - 1 if record.launch is not None else -1
        self._writes.recorded(record.written, record._site, record.name, tape.index, number)
        followed.clocks.append(self._writes.clock)
        self._beforehand.recorded(tape, record)

    def forgetting(self, tape: CapturedTape, records: Sequence[Record]) -> None:
        # Any thread may come here at any time, to free memory: it must not wait.
        self._gone.append((tape, records))
        if lock.taken_at_once():
            try:
                self._look_at_gone()
            finally:
                lock.leave()

    def _look_at_gone(self) -> None:
        while self._gone:
            tape, records = self._gone.pop()
            followed = self._tapes.get(id(tape))
            if followed is not None and followed.paths is not None:
                followed.paths.follow(records)
            self._beforehand.follow(tape, records)

    @alone
    def unrecorded(self, launch: BoundLaunch) -> None:
        if not self._busy:
            for i in launch.plan.writes:
                if (a := launch.values[i]) is not None:
                    self._aside.at(a.storage).put(a, None)
            self._look_at_gone()
            self._writes.launching(launch.site, launch.plan.kernel.key)
            if passed_over(self) is None:  # else the tape tells of it, to which it belongs
                self._beforehand.launched(launch)
        own, at, kind = self._passed_over()
        for paths in self._open():
            if paths is own:
                paths.replayed(launch, at, kind)
            else:
                paths.launched(launch)

    @alone
    def copied(self, dest: array, src: array, meant: bool, clone: bool) -> None:
        own, at, _ = self._passed_over()
        for paths in self._open():
            if paths is own and not meant:
                paths.replayed_copy(dest, src, at)
            else:
                paths.copied(dest, src, meant, clone)

    def _passed_over(self) -> tuple[Paths | None, Site | None, Kind]:
        """The ways of the tape in whose block a graph or command runs, the call, and its kind."""
        found = None if self._busy else passed_over(self)
        if found is None:
            return None, None, "graph"
        tape, over = found
        return self._of(tape).paths, over.site, over.kind

    @alone
    def made(self, a: array) -> None:
        if not self._busy:
            self._creations.made(a)

    @alone
    def filled(self, dest: array) -> None:
        for paths in self._open():
            paths.filled(dest)

    def _open(self) -> Iterator[Paths]:
        """The ways of all tapes that have not run backward, and may."""
        if self._busy:
            return
        for f in list(self._not_run):
            if f.paths is not None and f.tape.gone:
                f.paths = None
            if f.paths is None:
                self._not_run.remove(f)
            else:
                yield f.paths

    @alone
    def writing(self, memory: Storage, lo: int, hi: int) -> None:
        if not self._busy:
            if not self._accumulated.unread.empty:
                self._stale(self._accumulated.unread.settle())
            self._writes.note(memory, lo, hi)

    @alone
    def began(self, tape: CapturedTape, run: Pass) -> Callable[[int], None] | None:
        try:
            return self._began(tape, run)
        except MemoryError:  # what could not be looked at is not told of
            self._of(tape).overwritten = None
            self._of(tape).shared = None
            return None

    def _began(self, tape: CapturedTape, run: Pass) -> Callable[[int], None]:
        followed = self._of(tape)
        self._passes[get_ident()] = followed if followed.functions else None
        self._last = {k: f for k, f in self._last.items() if f is not followed}
        followed.run = run
        self._asked.began(tape)
        self._stale(self._accumulated.began(tape, run))
        first = followed.overwritten is None
        if followed.overwritten is None:
            followed.overwritten = OverwrittenReads(self._writes)
            followed.shared = SharedGradients(run)
        followed.overwritten.began(run, followed.clocks)
        if run.mixed is not None:
            followed.stale.append(_saved(run))
        elif not first or followed.overwritten.outside:
            self._mixture(followed, run, first)
        followed.reading.began(run)
        overwritten = followed.overwritten

        def before(number: int) -> None:
            with lock:
                overwritten.before(number)
                if followed.functions:
                    followed.reading.before(number)

        return before

    @alone
    def ended(self, tape: CapturedTape, done: bool) -> None:
        followed = self._of(tape)
        followed.reading.ended()
        if not done:
            self._accumulated.failed(tape)
        elif followed.run is not None and followed.overwritten is not None:
            inputs = self._accumulated.ended(tape, followed.run)
            if followed.shared is not None:
                run = followed.run
                followed.facts += filter(None, [followed.shared.found(lambda a: name_of(run, a))])
                followed.shared = None
            self._chained.ended(tape, followed.run, followed.paths, inputs)
            followed.look(followed.run.records)
            if followed.paths is not None:
                followed.broken += followed.paths.broken(followed.run)
                early = tape.index == 0 and bool(self._early)
                followed.sought = _sought(tape, followed, followed.run, early)
                followed.paths = None
                self._not_run = [f for f in self._not_run if f is not followed]
            followed.settled(followed.run.records)
            followed.publish()
        if followed.overwritten is not None:
            followed.overwritten.ended()
        followed.run = followed.shared = None
        self._look_back()
        self._passes.pop(get_ident(), None)

    @alone
    def closed(self) -> None:
        self._stale(self._accumulated.unread.closed())
        self._look_back()
        for tape, broken in self._chained.broken():
            self._of(tape).broken.append(broken)
            tape.facts.append(broken)
        for tape, ungraded in self._asked.of_tapes():
            tape.facts.append(ungraded)
        self._closed = True
        for followed in self._tapes.values():
            self._rehearse(followed)

    def _rehearse(self, followed: Followed) -> None:
        """Looks at a tape that has run no backward pass and still may."""
        overwritten = OverwrittenReads(self._writes)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run = followed.tape.rehearsal()
                if run is None:
                    return
                overwritten.rehearse(run, followed.clocks)
        except (EngineError, MemoryError):
            return
        followed.tape.facts += overwritten.facts

    def _look_back(self) -> None:
        for tape, broken in self._beforehand.broken():
            self._of(tape).broken.append(broken)
            tape.facts.append(broken)
        self._look_early()

    def _look_early(self) -> None:
        """Looks for inputs that only the host read, before the first tape, and their gradients."""
        first = next((f for f in self._tapes.values() if f.tape.index == 0), None)
        if first is None or first.total is None or first.sought is not None:
            return
        wanted = [x for x in self._early if self._beforehand.forgotten(x[0])]
        if wanted:
            names = tuple(dict.fromkeys(name for _, _, name in wanted if name))
            sites = tuple(dict.fromkeys(span for _, span, _ in wanted))
            first.sought = Sought(0, *first.total, sites, (), names)
            first.tape.facts.append(first.sought)
            self._early.clear()

    def _mixture(self, followed: Followed, run: Pass, first: bool) -> None:
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

    def _of(self, tape: CapturedTape) -> Followed:
        if self._gone:
            self._look_at_gone()
        found = self._tapes.get(id(tape))
        if found is None:
            found = self._tapes[id(tape)] = Followed(tape, self._names, self._creations)
            self._not_run.append(found)
            if len(self._tapes) == 1 and tape.index == 0:
                found.touches = self._prelude
                found.touches.begin()
        return found


def _changed(run: Pass) -> bool:
    """Whether some launch's input may not be what it was at its launch."""
    return any(
        r.values[i] is not None and not r.values[i].storage.unchanged(hold)
        for r in launches(run.records)
        for i, hold in r.holds.items()
    )


def _sought(tape: CapturedTape, followed: Followed, run: Pass, early: bool) -> Sought | None:
    """What another run of the program would have to show, where only that can.

    early: whether the host read something before the tape, so that its total may be asked for.
    """
    if not (followed.reads or followed.seen or followed.functions or early) or not run.seeds:
        return None  # without a seed, nobody knows what the gradient is of
    followed.catch_up(run.records)
    seen = followed.looked_through()
    loose = not all(followed.touches.computed(a) for a, _ in run.seeds)
    followed.used |= loose and bool(followed.reads)
    if not (followed.used or seen or followed.functions or early):
        return None
    for a, _ in run.seeds:
        followed.touches.seeded(a)
    derivative, value = followed.touches.derivative(), value_of(run)
    if derivative is None or not np.isfinite([derivative, value]).all():
        return None
    followed.total = value, derivative
    if not (followed.used or seen or followed.functions):
        return None
    read = followed.read_by_host()
    reads = tuple(dict.fromkeys(span for span, _ in read)) if followed.used else ()
    inputs = tuple(dict.fromkeys(name for _, name in (*read, *seen) if name))
    lost = followed.reading.found
    functions = tuple(replace(f, lost=lost.get(number)) for number, f in followed.functions)
    views = tuple(dict.fromkeys(span for span, _ in seen))
    late = followed.touches.held_back
    return Sought(tape.index, value, derivative, reads, functions, inputs, loose, views, late)


def _saved(run: Pass) -> Stale:
    site = None if run.site is None else run.site.span
    return Stale("saved", "", site, text=run.mixed or "")
