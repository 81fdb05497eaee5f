"""Captured graphs, in as few native calls as can be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from engine import config
from engine.accel.batch import Batch
from engine.accel.graph_records import pieces
from engine.accel.graph_steps import (
    STALE,
    Simple,
    Writes,
    as_one,
    as_step,
    is_compiled,
    is_quiet,
    limits,
    write_as_step,
)
from engine.accel.launcher import maker
from engine.compile.backend import Limits, Outcome, Step
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.deferred import DeferredLaunch, DeferredWrite, Noted, Operation


def _written(operation: Simple) -> list[array]:
    if isinstance(operation, DeferredWrite):
        return [operation.dest]
    call = operation.launch
    return [a for i in call.plan.writes if (a := call.values[i]) is not None]


class _Part:
    """Operations off any tape that run in one call."""

    __slots__ = ("_batch", "_operations", "_writes")

    def __init__(self, operations: Sequence[Simple], batch: Batch) -> None:
        self._operations = operations
        self._batch = batch
        self._writes = Writes(a for o in operations for a in _written(o))

    def __call__(self) -> None:
        if is_quiet() and self._batch.fits() and self._writes.try_announce():
            self._batch.run(self._tell, [0])
            return
        for operation in self._operations:
            operation()

    def _tell(self, number: int, came: Outcome) -> None:
        operation = self._operations[number]
        assert isinstance(operation, DeferredLaunch)  # others leave nothing
        call = operation.launch
        call.plan.forward.finish(came, call.dim)


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
        if not self._ran or (maker.functions is None and self._ran < config.native_after):
            return None
        now = limits()
        if as_one((), now) is None or not is_quiet():
            return None
        taped = self._taped and events.tape() is not None
        self._parts = (
            pieces(self._operations, now) if taped  # type: ignore[arg-type]
            else _parts(self._operations, now)
        )  # fmt: skip
        self._limits = now
        return self._parts


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
