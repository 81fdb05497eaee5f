"""The monitor of a running program (`engine.tape.capture.Monitor`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from types import FrameType
from typing import Any

from engine.autograd.facts import Fact
from engine.autograd.watch.alone import alone, lock
from engine.autograd.watch.program import Program
from engine.autograd.watch.registry import detectors
from engine.diagnostics.site import call_site
from engine.runtime.array import array
from engine.runtime.events import Optimized
from engine.runtime.plan_parts import BoundLaunch
from engine.runtime.storage import Storage
from engine.tape.backward import Pass
from engine.tape.capture import CapturedTape, Monitor
from engine.tape.records.record import Record


class Witness(Monitor):
    """Tells detectors what a program does: they find what no check of recorded launches can see."""

    def __init__(self) -> None:
        self._program = Program(self, detectors())

    @property
    def facts(self) -> Sequence[Fact]:
        """What was found that belongs to no tape, or may; that of tapes is with them."""
        return self._program.facts

    # ---- arrays

    @alone
    def made(self, a: array) -> None:
        if not self._program.busy:
            self._program.creations.made(a)
            for d in self._program.listeners("made"):
                d.made(a)

    @alone
    def reading(self, arrays: Sequence[array], host: bool, written: Sequence[array] = ()) -> None:
        running = self._program.passes.get(get_ident())
        if running is not None:
            for d in self._program.listeners("reading_in_pass"):
                d.reading_in_pass(running, arrays)
        elif not self._program.closed:
            for d in self._program.listeners("reading"):
                d.reading(arrays, host, written)

    @alone
    def lent(self, a: array) -> None:
        site = call_site()
        for d in self._program.listeners("lent"):
            d.lent(a, site)

    @alone
    def asked(self, a: array, frame: FrameType) -> None:
        if not self._program.closed:
            for d in self._program.listeners("asked"):
                d.asked(a, frame)

    @alone
    def writing(self, memory: Storage, lo: int, hi: int) -> None:
        if not self._program.busy:
            for d in self._program.listeners("writing"):
                d.writing(memory, lo, hi)
            self._program.writes.note(memory, lo, hi)

    @alone
    def optimized(self, steps: Sequence[Optimized]) -> None:
        if not self._program.busy:
            for d in self._program.listeners("optimized"):
                d.optimized(steps)

    # ---- beside the tapes

    @alone
    def unrecorded(self, launch: BoundLaunch) -> None:
        program = self._program
        if program.busy:
            return
        for i in launch.plan.writes:
            if (a := launch.values[i]) is not None:
                program.aside.at(a.storage).put(a, None)
        program.look_at_gone()
        program.writes.launching(launch.site, launch.plan.kernel.key)
        for d in program.listeners("unrecorded"):
            d.unrecorded(launch)

    @alone
    def copied(self, dest: array, src: array, meant: bool, clone: bool) -> None:
        if not self._program.busy:
            for d in self._program.listeners("copied"):
                d.copied(dest, src, meant, clone)

    @alone
    def filled(self, dest: array) -> None:
        if not self._program.busy:
            for d in self._program.listeners("filled"):
                d.filled(dest)

    # ---- tapes

    @alone
    def recording(self, tape: CapturedTape, reads: Sequence[array], values: Sequence[Any]) -> None:
        followed = self._program.recording(tape)
        others = self._program.others(followed)
        if followed.paths is not None and (others or followed.touches.waits):
            followed.catch_up()
            for a in reads:
                if followed.touches.touch(a) is not None and others:
                    for d in self._program.listeners("first_read"):
                        d.first_read(followed, a)

    @alone
    def recorded(self, tape: CapturedTape, record: Record) -> None:
        followed = self._program.recording(tape)
        for d in self._program.listeners("recorded"):
            d.recorded(followed, record)
        followed.recorded(record, self._program.writes)

    def forgetting(self, tape: CapturedTape, records: Sequence[Record]) -> None:
        # Any thread may come here at any time, to free memory: it must not wait.
        self._program.gone.append((tape, records))
        if lock.taken_at_once():
            try:
                self._program.look_at_gone()
            finally:
                lock.leave()

    # ---- backward passes

    @alone
    def began(self, tape: CapturedTape, run: Pass) -> Callable[[int], None] | None:
        followed = self._program.of(tape)
        self._program.running(followed)
        try:
            for d in self._program.listeners("began"):
                d.began(followed, run)
        except MemoryError:  # a pass that could not be looked at leads to no facts
            return None
        followed.run = run

        def before(number: int) -> None:
            with lock:
                for d in self._program.listeners("before"):
                    d.before(followed, number)

        return before

    @alone
    def ended(self, tape: CapturedTape, done: bool) -> None:
        followed = self._program.of(tape)
        run = followed.run if done else None
        if run is not None:
            for d in self._program.listeners("ended"):
                d.ended(followed, run)
        for d in self._program.listeners("pass_over"):
            d.pass_over(followed, run is not None)
        if run is not None:
            followed.settled(run.records)
            self._program.has_run(followed)
        followed.run, followed.inputs = None, ()
        self._program.passes.pop(get_ident(), None)

    @alone
    def closed(self) -> None:
        self._program.closed = True
        for d in self._program.listeners("closed"):
            d.closed()
