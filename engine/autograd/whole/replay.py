"""A recorded tape as one function: from its leaf arrays to what it left in memory.

The leaves are found by running the tape once more in its own precision: an element that a
launch reads before anything on the tape has written it came from outside, and its value is
the one that was kept with the record. An element that a launch read another value from than
the tape had left there was written by something that is not on the tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import config
from engine.autograd.whole.memory import Memory, Part, Region, mixed, parts_of, stretches
from engine.autograd.whole.steps import (
    CopyStep,
    LaunchStep,
    OutsideStep,
    OverwriteStep,
    Step,
    World,
    steps_of,
)
from engine.compile.pipeline import prefetch
from engine.runtime.array import array
from engine.runtime.leaves import leaf_arrays
from engine.tape.capture import CapturedTape
from engine.tape.outline import Outline, root_of
from engine.tape.records import Record

Array = NDArray[Any]

# NaNs that no computation makes: what an element holds that nothing is known about, and one
# that the host filled with values that are not known. By bytes of a float.
_UNKNOWN = {2: 0x7E5D, 4: 0x7FC5AD5D, 8: 0x7FF8_0000_5AD5_AD5D}
_FILLED = {2: 0x7E3B, 4: 0x7FC3BA3B, 8: 0x7FF8_0000_3BA3_BA3B}
# Values this near are the same: the order of atomic additions may differ.
_NEAR = 1e-3
# Bytes of arrays whose whole tape is still checked: about ten times as much is needed for it.
LIMIT = 512 << 20


class Unsuitable(Exception):
    """Why a tape as a whole cannot be checked."""


@dataclass
class Leaf:
    """Elements that came from outside and that require a gradient: the view and which of it."""

    part: Part
    where: Array


@dataclass(frozen=True)
class Given:
    """What to replay, and how its backward pass is run.

    seeded: the arrays that get a cotangent; none: those that nothing on the tape reads.
    changed: contents that inputs had by then, by position among the records and parameter.
    """

    records: Sequence[Record]
    seeded: Sequence[array | Outline]
    restored: bool
    changed: Any
    ran: bool


def given_by(tape: Any) -> Given:
    """What is known of a tape's backward pass. That of a live tape may have been long ago."""
    if isinstance(tape, CapturedTape):
        b = tape.first_backward
        if b is not None:
            return Given(tape.records[: b.records], b.seeded, b.restored, b.changed, True)
        return Given(tape.records, (), config.tape_overwritten == "restored", {}, False)
    seeded = list(tape._seeded.values())
    restored = config.tape_overwritten == "restored"
    return Given(list(tape.records), seeded, restored, {}, bool(seeded))


class Replay:
    """The tape's operations on memory of their own. Raises Unsuitable where that cannot be."""

    def __init__(self, given: Given) -> None:
        steps = steps_of(given.records)
        if isinstance(steps, str):
            raise Unsuitable(steps)
        self.given = given
        for s in steps:
            if isinstance(s, LaunchStep) and not s.plan.variants.can_lift:
                raise Unsuitable(f"kernel {s.plan.kernel.key!r} has no float64 form")
        self.steps: list[Step] = steps
        self.leaves: list[Leaf] = []
        self.after: list[OutsideStep] = []
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        seeds = [p for a in self.given.seeded for p in parts_of(a, root_of(a)) if p.float]
        parts = [p for s in self.steps for p in s.touched]
        parts += seeds
        spans = stretches((p.lo, p.hi) for p in parts)
        if sum(hi - lo for lo, hi in spans) > LIMIT:
            raise Unsuitable("its arrays are too large to be replayed in one piece")
        parts = list({p.key: p for p in parts}.values())
        self.spans = spans
        if mixed(parts, spans):
            raise Unsuitable("some memory is read as two types")
        self.outputs = seeds or self._ends()
        if not self.outputs:
            raise Unsuitable("nothing that it computes requires a gradient")
        prefetch([r for s in self.steps if isinstance(s, LaunchStep) for r in s.requests()])
        self.world = World(lambda lifted: Memory(spans, lifted))
        # Which integers have been read or written: as bytes that are not zero.
        self._known = Memory(spans, False)
        for p in parts:
            self.world.main.view(p)
            if p.float:
                self.world.tangents.view(p)
        self._written = Region(spans)
        for s in self.steps:
            s.bind(self.world)
            for p in s.writes:
                self._written.add(p)
        self.start = self.world.main.copy()
        self._discover(parts)
        for step in self.steps:
            if isinstance(step, OutsideStep):
                step.bind(self.world)
        self._restoring()

    def _ends(self) -> list[Part]:
        """Float arrays with gradients that the tape writes last and that nothing reads then."""
        found: list[Part] = []
        used = Region(self.spans)
        for s in reversed(self.steps):
            if isinstance(s, (LaunchStep, CopyStep)):
                ends = [p for p in s.writes if p.wants and not used.meets(p)]
                found += {p.key: p for p in ends}.values()
            for p in (*s.reads, *s.writes):
                used.add(p)
        return found

    # ---- what came from where

    def _discover(self, parts: Sequence[Part]) -> None:
        own = self.world.own
        for p in parts:
            if p.float:
                _bits(own.view(p))[...] = _UNKNOWN[p.info.numpy.itemsize]
        found: list[Step] = []
        for step in self.steps:
            if isinstance(step, LaunchStep):
                found += self._read(step)
            elif isinstance(step, CopyStep):
                found += self._copied(step)
            found.append(step)
            step.own()
            if isinstance(step, OverwriteStep):
                for p in step.writes:
                    if p.float:
                        _bits(own.view(p))[...] = _FILLED[p.info.numpy.itemsize]
        self.after = self._changed_since()
        self.steps = found

    def _read(self, step: LaunchStep) -> list[Step]:
        """Takes note of what a launch found in its inputs."""
        out: list[Step] = []
        for i in step.plan.inputs:
            if i not in step.parts:
                continue
            hold = step.record.holds.get(i)
            part = step.parts[i]
            parts = step.record.values[i]._parts
            was = None
            if hold is not None:
                was = hold.read(part.ptr, parts.shape, parts.strides, parts.dtype)
            if was is None:
                name = step.plan.params[i].name
                raise Unsuitable(
                    f"what {name!r} of kernel {step.record.name!r} held at its launch is lost"
                )
            out += self._compare(part, was, step)
        return out

    def _compare(self, part: Part, was: Array, step: Step) -> list[Step]:
        """Makes the replay's memory what was found there. Gives writes that are not on tape."""
        have, start = self.world.own.view(part), self.start.view(part)
        if not part.float:
            differs, known = have != was, self._known.view(part)
            fresh, changed = differs & (known == 0), differs & (known != 0)
            start[fresh] = was[fresh]
            have[...] = was
            known[...] = 1
            return [OutsideStep(part, changed, was[changed], step, True)] if changed.any() else []
        mine, theirs = _bits(have), _bits(was)
        unlike = mine != theirs
        if not unlike.any():
            return []
        unknown = mine == _UNKNOWN[have.itemsize]
        filled = mine == _FILLED[have.itemsize]
        out: list[Step] = []
        if unknown.any():
            start[unknown] = was[unknown]
            have[unknown] = was[unknown]
            if part.wants:
                self.leaves.append(Leaf(part, unknown))
        if filled.any():
            have[filled] = was[filled]
            out.append(OutsideStep(part, filled, was[filled].astype(np.float64), step, True))
        other = unlike & ~unknown & ~filled
        with np.errstate(all="ignore"):
            near = np.abs(have.astype(np.float64) - was) <= _NEAR * np.abs(was)
        other &= ~(near | (np.isnan(have) & np.isnan(was)))
        if other.any():
            have[other] = was[other]
            out.append(OutsideStep(part, other, was[other].astype(np.float64), step, False))
        return out

    def _copied(self, step: CopyStep) -> list[Step]:
        """Takes note of what a copy found in its source."""
        out: list[Step] = []
        for part in step.reads:
            have = self.world.own.view(part)
            hold = getattr(step.record, "source", None)
            was = None
            if hold is not None:
                info = part.info
                was = hold.read(part.ptr, part.shape + info.inner, part.strides + info.steps,
                                info.numpy)  # fmt: skip
            elif isinstance(part.source, array) and not self._written.meets(part):
                was = _live(part)
            if was is not None:
                out += self._compare(part, was, step)
            elif not part.float or (_bits(have) == _UNKNOWN[have.itemsize]).any():
                raise Unsuitable("what a copy on the tape copied is not known any more")
        return out

    def _changed_since(self) -> list[OutsideStep]:
        """What inputs held at the backward pass, where that is not what the tape left there."""
        out = []
        launches = [s for s in self.steps if isinstance(s, LaunchStep)]
        by_record = {id(s.record): s for s in launches}
        for (position, i), hold in self.given.changed.items():
            step = by_record[id(self.given.records[position])]
            part, parts = step.parts[i], step.record.values[i]._parts
            was = hold.read(part.ptr, parts.shape, parts.strides, parts.dtype)
            if was is None:
                raise Unsuitable("what an array held at the backward pass is lost")
            have = self.world.own.view(part)
            with np.errstate(all="ignore"):
                same = (have == was) | ((have != have) & (was != was))
                if part.float:
                    same |= np.abs(have.astype(np.float64) - was) <= _NEAR * np.abs(was)
            if not same.all():
                values = was[~same].astype(np.float64) if part.float else was[~same]
                out.append(OutsideStep(part, ~same, values, step, False))
                have[...] = was
        for s in out:
            s.bind(self.world)
        return out

    def _restoring(self) -> None:
        """Says which launches must keep copies of what they read, for their adjoints.

        A backward pass that nobody ran is not run here with integers that were overwritten:
        they may be indices into another array.
        """
        later = Region(self.spans)
        for late in self.after:
            later.add(late.writes[0])
        for s in reversed(self.steps):
            if isinstance(s, LaunchStep):
                s.restored = frozenset(
                    i for i, p in s.parts.items()
                    if i in s.plan.inputs
                    and (self.given.restored or not (p.float or self.given.ran))
                    and later.meets(p)
                )  # fmt: skip
            for p in s.writes:
                later.add(p)

    # ---- running it

    def begin(self) -> None:
        """Puts the contents from before the tape into memory."""
        self.world.main.take(self.start)

    def forward(self) -> None:
        """Runs all from what is in memory."""
        for s in self.steps:
            s.forward()

    def record(self) -> None:
        """Runs all from the start, ready for `backward`."""
        self.begin()
        for s in self.steps:
            s.recorded()
        for s in self.after:
            s.forward()

    def close(self) -> None:
        """Gives memory back."""
        for s in self.steps:
            s.close()


def _bits(x: Array) -> Array:
    """Floats as unsigned integers, in place."""
    return x.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[x.itemsize])


def _live(part: Part) -> Array:
    """What a user's array holds now."""
    a = part.source
    found = [a] if a._info.numpy.names is None else leaf_arrays(a)
    return np.array(next(x for x in found if x.ptr == part.ptr)._parts)
