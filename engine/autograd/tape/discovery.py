"""Finds the leaves of a tape, and writes to its memory that are not on it.

The tape is run once more in its own precision. An element that a launch reads before anything
on the tape has written it came from outside, and its value is the one that was kept with the
record. An element that a launch read another value from than the tape had left there was
written by something that is not on the tape. Not so where a GPU's order of threads decides: what
comes of that is another thing each time, and the replay goes on with its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.tape.memory import Memories, Memory, Placement, Region
from engine.autograd.tape.operations import (
    NotReplayable,
    Operation,
    OutsideWrite,
    ReplayedLaunch,
    ReplayedLinear,
)
from engine.autograd.tape.recorded_tape import RecordedTape
from engine.autograd.tape.stretches import ReplayedStretch
from engine.classes import dataclass
from engine.runtime.array import array
from engine.runtime.leaves import leaf_arrays
from engine.runtime.storage import Hold

Array = NDArray[Any]

# NaNs that no computation makes: what an element holds that nothing is known about, and one
# that the host filled with values that are not known. By bytes of a float.
_UNKNOWN = {2: 0x7E5D, 4: 0x7FC5AD5D, 8: 0x7FF8_0000_5AD5_AD5D}
_FILLED = {2: 0x7E3B, 4: 0x7FC3BA3B, 8: 0x7FF8_0000_3BA3_BA3B}
# Values this near are the same: the order of atomic additions may differ.
_NEAR = 1e-3


@dataclass(frozen=True)
class Leaf:
    """Elements that came from outside and that require a gradient: the view and which of it."""

    part: Placement
    where: Array


@dataclass(frozen=True)
class Discovered:
    """A tape's operations with the writes that it does not know of, and its leaves.

    leaves: none where all of them are only added to, as by `atomic_add`: the derivative of a sum
    by its own start value is one, whatever the launches do. after: writes between the last
    operation and the backward pass. inside: whether all forms of the operations are known to touch
    the elements of their arrays alone.
    """

    operations: Sequence[Operation]
    leaves: Sequence[Leaf]
    after: Sequence[OutsideWrite]
    inside: bool


def discover(
    tape: RecordedTape, operations: Sequence[Operation], parts: Sequence[Placement],
    memories: Memories, start: Memory,
) -> Discovered:  # fmt: skip
    """Runs all in their own precision. Fills `start`, the contents from before the tape.

    parts: all memory that the operations touch. Raises NotReplayable.
    """
    return _Discovery(tape, operations, memories, start).result(parts)


class _Discovery:
    def __init__(
        self, tape: RecordedTape, operations: Sequence[Operation], memories: Memories,
        start: Memory,
    ) -> None:  # fmt: skip
        self.tape = tape
        self.operations = operations
        self.spans = memories.spans
        self.own = memories.own
        self.start = start
        # Which integers have been read or written: as bytes that are not zero.
        self._known = memories.own.like()
        # What other orders of threads may have left otherwise, and what is computed from it.
        self._loose = memories.own.like() if any(s.unordered for s in operations) else None
        self._written = Region(memories.spans)
        for s in operations:
            for p in s.writes:
                self._written.add(p)
        self.leaves: list[Leaf] = []
        self._still: dict[int, bool] = {}  # of arrays: whether no operation writes to them
        self._noted: dict[tuple[int, int], Hold | None] = {}

    def result(self, parts: Sequence[Placement]) -> Discovered:
        own = self.own
        for p in parts:
            if p.float:
                _bits(own.view(p))[...] = _UNKNOWN[p.info.numpy.itemsize]
        found: list[Operation] = []
        # What a kernel makes of floats may be an index for the next one.
        inside = all(p.float for s in self.operations for p in s.writes)
        for operation in self.operations:
            if isinstance(operation, ReplayedLaunch):
                found += self._read(operation)
            elif isinstance(operation, ReplayedLinear):
                found += self._copied(operation)
            elif isinstance(operation, ReplayedStretch):
                found += self._stretched(operation)
            found.append(operation)
            inside = operation.forward_seen() and inside
            if self._loose is not None:
                self._loosen(operation, self._loose)
            if isinstance(operation, ReplayedLinear) and operation.fills:
                for p in operation.writes:
                    if p.float:
                        _bits(own.view(p))[...] = _FILLED[p.info.numpy.itemsize]
        return Discovered(found, self._inputs(), self._changed_since(), inside)

    def _inputs(self) -> list[Leaf]:
        """The leaves; none where no operation reads any of them."""
        used = Region(self.spans)
        for s in self.operations:
            for p in s.uses:
                used.add(p)
        return self.leaves if any(used.meets(x.part) for x in self.leaves) else []

    def _loosen(self, operation: Operation, loose: Memory) -> None:
        """Takes note of what depends on the order of threads once the operation has run."""
        found = any(loose.view(p).any() for p in operation.reads)
        if isinstance(operation, ReplayedLaunch):
            if not (found or operation.unordered):
                return  # it may have left some elements
        for p in operation.writes:
            loose.view(p)[...] = found or isinstance(operation, ReplayedLaunch)

    def _read(self, operation: ReplayedLaunch) -> list[Operation]:
        """Takes note of what a launch found in its inputs."""
        out: list[Operation] = []
        for i in operation.plan.inputs:
            if i not in operation.parts:
                continue
            hold = operation.record.holds.get(i)
            part = operation.parts[i]
            if self._seen(part, hold):
                continue
            parts = operation.record.values[i]._parts
            was = None
            if hold is not None:
                was = hold.read(part.ptr, parts.shape, parts.strides, parts.dtype)
            if was is None:
                name = operation.plan.params[i].name
                raise NotReplayable(
                    f"the content of {name!r} of kernel {operation.record.name!r} at its launch is "
                    "lost"
                )
            out += self._compare(part, was, operation)
        return out

    def _stretched(self, operation: ReplayedStretch) -> list[Operation]:
        """Takes note of what a stretch found in its inputs."""
        out: list[Operation] = []
        for i, part in enumerate(operation.reads):
            hold, info = operation.record.holds.get(i), part.info
            if self._seen(part, hold):
                continue
            was = None
            if hold is not None:
                was = hold.read(part.ptr, part.shape + info.inner, part.strides + info.steps,
                                info.numpy)  # fmt: skip
            if was is None:
                raise NotReplayable(
                    f"the content of {operation.record.argument(i)} at that time is lost"
                )
            out += self._compare(part, was, operation)
        return out

    def _seen(self, part: Placement, hold: Hold | None) -> bool:
        """Whether just this was taken note of, of an array that nothing on the tape writes."""
        key = id(part), id(hold)
        if key in self._noted:
            return True
        still = self._still.get(id(part))
        if still is None:
            still = self._still[id(part)] = not self._written.meets(part)
        if still:
            self._noted[key] = hold
        return False

    def _compare(self, part: Placement, was: Array, operation: Operation) -> list[Operation]:
        """Makes the replay's memory what was found there. Gives writes that are not on tape."""
        have, start = self.own.view(part), self.start.view(part)
        if self._loose is not None and self._loose.view(part).any():
            mine = self._loose.view(part) != 0
            if part.float:  # what nothing wrote is as it was
                mine &= _bits(have) != _UNKNOWN[have.itemsize]
            was = np.where(mine, have, was)
        if not part.float:
            differs, known = have != was, self._known.view(part)
            fresh, changed = differs & (known == 0), differs & (known != 0)
            start[fresh] = was[fresh]
            have[...] = was
            known[...] = 1
            return (
                [OutsideWrite(part, changed, was[changed], operation, True)]
                if changed.any()
                else []
            )
        mine, theirs = _bits(have), _bits(was)
        unlike = mine != theirs
        if not unlike.any():
            return []
        unknown = mine == _UNKNOWN[have.itemsize]
        filled = mine == _FILLED[have.itemsize]
        out: list[Operation] = []
        if unknown.any():
            start[unknown] = was[unknown]
            have[unknown] = was[unknown]
            if part.wants:
                self.leaves.append(Leaf(part, unknown))
        if filled.any():
            have[filled] = was[filled]
            out.append(OutsideWrite(part, filled, was[filled].astype(np.float64), operation, True))
        other = unlike & ~unknown & ~filled
        with np.errstate(all="ignore"):
            near = np.abs(have.astype(np.float64) - was) <= _NEAR * np.abs(was)
        other &= ~(near | (np.isnan(have) & np.isnan(was)))
        if other.any():
            have[other] = was[other]
            out.append(OutsideWrite(part, other, was[other].astype(np.float64), operation, False))
        return out

    def _copied(self, operation: ReplayedLinear) -> list[Operation]:
        """Takes note of what a linear record found in its source."""
        out: list[Operation] = []
        for part in operation.reads:
            have = self.own.view(part)
            hold = operation.record.source
            was = None
            if hold is not None:
                info = part.info
                was = hold.read(part.ptr, part.shape + info.inner, part.strides + info.steps,
                                info.numpy)  # fmt: skip
            elif isinstance(part.source, array) and not self._written.meets(part):
                was = _live(part)
            if was is not None:
                out += self._compare(part, was, operation)
            elif not part.float or (_bits(have) == _UNKNOWN[have.itemsize]).any():
                name = operation.record.name
                raise NotReplayable(f"the source of a {name} on the tape no longer exists")
        return out

    def _changed_since(self) -> list[OutsideWrite]:
        """What inputs held at the backward pass, where that is not what the tape left there."""
        out = []
        launches = [s for s in self.operations if isinstance(s, ReplayedLaunch)]
        by_record = {id(s.record): s for s in launches}
        for (position, i), hold in self.tape.changed.items():
            operation = by_record[id(self.tape.records[position])]
            part, parts = operation.parts[i], operation.record.values[i]._parts
            was = hold.read(part.ptr, parts.shape, parts.strides, parts.dtype)
            if was is None:
                raise NotReplayable("the content of an array at the backward pass is lost")
            have = self.own.view(part)
            if self._loose is not None:
                was = np.where(self._loose.view(part) != 0, have, was)
            with np.errstate(all="ignore"):
                same = (have == was) | ((have != have) & (was != was))
                if part.float:
                    same |= np.abs(have.astype(np.float64) - was) <= _NEAR * np.abs(was)
            if not same.all():
                values = was[~same].astype(np.float64) if part.float else was[~same]
                out.append(OutsideWrite(part, ~same, values, operation, False))
                have[...] = was
        return out


def _bits(x: Array) -> Array:
    """Floats as unsigned integers, in place."""
    return x.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[x.itemsize])


def _live(part: Placement) -> Array:
    """What a user's array holds now."""
    a = part.source
    found = [a] if a._info.numpy.names is None else leaf_arrays(a)
    return np.array(next(x for x in found if x.ptr == part.ptr)._host())
