"""Captures every tape of a program, for tools that examine a run afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal
from weakref import ref

import numpy as np

from engine.classes import Protocol, dataclass
from engine.diagnostics.site import Site, call_site
from engine.locks import Lock
from engine.runtime import recording, storage
from engine.runtime.array import array
from engine.runtime.storage import Storage

# Every tape looks whether something captures; what only captures need is imported late.
if TYPE_CHECKING:
    from types import FrameType

    from engine.runtime.kernel import Kernel
    from engine.runtime.plan_parts import Call
    from engine.runtime.recording import Optimized
    from engine.tape.captured import Backward
    from engine.tape.memory import MemoryUse
    from engine.tape.records import Record
    from engine.tape.restoration import Restoration
    from engine.tape.scopes import Scope
    from engine.tape.tracing import Budget, Tracer, Watch

# Called before a launch runs: the kernel, how many launches came before, the user's call.
OnLaunch = Callable[["Kernel", int, "Site | None"], None]


@dataclass(frozen=True, slots=True)
class Pass:
    """A backward pass that is about to run, on the user's own arrays.

    seeds: arrays with their cotangents, NumPy arrays or a number for all elements. restored: what
    it restores, by position among the records. mixed: what the tape warns of, if it does.
    """

    records: Sequence[Record]
    seeds: Sequence[tuple[array, np.ndarray[Any, Any] | float]]
    restored: Mapping[int, Sequence[Restoration]]
    mixed: str | None
    site: Site | None


class Watcher(Protocol):
    """Watches the program while it runs, for a capture."""

    def recording(self, tape: CapturedTape, reads: Sequence[array], values: Sequence[Any]) -> None:
        """A tape is about to run something that it records: what it just reads; all arguments."""

    def recorded(self, tape: CapturedTape, record: Record) -> None:
        """A tape got a record, which has run."""

    def forgetting(self, tape: CapturedTape, records: Sequence[Record]) -> None:
        """A tape is about to forget its records: it is reset, or is no more."""

    def lent(self, a: array) -> None:
        """The host is about to read an array."""

    def reading(self, arrays: Sequence[array], host: bool, written: Sequence[array] = ()) -> None:
        """Arrays are about to be read; by the host, which may write them too, or by a launch.

        written: what that launch writes.
        """

    def optimized(self, steps: Sequence[Optimized]) -> None:
        """An optimizer of another framework has made a step."""

    def asked(self, a: array, frame: FrameType) -> None:
        """A program asks for the gradient of an array that requires none. frame: what asks."""

    def launched(self, call: Call, site: Site | None) -> None:
        """A launch is about to run off any tape, though not on request."""

    def copied(self, dest: array, src: array, meant: bool, clone: bool) -> None:
        """A copy that no tape records; see `engine.runtime.recording.Bystander`."""

    def filled(self, dest: array) -> None:
        """All elements of an array are about to get one value, off any tape."""

    def made(self, a: array) -> None:
        """A program has made an array, by `zeros`, `array` and their like."""

    def wrote(self, memory: Storage, lo: int, hi: int) -> None:
        """Bytes (by address) are about to change, by anything that the engine does."""

    def began(self, tape: CapturedTape, run: Pass) -> Callable[[int], None] | None:
        """A backward pass begins. What this gives is called before each record of it runs."""

    def ended(self, tape: CapturedTape, done: bool) -> None:
        """The backward pass that began last came to its end, or was left by an exception."""

    def closed(self) -> None:
        """The capture ends."""


@dataclass(slots=True)
class CapturedTape:
    """What one tape recorded between two resets. Outlives the tape, and its arrays.

    records: see `engine.tape.captured`; they cannot be run backwards. first_backward: the
    first backward pass that was run, None where none was. passes: how many were. facts: what the
    capture's watcher found out. numbers: for each record, how many launches had begun by then, on
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
    source: ref[Captures] | None = field(default=None, repr=False)

    @property
    def gone(self) -> bool:
        """Whether the program can no longer run it backward: its tape is gone, or was reset."""
        source = None if self.source is None else self.source()
        return source is None or not source.has(self)

    @property
    def live(self) -> Sequence[Record]:
        """The records themselves, on the program's own arrays; none where they are gone."""
        source = None if self.source is None else self.source()
        return () if source is None else source.live(self)

    def rehearsal(self) -> Pass | None:
        """The backward pass that the program could run now, if it has run none; without seeds.

        None where it has, or cannot. Raises TapeError where the pass would.
        """
        source = None if self.source is None else self.source()
        return None if source is None or self.passes else source.rehearsal(self)

    def look(self) -> None:
        """Takes note of arrays that came to require a gradient, while they are there."""
        for r in self.records:
            for a in r.arrays:
                a.requires_grad  # noqa: B018


def _budget() -> Budget:
    from engine.tape.tracing import Budget

    return Budget()


@dataclass(slots=True)
class Capture:
    """Everything captured so far. launches: how many launches ran, on a tape or not.

    wants: says for a kernel's key whether to copy what its launches read; None for all.
    traces: how many more operations to trace; budget: for their names. late: see `capturing`.
    """

    tapes: list[CapturedTape] = field(default_factory=list)
    launches: int = 0
    on_launch: OnLaunch | None = None
    wants: Callable[[str], bool] | None = None
    watcher: Watcher | None = None
    open: bool = True
    traces: int = 0
    budget: Budget = field(default_factory=_budget)
    late: bool = False

    def copies(self, kernel: str) -> bool:
        """Whether to copy what launches of a kernel read."""
        return self.open and (self.wants is None or self.wants(kernel))

    def of(self, tape: Any) -> CapturedTape | None:
        """What this capture has of a tape; None where the tape recorded before it, or after."""
        captures = getattr(tape, "_captures", None)
        return captures.kept_by(self) if isinstance(captures, Captures) else None

    @property
    def bytes(self) -> int:
        """Memory that the copies of inputs take up."""
        from engine.tape.memory import memory_of

        return memory_of([r for tape in self.tapes for r in tape.records]).inputs

    def _observe(self, kernel: Kernel, dim: tuple[int, ...]) -> None:
        del dim
        with _lock:
            index = self.launches
            self.launches += 1
        if self.on_launch is not None:
            self.on_launch(kernel, index, call_site(2))


# Of the whole process, not of a context: tapes made in any thread are captured. Several may be
# open: that of a tool around the program, and the program's own.
_open: list[Capture] = []
_lock = Lock()


class Source(Protocol):
    """A tape, as its listeners need it."""

    def _restored(self) -> Mapping[int, Sequence[Restoration]]:
        """What a backward pass would restore now, by position among the records."""


class Captures:
    """Where one tape's records go: to each capture that was open when recording began."""

    __slots__ = ("__weakref__", "_records", "_source", "_tapes", "_traced")

    def __init__(self, records: list[Record], source: Source, late: bool = False) -> None:
        """late: what is open now does not see it, unless it `join`s."""
        self._source = ref(source)  # what listens must not keep the tape alive
        self._start(records)
        if not late:
            self._begin(records)

    def _start(self, records: list[Record] | None) -> None:
        # The list tells whether the tape was reset since.
        self._records = records
        self._tapes: list[CapturedTape] = []
        self._traced = False

    def _begin(self, records: list[Record]) -> None:
        self._start(records)
        if not _open:
            return
        with _lock:
            self._tapes = [CapturedTape(len(c.tapes), c, source=ref(self)) for c in _open]
            for t in self._tapes:
                if t.capture.traces > 0:
                    t.tracer = _tracer(t.capture)
                t.capture.tapes.append(t)
        self._traced = any(t.tracer is not None for t in self._tapes)

    def __bool__(self) -> bool:
        return bool(self._tapes)

    def has(self, tape: CapturedTape) -> bool:
        """Whether the tape's present records go there."""
        return self._records is not None and any(t is tape for t in self._tapes)

    def live(self, tape: CapturedTape) -> Sequence[Record]:
        """See `CapturedTape.live`."""
        return self._records if self._records is not None and self.has(tape) else ()

    def rehearsal(self, tape: CapturedTape) -> Pass | None:
        """See `CapturedTape.rehearsal`."""
        records = self._records
        if records is None or not self.has(tape) or len(tape.records) != len(records):
            return None
        source = self._source()
        return Pass(records, (), {} if source is None else source._restored(), None, None)

    def copies(self, kernel: str) -> bool:
        """Whether anyone needs what launches of a kernel read."""
        return any(t.capture.copies(kernel) for t in self._tapes)

    def recording(
        self, reads: Sequence[array], values: Sequence[Any], records: list[Record]
    ) -> None:
        """Tells of something that is about to run, and to be recorded."""
        if records is not self._records:
            self._begin(records)
        for t in self._tapes:
            if t.capture.open and t.capture.watcher is not None:
                t.capture.watcher.recording(t, reads, values)

    def join(self, records: list[Record]) -> None:
        """To be called where a block of recording begins.

        Captures of late tapes that were opened since this one was made get what it has recorded.
        """
        if not _open:
            return
        late = [c for c in _open if c.late and not any(t.capture is c for t in self._tapes)]
        if not late or (records is not self._records and self._tapes):
            return  # all know it, or will when it records
        self._records = records
        with _lock:
            new = [CapturedTape(len(c.tapes), c, source=ref(self)) for c in late]
            for t in new:
                t.capture.tapes.append(t)
            self._tapes = [t for t in self._tapes if t.capture.open] + new
        from engine.tape.captured import captured

        for t in new:
            if t.capture.traces > 0 and not records:
                t.tracer = _tracer(t.capture)
            for r in records:
                t.records.append(captured(r, t.capture.copies(r.name)))
                t.numbers.append(0)  # before all launches that the capture knows of
                if t.capture.watcher is not None:
                    t.capture.watcher.recorded(t, r)
        self._traced = any(t.tracer is not None for t in self._tapes)

    def kept_by(self, capture: Capture) -> CapturedTape | None:
        """What a capture has of the tape."""
        return next((t for t in self._tapes if t.capture is capture), None)

    def watched_by(self, watcher: Watcher) -> CapturedTape | None:
        """What a watcher's capture has of the tape."""
        return next((t for t in self._tapes if t.capture.watcher is watcher), None)

    def add(self, record: Record, records: list[Record], seconds: float | None = None) -> None:
        """Tells of a record that is about to be added to the tape's records.

        seconds: what the operation took.
        """
        if not self._tapes:
            return
        if records is not self._records:
            self._begin(records)
        from engine.tape.captured import captured

        seen = None
        for t in self._tapes:
            if t.capture.open:
                seen = seen or captured(record, self.copies(record.name))
                if t.tracer is not None:
                    t.capture.traces -= 1
                    t.tracer.add(record, seconds)
                t.records.append(seen)
                t.numbers.append(t.capture.launches)
                if t.capture.watcher is not None:
                    t.capture.watcher.recorded(t, record)

    def look(self, scopes: Sequence[Scope] = ()) -> None:
        """To be called before a backward pass."""
        for t in self._tapes:
            if t.capture.open:
                t.look()
                if t.tracer is not None:
                    t.tracer.look(scopes)

    def left(self, scopes: Sequence[Scope], memory: Callable[[], MemoryUse]) -> None:
        """To be called where a recording block ends. memory: gives what the tape takes up."""
        if self._traced:
            for t in self._tapes:
                if t.capture.open and t.tracer is not None:
                    t.tracer.left(scopes, memory)

    def watch(self, records: list[Record]) -> Watch | None:
        """What runs the first backward pass of a tape that is traced; before `ran` is called."""
        if not self._traced or records is not self._records:
            return None
        for t in self._tapes:
            new = t.tracer is not None and not t.tracer.ran
            if new and t.capture.open and len(t.records) == len(records):
                assert t.tracer is not None
                return t.tracer.watch()
        return None

    def watched(self, memory: Callable[[], MemoryUse]) -> None:
        """To be called after that pass."""
        for t in self._tapes:
            if t.tracer is not None and t.capture.open:
                t.tracer.memory = memory()

    def ran(self, run: Pass) -> list[Callable[[int], None]]:
        """To be called when a backward pass starts; gives what to call before each record."""
        out: list[Callable[[int], None]] = []
        if run.records is not self._records:
            return out
        live = [t for t in self._tapes if t.capture.open and len(t.records) == len(run.records)]
        new = [t for t in live if t.first_backward is None]
        if new:
            from engine.tape.captured import ran

            note = ran(run.records, [a for a, _ in run.seeds], run.restored)
            for t in new:
                t.first_backward = note
        for t in live:
            t.passes += 1
            if t.capture.watcher is not None:
                before = t.capture.watcher.began(t, run)
                if before is not None:
                    out.append(before)
        return out

    def ended(self, done: bool) -> None:
        """To be called when it has come to its end. done: no exception ended it."""
        for t in self._tapes:
            if t.capture.open and t.capture.watcher is not None and t.passes:
                t.capture.watcher.ended(t, done)

    def forget(self) -> None:
        """To be called when the tape forgets its records."""
        if self._records is not None:
            for t in self._tapes:
                if t.capture.open and t.capture.watcher is not None:
                    t.capture.watcher.forgetting(t, self._records)
        self._records = None

    def __del__(self) -> None:
        self.forget()


def _tracer(capture: Capture) -> Tracer:
    from engine.tape.tracing import Tracer

    return Tracer(capture.traces, capture.budget)


class _Nobody(Captures):
    """Of tapes that are made while nothing captures: there is nothing to be kept for them."""

    __slots__ = ()

    def __init__(self) -> None:
        self._start(None)

    def forget(self) -> None:
        """There is nothing to forget."""


NOBODY: Captures = _Nobody()


def is_capturing() -> bool:
    """Whether there is a capture, in any thread."""
    return bool(_open)


def _unwatched(memory: Storage, lo: int, hi: int) -> None:
    """Nobody looks at writes, but what may change unseen is copied: see `storage.watchers`."""


def active_tape(watcher: Watcher) -> CapturedTape | None:
    """The tape that records now, as a watcher's capture has it; None where none does."""
    return _watched(watcher, recording.active.get())


def passed_over(
    watcher: Watcher,
) -> tuple[CapturedTape, Site | None, Literal["graph", "command"]] | None:
    """The tape in whose block something runs that it does not record; see `recording`."""
    found = recording.passed_over.get()
    tape = None if found is None else _watched(watcher, found[0])
    return None if found is None or tape is None else (tape, *found[1:])


def _watched(watcher: Watcher, tape: recording.Recorder | None) -> CapturedTape | None:
    captures = getattr(tape, "_captures", None)
    return captures.watched_by(watcher) if isinstance(captures, Captures) else None


@contextmanager
def capturing(
    on_launch: OnLaunch | None = None,
    wants: Callable[[str], bool] | None = None,
    watcher: Watcher | None = None,
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
    capture = Capture(on_launch=on_launch, wants=wants, watcher=watcher, traces=traces, late=late)
    with _lock:
        _open.append(capture)
    recording.observers.append(capture._observe)
    wrote = _unwatched if watcher is None else watcher.wrote
    storage.watchers.append(wrote)
    if watcher is not None:
        recording.bystanders.append(watcher)
    try:
        yield capture
    finally:
        if watcher is not None:
            recording.bystanders.remove(watcher)
            watcher.closed()
        storage.watchers.remove(wrote)
        recording.observers.remove(capture._observe)
        with _lock:
            capture.open = False
            _open[:] = [c for c in _open if c is not capture]
