"""The operations of a captured graph in sequence, as one call of compiled code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from engine import config
from engine.accel import batch
from engine.accel.launcher import maker, row_words
from engine.compile.backend import Limits, Step
from engine.compile.cpu import CPU
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.deferred import DeferredLaunch, DeferredWrite
from engine.runtime.device import HOST
from engine.runtime.execute import Executable
from engine.runtime.guards import objection
from engine.runtime.plan_parts import BoundLaunch
from engine.runtime.storage import Storage

Simple = DeferredLaunch | DeferredWrite


class Writes:
    """The memory that several launches write, in their order."""

    __slots__ = ("_by", "_words")

    def __init__(self, arrays: Iterable[array]) -> None:
        by: dict[Storage, list[tuple[int, int]]] = {}
        for a in arrays:
            by.setdefault(a.storage, []).append((a.lo, a.hi))
        self._by = [(s, len(found), tuple(dict.fromkeys(found))) for s, found in by.items()]
        self._words = row_words([(s, count) for s, count, _ in self._by], Storage)

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

    def try_announce(self) -> bool:
        """The same; False where there is something to be said against one of them."""
        functions, words = maker.functions, self._words
        if functions is not None and words is not None and functions.announce_all(words.at):
            return True
        if not self.are_free():
            return False
        self.announce()
        return True

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
    functions = maker.functions
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


def as_one(steps: Sequence[Step], now: Limits) -> batch.Batch | None:
    """Launches as one call; None where that cannot be, or not yet."""
    return batch.batch(steps, now)


def _is_plain(dest: array) -> bool:
    return dest.is_contiguous and dest.device is HOST and not dest._info.linked and dest.size > 0


def fill_as_step(dest: array, item: bytes) -> Step | None:
    """A fill with the bytes of one element as one of several; None where it cannot be."""
    return batch.filling(dest._ptr, item, dest.size) if _is_plain(dest) else None


def write_as_step(operation: DeferredWrite) -> Step | None:
    """A write as one of several; None where it cannot be."""
    dest, src, element = operation.dest, operation.src, operation.element
    info = dest._info
    if not _is_plain(dest):
        return None
    if src is not None:
        same = src.is_contiguous and src.device is HOST and src._info.kind == info.kind
        return batch.copying(dest._ptr, src._ptr, dest.hi - dest.lo) if same else None
    if element is not info.zero and not isinstance(element, (int, float, np.generic)):
        return None  # it may be changed meanwhile
    one = array._allocate((1,), dest._ir.element, True, HOST)
    one._put(element)
    return batch.filling(dest._ptr, CPU.read(one._ptr, info.size), dest.size)


class _Stale:
    """What a part of a sequence gives where it has to be prepared anew."""


STALE = _Stale()


def is_compiled(executable: Executable | None) -> bool:
    """Whether a launch has compiled it."""
    return executable is not None and executable.is_compiled
