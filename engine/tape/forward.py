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

from engine.compile.pipeline import prefetch
from engine.diagnostics import Diagnostic, TapeError
from engine.diagnostics.site import call_span
from engine.lang.numbers import number_kind
from engine.lang.types import UINT8
from engine.runtime.array import array
from engine.runtime.device import Device
from engine.runtime.forward_mode import warn_of_nonlinear_gradients
from engine.runtime.launch import run
from engine.runtime.leaves import float_parts
from engine.runtime.plan import Plan
from engine.runtime.storage import Storage, allocate
from engine.tape.records import Record

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
    there = list(values)
    for p in plan.array_params:
        value = values[p.index]
        if value is None:
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
        there[p.index] = value
    moving = [tangents.of(values[p.index]) for p in plan.params if p.name in wrt]
    args = plan.packed(there) + b"".join(t._packed for t in moving)
    run(plan.unobserved(dim, args, "tangent", wrt))


# ---- tapes


def push(records: Sequence[Record], seeds: Mapping[array, NumpyArray]) -> Twin:
    """The tangents of all arrays with gradients on a tape, after its last record.

    seeds: tangents of arrays before the first record; all others are zero.
    Raises TapeError (E401) for a record that has no forward rule, and where the
    contents of a launch's input are lost.
    """
    moving = [a for r in records for a in r.arrays if a.requires_grad]
    tangents = Tangents(Twin([*moving, *seeds]))
    tangents.begin(seeds)
    for record in records:
        if record.function is not None:
            raise TapeError(
                Diagnostic(
                    "E401", f"{record.name} on the tape has no forward derivative", record.site,
                    help="functions given to record_func have only a backward pass; "
                    "write their computation as a kernel",
                )
            )  # fmt: skip
    prefetch([r for record in records for r in record.tangent_requests()])
    for record in records:
        record.tangent(tangents)
    return tangents.twin


class Tangents:
    """Tangents on their way through a tape, and in which blocks some may not be zero."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self._live: set[int] = set()

    def begin(self, seeds: Mapping[array, NumpyArray]) -> None:
        """Sets the tangents that are there before the first record."""
        self._live = {self.twin.block(a) for a in seeds}
        seed(self.twin, seeds.items())

    def of(self, a: array) -> array:
        """The tangent of an array."""
        return self.twin.of(a)

    def is_moving(self, a: array) -> bool:
        """Whether an array may have a tangent that is not zero."""
        return self.twin.block(a) in self._live

    def put(self, a: array, value: NumpyArray) -> None:
        """Sets the tangent of an array."""
        parts = self.of(a)._parts
        parts[...] = value.reshape(parts.shape)
        self._live.add(self.twin.block(a))

    def clear(self, a: array) -> None:
        """Has an array stand still."""
        if self.is_moving(a):
            self.of(a)._parts[...] = 0

    def store(self, dest: array, src: array, forward: Callable[[NumpyArray], NumpyArray]) -> None:
        """Has an array move as a linear function of another one does."""
        if not dest.requires_grad:
            return
        into = self.of(dest)
        if not src.requires_grad or not self.is_moving(src):
            into._parts[...] = 0
            return
        self._live.add(self.twin.block(dest))
        of = self.of(src)
        to_host, put = of.device.backend.to_host, into.device.backend.put
        moved = [to_host(x) for x in float_parts(of)]
        if of.storage is into.storage:  # where both may be in the same memory
            moved = [x.copy() for x in moved]
        with np.errstate(all="ignore"):
            for part, x in zip(float_parts(into), moved, strict=True):
                put(part, forward(x))

    def launch(
        self, plan: Plan, dim: tuple[int, ...], values: Sequence[Any], contents: Contents,
        wrt: Mapping[str, array],
    ) -> None:  # fmt: skip
        """Moves what a launch writes. wrt: the arguments that may move, by parameter name."""
        blocks = {name: self.twin.block(a) for name, a in wrt.items()}
        written = {blocks[name] for name in wrt if name in plan.variants.written}
        if not written or not self._live.intersection(blocks.values()):
            return
        self._live |= written
        run_tangent(plan, dim, values, contents, self.twin, frozenset(wrt))
