"""Notes about a tape beside its records: names, times, norms of gradients, memory.

Norms are taken while the program's own backward pass runs, since gradients of what is
overwritten are consumed by it. Nothing of the program is changed by that, nor kept alive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from engine.classes import dataclass
from engine.runtime.array import array
from engine.runtime.leaves import float_parts
from engine.tape.graph.listing import Lister, TapeListing, left_out
from engine.tape.graph.names import search_names
from engine.tape.memory import MemoryUse
from engine.tape.outline import Key, key_of, outline
from engine.tape.records.record import Record
from engine.tape.scopes import Scope

_SEARCHES = 64  # for names, of one tape
_SMALL = 1 << 14  # numbers
_LOOKS = 64  # at the memory of a tape that has not run backward


@dataclass(frozen=True, slots=True)
class Flow:
    """Norms of gradients around one operation of a backward pass: one for each parameter.

    Euclidean, over all elements, in float64; None where there is no gradient.
    incoming: of what it writes, when the pass came to it. outgoing: of what it reads, after
    it. added: of what it added to that; None where that cannot be told.
    """

    incoming: tuple[float | None, ...]
    outgoing: tuple[float | None, ...]
    added: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class OperationTrace:
    """One operation: seconds that it took, and its gradients; None where not known.

    Times of launches, without compilation.
    """

    forward: float | None = None
    backward: float | None = None
    flow: Flow | None = None


@dataclass(frozen=True, slots=True)
class TapeTrace:
    """A tape with times and gradients of its first backward pass.

    operations: one for each of the listing's. tape: its number among those captured. ran:
    whether there was a backward pass. memory: see `MemoryUse`; None where not known.
    """

    tape: int
    listing: TapeListing
    operations: tuple[OperationTrace, ...]
    ran: bool
    memory: MemoryUse | None


@dataclass(slots=True)
class Budget:
    """What all tapes of a capture may look at for names: objects."""

    visits: int = 400_000


class Tracer:
    """Takes notes on one tape.

    limit: how many operations to follow backwards; those in the middle are left out. budget:
    for names; none are looked for without.
    """

    def __init__(self, limit: int = 0, budget: Budget | None = None) -> None:
        self._limit = limit
        self._budget = budget or Budget(0)
        self.forward: list[float | None] = []
        self.steps: dict[int, OperationTrace] = {}
        self.functions: dict[int, Sequence[Any]] = {}
        self.names: dict[Key, tuple[str, str]] = {}
        self.scopes: Sequence[Scope] = ()
        self.memory: MemoryUse | None = None
        self.ran = False
        self._unnamed: set[Key] = set()
        self._searches = _SEARCHES
        self._looks = _LOOKS

    def add(self, record: Record, seconds: float | None) -> None:
        """Notes a record that is about to be added. seconds: what the operation took."""
        if record.function is not None:
            self.functions[len(self.forward)] = [outline(a) for a in record.declared]
        self.forward.append(seconds)
        for a in record.arrays:
            if isinstance(a, array) and (key := key_of(a)) not in self.names:
                self._unnamed.add(key)

    def look(self, scopes: Sequence[Scope]) -> None:
        """Looks for names in the variables of whoever called."""
        self.scopes = scopes
        if not self._unnamed or self._searches <= 0:
            return
        if self._budget.visits <= 0:
            return
        self._searches -= 1
        found, spent = search_names(self._unnamed)
        self.names |= found
        self._unnamed -= found.keys()
        self._budget.visits -= spent

    def left(self, scopes: Sequence[Scope], memory: Callable[[], MemoryUse]) -> None:
        """To be called where a recording block ends. memory: gives what the tape takes up."""
        self.look(scopes)
        if not self.ran:
            self._looks -= 1
            self.memory = memory() if self._looks >= 0 else None

    def watch(self) -> Watch:
        """What follows the backward pass that is about to begin."""
        self.ran = True
        return Watch(self.steps, left_out(len(self.forward), self._limit))

    def trace(
        self, tape: int, records: Sequence[Record], seeded: Sequence[Any], limit: int | None
    ) -> TapeTrace:
        """All of it as data. limit: how many operations to keep."""
        lister = Lister()
        lister.add(records, self.functions, limit)
        listing = lister.done(self.scopes, seeded, self.names)
        forward = self.forward
        operations = []
        for x in listing.operations:
            seconds = forward[x.index] if x.index < len(forward) else None
            step = self.steps.get(x.index, OperationTrace())
            operations.append(OperationTrace(seconds, step.backward, step.flow))
        return TapeTrace(tape, listing, tuple(operations), self.ran, self.memory)


class Watch:
    """Looks at gradients around the records of one backward pass, but for some of them."""

    def __init__(self, steps: dict[int, OperationTrace], skipped: range) -> None:
        self._steps = steps
        self._skipped = skipped
        self._now: _Around | None = None

    def before(self, number: int, record: Record) -> None:
        """A record is about to run backwards."""
        if number not in self._skipped:
            self._now = _Around(number, record)

    def after(self) -> None:
        """It has run."""
        if self._now is not None:
            self._steps[self._now.number] = self._now.trace()
            self._now = None


class _Around:
    """One record of a backward pass, from before it to after it."""

    __slots__ = ("_arrays", "_before", "_incoming", "_reads", "_start", "number")

    def __init__(self, number: int, record: Record) -> None:
        self.number = number
        self._arrays, self._reads, writes = _parameters(record)
        arrays = self._arrays
        self._incoming = tuple(_norm(a) if k in writes else None for k, a in enumerate(arrays))
        self._before: dict[int, list[Any]] = {}
        for k in self._reads:
            if k not in writes and _norm(arrays[k]):
                self._before[k] = [p.copy() for p in _parts(arrays[k])]
        self._start = perf_counter()

    def trace(self) -> OperationTrace:
        """What it did."""
        seconds = perf_counter() - self._start
        arrays, reads = self._arrays, self._reads
        outgoing = tuple(_norm(a) if k in reads else None for k, a in enumerate(arrays))
        added = list(outgoing)
        for k, before in self._before.items():
            added[k] = _difference(arrays[k], before)
        return OperationTrace(None, seconds, Flow(self._incoming, outgoing, tuple(added)))


def _parameters(record: Record) -> tuple[list[Any], Sequence[int], Sequence[int]]:
    """Its arrays as a listing has them, and which of them it reads and writes."""
    arrays = list(record.listed)
    known = record.describe(len(arrays))
    return arrays, known.reads, known.writes


def _parts(a: array) -> list[np.ndarray[Any, Any]]:
    """The numbers of a gradient that has been made; none are zero."""
    grad = a.existing_grad
    if grad is None:
        return []
    to_host = grad.device.backend.to_host
    if grad._info.numpy.names is None:
        return [to_host(grad._parts)]
    return [to_host(p) for p in float_parts(grad)]


def _norm(a: array | None) -> float | None:
    if a is None or not a.requires_grad:
        return None
    return length(_parts(a))


def _difference(a: array, before: Sequence[np.ndarray[Any, Any]]) -> float | None:
    now = _parts(a)
    if len(now) != len(before):  # it was replaced by a function of the user's
        return None
    with np.errstate(all="ignore"):
        return length(
            [np.subtract(x, y, dtype=np.float64) for x, y in zip(now, before, strict=True)]
        )


def length(parts: Sequence[np.ndarray[Any, Any]]) -> float:
    """The Euclidean norm, in float64: NaN where there is one, infinite only where a number is."""
    total = 0.0
    for p in parts:
        if p.dtype == np.float64:
            with np.errstate(all="ignore"):
                x = p.ravel()
                total += float(x.dot(x))
        elif p.size <= _SMALL:
            x = p.astype(np.float64).ravel()
            total += float(x.dot(x))
        else:  # without a copy in float64
            every = "abcdefgh"[: p.ndim]
            square = f"{every},{every}->"
            total += float(np.einsum(square, p, p, dtype=np.float64, casting="unsafe"))
    if 1e-290 < total < math.inf:
        return math.sqrt(total)
    return _scaled_length(parts)


def _scaled_length(parts: Sequence[np.ndarray[Any, Any]]) -> float:
    """The same where squares of float64 overflow, or vanish, and where numbers are not finite."""
    if not any(p.any() for p in parts):
        return 0.0
    with np.errstate(all="ignore"):
        largest = 0.0
        for p in parts:
            if p.size:
                largest = max(float(np.max(np.abs(p))), largest)  # NaN stays where it is first
                if math.isnan(largest):
                    return math.nan
        if largest == 0.0 or math.isinf(largest):
            return largest
        scaled = sum(float(np.sum((p.astype(np.float64) / largest) ** 2)) for p in parts)
        return largest * math.sqrt(scaled)
