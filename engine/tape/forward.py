"""Forward mode over recorded operations, with tangents in separate memory.

Tangents live in a twin of the arrays' memory: arrays that share or overlap in memory
share or overlap there too. No user array is written: a launch runs on copies of what
it changes, at the values that its inputs had when it was recorded.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.compile.pipeline import Request, prefetch
from engine.diagnostics import Diagnostic, TapeError
from engine.diagnostics.site import call_span
from engine.lang.numbers import number_kind
from engine.lang.types import UINT8
from engine.runtime.array import array
from engine.runtime.device import Device
from engine.runtime.execute import run
from engine.runtime.forward_mode import warn_of_nonlinear_gradients
from engine.runtime.plan import Plan
from engine.runtime.storage import Storage, allocate
from engine.runtime.transfer import move
from engine.tape.records import CopyRecord, FillRecord, LaunchRecord, Record
from engine.tape.records.foreign import ForeignRecord

NumpyArray = np.ndarray[Any, Any]
# contents(parameter index): what an array argument held; None where it still holds it.
Contents = Callable[[int], NumpyArray | None]


class Twin:
    """Zeroed memory laid out like that of some arrays, a block for each stretch of addresses."""

    def __init__(self, arrays: Iterable[array]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._memory: list[Storage | None] = []
        self._devices: list[Device] = []
        # A leaf of an array of structs comes with the others: their memory is one.
        whole = (a._whole or a for a in arrays)
        placed = sorted(((a.lo, a.hi), a.device) for a in whole if a.size)
        for (lo, hi), device in placed:
            if self._ends and lo < self._ends[-1]:
                self._ends[-1] = max(hi, self._ends[-1])
            else:
                self._starts.append(lo)
                self._ends.append(hi)
                self._memory.append(None)
                self._devices.append(device)

    def block(self, a: array) -> int:
        """The number of the block that holds an array; -1 where none does."""
        k = bisect_right(self._starts, a.lo) - 1
        return k if k >= 0 and a.hi <= self._ends[k] and a.size else -1

    def _touched(self, a: array) -> range:
        """The blocks of which an array has an element."""
        if not a.size:
            return range(0)
        return range(bisect_right(self._ends, a.lo), bisect_left(self._starts, a.hi))

    def touches(self, a: array) -> bool:
        """Whether a block holds part of an array."""
        return bool(self._touched(a))

    def gathered(self, a: array) -> array:
        """`of(a)`; where blocks hold parts of `a` alone, a copy with zeros between them."""
        if self.block(a) >= 0:
            return self.of(a)
        whole = Twin([a])
        for k in self._touched(a):
            lo, hi = max(a.lo, self._starts[k]), min(a.hi, self._ends[k])
            if self._memory[k] is not None:
                whole._bytes(0, lo, hi)._put(self._bytes(k, lo, hi)._parts)
        return whole.of(a)

    def _bytes(self, k: int, lo: int, hi: int) -> array:
        """What a block has for these addresses."""
        memory = self._block_memory(k)
        return array._make(memory, memory.lo + lo - self._starts[k], (hi - lo,), (1,), UINT8)

    def _block_memory(self, k: int) -> Storage:
        memory = self._memory[k]
        if memory is None:
            nbytes = self._ends[k] - self._starts[k]
            memory = self._memory[k] = allocate(nbytes, True, self._devices[k])
        return memory

    def of(self, a: array) -> array:
        """The array in the place of `a`. Empty arrays, and those that have none, get new zeros."""
        k = self.block(a)
        if k < 0:
            return array._allocate(a.shape, a._ir.element, True, a.device)
        memory = self._block_memory(k)
        at = memory.lo + a.ptr - self._starts[k]
        return array._make(memory, at, a.shape, a.strides, a._ir.element)


def seed(tangents: Twin, seeds: Iterable[tuple[array, NumpyArray]]) -> None:
    """Writes tangents of arrays. Raises TapeError (E406) for elements with two of them."""
    given = list(seeds)
    for a, value in given:
        tangents.of(a)._put(value)
    for a, value in given:
        if not _same(tangents.of(a)._host(), value) and a.size:
            raise TapeError(
                Diagnostic(
                    "E406", "two different tangents were given for the same memory", call_span(),
                    help="two of the arrays share elements: give the tangent of one of them",
                )
            )  # fmt: skip


def _same(x: NumpyArray, y: NumpyArray) -> bool:
    if x.dtype.names is not None:
        return all(_same(x[name], y[name]) for name in x.dtype.names)
    return np.array_equal(x, y, equal_nan=number_kind(x.dtype) == "f")


def run_tangent(
    plan: Plan, dim: tuple[int, ...], values: Sequence[Any], contents: Contents, tangents: Twin,
    wrt: frozenset[str],
) -> None:  # fmt: skip
    """Runs the tangent of a launch: reads and changes `tangents` of the array parameters `wrt`."""
    warn_of_nonlinear_gradients(plan.variants, wrt)
    arrays = {p.index: a for p in plan.array_params if (a := values[p.index]) is not None}
    private = Twin(arrays.values())
    changed = {private.block(arrays[i]) for i in plan.writes if i in arrays}
    parts: list[bytes] = []
    alive: list[array] = []
    for p in plan.params:
        value = values[p.index]
        if p.array_kind is None:
            parts.append(p.pack(value))
            continue
        if value is None:
            parts.append(p.null)
            continue
        was = contents(p.index)
        if private.block(value) in changed:
            given = value
            value = private.of(given)
            if p.index in plan.inputs:
                value._put(given._parts if was is None else was)
        elif was is not None:
            value = array._allocate(value.shape, value._ir.element, False, value.device)
            value._put(was)
        alive.append(value)
        parts.append(value._packed)
    for p in plan.params:
        if p.name in wrt:
            tan = tangents.of(values[p.index])
            alive.append(tan)
            parts.append(tan._packed)
    run(plan.variants, "tangent", dim, b"".join(parts), wrt=wrt, backend=plan.backend)


# ---- tapes


def push(records: Sequence[Record], seeds: Mapping[array, NumpyArray]) -> Twin:
    """The tangents of all arrays with gradients on a tape, after its last record.

    seeds: tangents of arrays before the first record; all others are zero.
    Raises TapeError (E401) for a record that has no forward rule, and where the
    contents of a launch's input are lost.
    """
    moving = [a for r in records for a in r.arrays if a.requires_grad]
    tangents = Twin([*moving, *seeds])
    state = _State(tangents, {tangents.block(a) for a in seeds})
    seed(tangents, seeds.items())
    for record in records:
        if type(record) not in _RULES:
            raise TapeError(
                Diagnostic(
                    "E401", f"{record.name} on the tape has no forward derivative", record.site,
                    help="functions given to record_func have only a backward pass; "
                    "write their computation as a kernel",
                )
            )  # fmt: skip
    prefetch([r for record in records for r in _requests(record)])
    for record in records:
        _RULES[type(record)](record, state)
    return tangents


class _State:
    """Tangents on their way through a tape. live: blocks with tangents that may not be zero."""

    def __init__(self, tangents: Twin, live: set[int]) -> None:
        self.tangents = tangents
        self.live = live


def _wrt(record: LaunchRecord) -> dict[str, array]:
    """The arguments through which derivatives flow, by parameter name."""
    found = ((p.name, record.values[p.index]) for p in record.plan.floats)
    return {name: a for name, a in found if a is not None and a.requires_grad}


def _requests(record: Record) -> list[Request]:
    if not isinstance(record, LaunchRecord) or 0 in record.dim:
        return []
    wrt = frozenset(_wrt(record))
    useful = wrt & record.plan.variants.written
    record.check_order(useful)
    plan = record.plan
    return [(plan.backend, plan.variants, "tangent", wrt, frozenset())] if useful else []


def _launch(record: LaunchRecord, state: _State) -> None:
    wrt = _wrt(record)
    blocks = {name: state.tangents.block(a) for name, a in wrt.items()}
    written = {blocks[name] for name in wrt if name in record.plan.variants.written}
    if 0 in record.dim or not written or not state.live.intersection(blocks.values()):
        return
    state.live |= written
    run_tangent(record.plan, record.dim, record.values, lambda i: _contents_at_launch(record, i),
                state.tangents, frozenset(wrt))  # fmt: skip


def _contents_at_launch(record: LaunchRecord, index: int) -> NumpyArray | None:
    return record.contents(index) if index in record.plan.inputs else None


def _copy(record: CopyRecord, state: _State) -> None:
    if not record.dest.requires_grad:
        return
    to, of = (state.tangents.block(a) for a in (record.dest, record.src))
    dest = state.tangents.of(record.dest)
    if not record.src.requires_grad or of not in state.live:
        dest._parts[...] = 0
        return
    state.live.add(to)
    move(dest, state.tangents.of(record.src))


def _overwrite(record: FillRecord, state: _State) -> None:
    if state.tangents.block(record.dest) in state.live:
        state.tangents.of(record.dest)._parts[...] = 0


def _stretch(record: ForeignRecord, state: _State) -> None:
    into = [a for a in record.outputs if a.requires_grad]
    live = state.live.intersection(
        state.tangents.block(a) for a in record.inputs if a.requires_grad
    )
    if not live or not into:
        for a in into:
            state.tangents.of(a)._parts[...] = 0
        return
    values = [record.contents(i) for i in range(len(record.inputs))]
    moved = [state.tangents.of(a)._parts if a.requires_grad else np.zeros_like(x)
             for a, x in zip(record.inputs, values, strict=True)]  # fmt: skip
    try:
        pushed = record.stretch.jvp(values, moved)
    except TypeError as why:
        raise TapeError(
            Diagnostic("E401", f"{record.name!r} on the tape has no forward derivative",
                       record.site, notes=(str(why),))
        ) from None  # fmt: skip
    for a, t in zip(record.outputs, pushed, strict=True):
        if a.requires_grad:
            tan = state.tangents.of(a)._parts
            tan[...] = t.reshape(tan.shape)
            state.live.add(state.tangents.block(a))


_RULES: dict[type, Callable[[Any, _State], None]] = {
    LaunchRecord: _launch,
    CopyRecord: _copy,
    FillRecord: _overwrite,
    ForeignRecord: _stretch,
}
