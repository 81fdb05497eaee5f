"""The operations of a captured graph in sequence, as one call of compiled code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Literal

import numpy as np

from engine import config
from engine.compile.backend import Batch, Limits, Outcome, Step
from engine.compile.cpu import CPU
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.deferred import DeferredLaunch, DeferredWrite, Noted, Operation
from engine.runtime.device import HOST
from engine.runtime.execute import Executable
from engine.runtime.guards import objection
from engine.runtime.plan_parts import BoundLaunch
from engine.runtime.storage import Storage

Simple = DeferredLaunch | DeferredWrite


class Writes:
    """The memory that several launches write, in their order."""

    __slots__ = ("_by",)

    def __init__(self, arrays: Iterable[array]) -> None:
        by: dict[Storage, list[tuple[int, int]]] = {}
        for a in arrays:
            by.setdefault(a.storage, []).append((a.lo, a.hi))
        self._by = [(s, len(found), tuple(dict.fromkeys(found))) for s, found in by.items()]

    def are_free(self) -> bool:
        """Whether there is nothing to be said against any of them."""
        for storage, _, _ in self._by:  # a generator takes twice the time
            if storage.guard is not None or not storage.writable:
                return False
        return True

    def announce(self) -> None:
        """Announces all of them, where nobody else is told of writes."""
        for storage, count, ranges in self._by:
            if storage._hold is None:
                storage.version += count  # all that it would do
                continue
            for lo, hi in ranges:
                storage.before_write(lo, hi)
            storage.version += count - len(ranges)

    def meet(self, read: dict[Storage, tuple[int, int]]) -> bool:
        """Whether they may change what is read, by memory."""
        if not read:
            return False
        for storage, _, ranges in self._by:
            known = read.get(storage)
            if known is not None and any(lo < known[1] and known[0] < hi for lo, hi in ranges):
                return True
        return False


def limits() -> Limits:
    """What launches may save at present."""
    return _limits(config.stack_limit_bytes, config.journal_limit_bytes)


_limits = lru_cache(maxsize=8)(Limits)  # those of the last launches are those of the next ones


def is_quiet() -> bool:
    """Whether several operations may be one call: nobody listens but tapes, and it is allowed."""
    functions = CPU.functions
    if functions is not None and functions.quiet():
        return True
    return config.native_after >= 0 and not (
        events.everywhere or config.print_launches or config.verify_fp
        or events.are_writes_observed()
    )  # fmt: skip


def as_step(executable: Executable, call: BoundLaunch, now: Limits) -> Step | None:
    """A launch as one of several; None where it cannot be, or not yet."""
    plan = call.plan
    if plan.backend is not CPU:
        return None
    for i in plan.writes:
        a = call.values[i]
        if a is not None and not a.is_contiguous and objection(a) is not None:
            return None
    return executable.step(call.dim, call.blob, now)


def as_one(steps: Sequence[Step], now: Limits) -> Batch | None:
    """Launches as one call; None where that cannot be, or not yet."""
    return CPU.batch(steps, now)


def _written(operation: Simple) -> list[array]:
    if isinstance(operation, DeferredWrite):
        return [operation.dest]
    call = operation.launch
    return [a for i in call.plan.writes if (a := call.values[i]) is not None]


def _is_plain(dest: array) -> bool:
    return dest.is_contiguous and dest.device is HOST and not dest._info.linked and dest.size > 0


def fill_as_step(dest: array, item: bytes) -> Step | None:
    """A fill with the bytes of one element as one of several; None where it cannot be."""
    return CPU.filling(dest._ptr, item, dest.size) if _is_plain(dest) else None


def write_as_step(operation: DeferredWrite) -> Step | None:
    """A write as one of several; None where it cannot be."""
    dest, src, element = operation.dest, operation.src, operation.element
    info = dest._info
    if not _is_plain(dest):
        return None
    if src is not None:
        same = src.is_contiguous and src.device is HOST and src._info.kind == info.kind
        return CPU.copying(dest._ptr, src._ptr, dest.hi - dest.lo) if same else None
    if element is not info.zero and not isinstance(element, (int, float, np.generic)):
        return None  # it may be changed meanwhile
    one = array._allocate((1,), dest._ir.element, True, HOST)
    one._put(element)
    return CPU.filling(dest._ptr, CPU.read(one._ptr, info.size), dest.size)


class _Part:
    """Operations off any tape that run in one call."""

    __slots__ = ("_batch", "_operations", "_writes")

    def __init__(self, operations: Sequence[Simple], batch: Batch) -> None:
        self._operations = operations
        self._batch = batch
        self._writes = Writes(a for o in operations for a in _written(o))

    def __call__(self) -> None:
        if is_quiet() and self._batch.fits() and self._writes.are_free():
            self._writes.announce()
            self._batch.run(self._tell, [0])
            return
        for operation in self._operations:
            operation()

    def _tell(self, number: int, came: Outcome) -> None:
        operation = self._operations[number]
        assert isinstance(operation, DeferredLaunch)  # others leave nothing
        call = operation.launch
        call.plan.forward.finish(came, call.dim)


class _Stale:
    """What a part of a sequence gives where it has to be prepared anew."""


STALE = _Stale()


class Several:
    """Captured launches that follow each other on a tape, or off any, and other writes there."""

    __slots__ = ("_limits", "_operations", "_parts", "_ran", "_taped")

    def __init__(self, operations: Sequence[Simple], taped: bool) -> None:
        self._operations = operations
        self._taped = taped
        self._parts: Sequence[Operation] | None = None
        self._limits = Limits(0, 0)
        self._ran = 0

    def __call__(self) -> None:
        parts = self._parts
        if parts is None or self._limits != limits():
            parts = self._prepared()
        if parts is None:
            self._ran += len(self._operations)
            parts = self._operations
        for part in parts:
            if part() is STALE:
                self._parts = None

    def _prepared(self) -> Sequence[Operation] | None:
        """The launches, as few calls as can be; None where that is not known yet."""
        if not self._ran or (CPU.functions is None and self._ran < config.native_after):
            return None
        now = limits()
        if as_one((), now) is None or not is_quiet():
            return None
        tape = events.tape() if self._taped else None
        self._parts = (
            _parts(self._operations, now) if tape is None
            else tape.prepared(self._operations, now)  # type: ignore[arg-type]
        )  # fmt: skip
        self._limits = now
        return self._parts


def is_compiled(executable: Executable | None) -> bool:
    """Whether a launch has compiled it."""
    return executable is not None and executable.is_compiled


def _parts(operations: Sequence[Simple], now: Limits) -> Sequence[Operation] | None:
    parts: list[Operation] = []
    some: list[Simple] = []
    steps: list[Step] = []

    def close() -> None:
        batch = as_one(tuple(steps), now) if some else None
        parts.extend(some if batch is None else [_Part(tuple(some), batch)])
        some.clear()
        steps.clear()

    for operation in operations:
        if isinstance(operation, DeferredWrite):
            step = write_as_step(operation)
        elif not is_compiled(operation.launch.plan._forward):
            return None  # the runs so far ended before it
        else:
            step = as_step(operation.launch.plan.forward, operation.launch, now)
        if step is None:
            close()
            parts.append(operation)
        else:
            some.append(operation)
            steps.append(step)
    close()
    return parts


def gathered(operations: Sequence[Noted]) -> list[Noted]:
    """The operations of a graph, those that may run in one call as one."""
    out: list[Noted] = []
    for tape, group in groupby(operations, _kind):
        found = list(group)
        if tape is not False and len(found) > 1:
            out.append((Several(tuple(o for o, _ in found), tape is not None), tape))  # type: ignore[misc]
        else:
            out += found
    return out


def _kind(noted: Noted) -> events.Recorder | Literal[False] | None:
    """The tape of what can be one of several; False where it cannot."""
    operation, tape = noted
    if operation.__class__ is DeferredWrite and tape is None:
        return None
    return tape if operation.__class__ is DeferredLaunch and operation.simple else False
