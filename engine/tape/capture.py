"""Captures every tape of a program, for tools that examine a run afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field
from typing import TYPE_CHECKING, Any
from weakref import ref

from engine.classes import dataclass
from engine.diagnostics.site import Site, call_site
from engine.locks import Lock
from engine.runtime import events
from engine.runtime.array import array
from engine.tape.backward import Pass
from engine.tape.captured_pass import Backward, ran
from engine.tape.memory import memory_of
from engine.tape.tracing import Budget, Tracer, Watch

if TYPE_CHECKING:
    from engine.runtime.kernel import Kernel
    from engine.tape.records import Record
    from engine.tape.tape import Tape

# Called before a launch runs: the kernel, how many launches came before, the user's call.
OnLaunch = Callable[["Kernel", int, "Site | None"], None]


class Monitor(events.Observer):
    """Observes a program for a capture. Of tapes it is told as the capture has them."""

    def recording(self, tape: CapturedTape, reads: Sequence[array], values: Sequence[Any]) -> None:
        """A tape is about to run something that it records: what it just reads; all arguments."""

    def recorded(self, tape: CapturedTape, record: Record) -> None:
        """A tape got a record, which has run."""

    def forgetting(self, tape: CapturedTape, records: Sequence[Record]) -> None:
        """A tape is about to forget its records: it is reset, or is no more."""

    def began(self, tape: CapturedTape, run: Pass) -> Callable[[int], None] | None:
        """A backward pass begins. What this gives is called before each record of it runs."""
        return None

    def ended(self, tape: CapturedTape, done: bool) -> None:
        """The backward pass that began last came to its end, or was left by an exception."""

    def closed(self) -> None:
        """The capture ends."""


@dataclass(slots=True)
class CapturedTape:
    """What one tape recorded between two resets. Outlives the tape, and its arrays.

    records: see `engine.tape.records.captured`; they cannot be run backwards. first_backward: the
    first backward pass that was run, None where none was. passes: how many were. facts: what the
    capture's monitor found out. numbers: for each record, how many launches had begun by then, on
    a tape or not. tracer: what else is noted, where that was asked for. source: of the records.
    """

    index: int
    capture: Capture = field(repr=False)
    records: list[Record] = field(default_factory=list)
    first_backward: Backward | None = None
    passes: int = 0
    facts: list[Any] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    tracer: Tracer | None = None
    source: ref[Source] | None = field(default=None, repr=False)

    @property
    def gone(self) -> bool:
        """Whether the program can no longer run it backward: its tape is gone, or was reset."""
        return self._source() is None

    @property
    def live(self) -> Sequence[Record]:
        """The records themselves, on the program's own arrays; none where they are gone."""
        source = self._source()
        return () if source is None or source.records is None else source.records

    def rehearsal(self) -> Pass | None:
        """The backward pass that the program could run now, if it has run none; without seeds.

        None where it has, or cannot. Raises TapeError where the pass would.
        """
        source = self._source()
        if source is None or self.passes or len(self.records) != len(self.live):
            return None
        tape = source.tape()
        return Pass(self.live, (), {} if tape is None else tape._restorations(), None, None)

    def look(self) -> None:
        """Takes note of arrays that came to require a gradient, while they are there."""
        for r in self.records:
            for a in r.arrays:
                a.requires_grad  # noqa: B018

    def _source(self) -> Source | None:
        source = None if self.source is None else self.source()
        has = source is not None and source.captured is self and source.records is not None
        return source if has else None


class Source:
    """What a capture keeps with a tape, and what goes with it: the records that it has now.

    captured: what the capture has of these; None before it has anything. records: the tape's own
    list, which tells whether it was reset since; None where it has forgotten it.
    """

    __slots__ = ("__weakref__", "before", "captured", "monitor", "records", "runs", "tape", "watch")

    def __init__(self, tape: Tape, monitor: Monitor | None) -> None:
        self.tape = ref(tape)  # what observes it must not keep it alive
        self.monitor = monitor
        self.records: list[Record] | None = None
        self.captured: CapturedTape | None = None
        # While a pass runs that the monitor is told of.
        self.runs = False
        self.before: Callable[[int], None] | None = None
        self.watch: Watch | None = None

    def forget(self) -> None:
        """To be called when the tape forgets its records."""
        records, self.records = self.records, None
        t = self.captured
        if records is not None and t is not None and t.capture.open and self.monitor is not None:
            self.monitor.forgetting(t, records)

    def __del__(self) -> None:
        self.forget()


@dataclass(slots=True, eq=False)
class Capture(events.Observer):
    """Everything captured so far. launches: how many launches ran, on a tape or not.

    wants: says for a kernel's key whether to copy what its launches read; None for all.
    traces: how many more operations to trace; budget: for their names. late: see `capturing`.
    """

    tapes: list[CapturedTape] = field(default_factory=list)
    launches: int = 0
    on_launch: OnLaunch | None = None
    wants: Callable[[str], bool] | None = None
    monitor: Monitor | None = None
    open: bool = True
    traces: int = 0
    budget: Budget = field(default_factory=Budget)
    late: bool = False

    keeps = True

    def of(self, tape: Any) -> CapturedTape | None:
        """What this capture has of a tape; None where the tape recorded before it, or after."""
        source = self._source(tape)
        return None if source is None else source.captured

    @property
    def bytes(self) -> int:
        """Memory that the copies of inputs take up."""
        return memory_of([r for tape in self.tapes for r in tape.records]).inputs

    # ---- as an observer

    def launching(self, kernel: Kernel, dim: tuple[int, ...], values: list[Any] | None) -> None:
        del dim, values
        with _lock:
            index = self.launches
            self.launches += 1
        if self.on_launch is not None:
            self.on_launch(kernel, index, call_site(2))

    def follows(self, tape: Any) -> bool:
        if not self.open:
            return False
        notes = tape._notes
        if not notes or self in notes:
            return bool(notes)
        records = tape._made()
        if any(source.records is records for source in notes.values()):
            return False
        self._noted(tape)  # others have followed it, and it has begun anew since
        return True

    def copies(self, tape: Any, kernel: str) -> bool:
        return self.wants is None or self.wants(kernel)

    def tape_made(self, tape: Any) -> None:
        self._begin(self._noted(tape), tape._made())

    def tape_entered(self, tape: Any) -> None:
        if not self.late or self._source(tape) is not None:
            return
        records, source = tape._made(), self._noted(tape)
        t = self._begin(source, records, not records)
        for r in records:
            t.records.append(r.captured(self.copies(tape, r.name)))
            t.numbers.append(0)  # before all launches that the capture knows of
            if self.monitor is not None:
                self.monitor.recorded(t, r)

    def tape_recording(self, tape: Any, reads: Sequence[array], values: Sequence[Any]) -> None:
        t = self._present(tape)
        if self.monitor is not None:
            self.monitor.recording(t, reads, values)

    def tape_recorded(self, tape: Any, record: Any, seconds: float | None) -> None:
        t = self._present(tape)
        seen = record.captured(self.copies(tape, record.name))
        if t.tracer is not None:
            self.traces -= 1
            t.tracer.add(record, seconds)
        t.records.append(seen)
        t.numbers.append(self.launches)
        if self.monitor is not None:
            self.monitor.recorded(t, record)

    def tape_seeded(self, tape: Any) -> None:
        t = self.of(tape)
        if t is not None:
            t.look()
        if t is not None and t.tracer is not None:
            t.tracer.look(tape._scopes.scopes)

    def tape_left(self, tape: Any) -> None:
        t = self.of(tape)
        if t is not None and t.tracer is not None:
            t.tracer.left(tape._scopes.scopes, tape._own_memory)

    def tape_reversing(self, tape: Any, run: Pass) -> None:
        source = self._source(tape)
        assert source is not None
        t = source.captured
        if t is None or run.records is not source.records:
            return
        if len(t.records) != len(run.records):
            return
        if t.tracer is not None and not t.tracer.ran:
            source.watch = t.tracer.watch()
        if t.first_backward is None:
            t.first_backward = ran(run.records, [a for a, _ in run.seeds], run.restored)
        t.passes += 1
        source.runs = True
        source.before = None if self.monitor is None else self.monitor.began(t, run)

    def record_reversing(self, tape: Any, number: int, record: Any) -> None:
        source = self._source(tape)
        assert source is not None
        if source.before is not None:
            source.before(number)
        if source.watch is not None:
            source.watch.before(number, record)

    def record_reversed(self, tape: Any) -> None:
        source = self._source(tape)
        if source is not None and source.watch is not None:
            source.watch.after()

    def tape_reversed(self, tape: Any, done: bool) -> None:
        source = self._source(tape)
        assert source is not None
        t, watch, runs = source.captured, source.watch, source.runs
        source.before, source.watch, source.runs = None, None, False
        if t is None:
            return
        if self.monitor is not None and runs:
            self.monitor.ended(t, done)
        if done and watch is not None and t.tracer is not None:
            t.tracer.memory = tape._own_memory()

    def tape_forgot(self, tape: Any) -> None:
        source = self._source(tape)
        if source is not None:
            source.forget()

    # ---- what it keeps with tapes

    def _source(self, tape: Any) -> Source | None:
        notes = getattr(tape, "_notes", None)
        return notes.get(self) if notes else None

    def _noted(self, tape: Any) -> Source:
        if tape._notes is None:
            tape._notes = {}
        source = tape._notes[self] = Source(tape, self.monitor)
        return source

    def _present(self, tape: Any) -> CapturedTape:
        """What it has of a tape's present records."""
        source, records = self._source(tape), tape._made()
        assert source is not None
        if source.captured is None or source.records is not records:
            return self._begin(source, records)
        return source.captured

    def _begin(self, source: Source, records: list[Record], traced: bool = True) -> CapturedTape:
        with _lock:
            t = CapturedTape(len(self.tapes), self, source=ref(source))
            self.tapes.append(t)
        if self.traces > 0 and traced:
            t.tracer = Tracer(self.traces, self.budget)
        source.records, source.captured = records, t
        return t


_lock = Lock()


def active_tape(monitor: Monitor) -> CapturedTape | None:
    """The tape that records now, as a monitor's capture has it; None where none does."""
    return _captured_for(monitor, events.tape())


def passed_over(monitor: Monitor) -> tuple[CapturedTape, events.PassedOver] | None:
    """The tape in whose block something runs that it does not record, and what that is."""
    found = events.passed_over()
    tape = None if found is None else _captured_for(monitor, found.tape)
    return None if found is None or tape is None else (tape, found)


def _captured_for(monitor: Monitor, tape: Any) -> CapturedTape | None:
    for source in (getattr(tape, "_notes", None) or {}).values():
        if source.monitor is monitor:
            return source.captured  # type: ignore[no-any-return]
    return None


@contextmanager
def capturing(
    on_launch: OnLaunch | None = None,
    wants: Callable[[str], bool] | None = None,
    watcher: Monitor | None = None,
    traces: int = 0,
    late: bool = False,
) -> Iterator[Capture]:
    """While active, every tape that is made is captured, with copies of all launch inputs.

    What is captured outlives its tape (`Tape.reset` included) and keeps no array of the
    program alive. The copies take up to `config.snapshot_limit_bytes`; inputs of launches
    beyond that are lost. Captures may be nested: each sees every tape made while it is active.

    on_launch: called before each launch runs, also of launches off any tape. wants: says
    for a kernel's key whether its launches will be checked; what others read is not copied.
    watcher: is told what the program does, and may add `facts` to tapes. traces: how many
    operations to trace (see `engine.autograd.trace`), so that one long program costs no more than
    that. late: captures tapes that were made before, too, from where they are entered again, with
    all that they have recorded by then.
    """
    capture = Capture(on_launch=on_launch, wants=wants, monitor=watcher, traces=traces, late=late)
    watched = nullcontext() if watcher is None else events.observing(watcher)
    with events.observing(capture), watched:
        try:
            yield capture
        finally:
            try:
                if watcher is not None:
                    watcher.closed()
            finally:
                capture.open = False
