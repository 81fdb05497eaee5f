"""Tests whether a backward pass reads values that were computed from the tape's present inputs.

The tape runs once more in its own precision, on memory of its own, from the contents that its
inputs have at present. Where a launch's adjoint would read something else than comes out, what
wrote that was not run again after an input had changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from engine import config
from engine.autograd.facts import Write
from engine.autograd.launch.evaluation import EvaluationFailed
from engine.autograd.tape.memory import Placement, Region
from engine.autograd.tape.operations import (
    NotReplayable,
    Operation,
    OutsideWrite,
    ReplayedLaunch,
    ReplayedLinear,
)
from engine.autograd.tape.recorded_tape import RecordedTape
from engine.autograd.tape.replay import Replay, replay
from engine.autograd.tape.stretches import ReplayedStretch
from engine.classes import dataclass
from engine.diagnostics import EngineError
from engine.lang.numbers import epsilon, number_kind
from engine.tape.backward import Pass
from engine.tape.capture import CapturedTape
from engine.tape.flow import flowing
from engine.tape.naming import variable
from engine.tape.outline import outline
from engine.tape.restoration import NumpyArray, present

# Numbers this near, of the largest in the array, are the same: units of the type's precision.
# The same kernel gives the same bits; another way of computing them may round otherwise.
_UNITS = 200


@dataclass(frozen=True)
class Mixture:
    """What a launch's adjoint reads and should not: the array, and the launch to run again."""

    array: str
    by: Write


class Recomputed:
    """One captured tape, to be run again for each backward pass whose inputs have changed."""

    def __init__(self, tape: CapturedTape) -> None:
        self._tape = tape
        self._replay: Replay | None = None
        self._count = -1

    def mixture(self, run: Pass, results: bool) -> Mixture | None:
        """The first mixture of old and new; None for none. Raises NotReplayable.

        results: looks at all that the tape computed, also where no adjoint reads it.
        """
        if self._count != len(run.records):
            self.close()
            self._count = len(run.records)
            records = self._tape.records[: self._count]
            seeds = [outline(a) for a, _ in run.seeds]
            self._replay = replay(RecordedTape(records, seeds, True, {}, {}, False))
        if self._replay is None:
            raise NotReplayable("the tape could not be run again before")
        try:
            return _Look(self._replay, run, results).first()
        except (EvaluationFailed, EngineError) as why:
            raise NotReplayable(str(why)) from None

    def close(self) -> None:
        """Gives memory back."""
        if self._replay is not None:
            self._replay.close()
        self._replay, self._count = None, -1


class _Look:
    def __init__(self, replayed: Replay, run: Pass, results: bool) -> None:
        self.run = run
        self.results = results
        self.own = replayed.memories.own
        self.start = replayed.start
        # What was written from outside between records is taken to have been done again.
        self.operations = [s for s in replayed.operations if not isinstance(s, OutsideWrite)]
        self.live = dict(zip(map(id, self.operations), run.records, strict=True))
        self.flowing = flowing(run.records)
        self.written = Region(replayed.memories.spans)
        for s in self.operations:
            for p in s.writes:
                self.written.add(p)
        self.spans = replayed.memories.spans
        self.loose = Region(self.spans)
        self.lost = self._overwritten() if config.overwrites == "present" else set()

    def _overwritten(self) -> set[tuple[int, int]]:
        """Inputs that the tape itself overwrites later, and that a pass reads as they are then.

        By record and parameter: that they are wrong is said elsewhere.
        """
        later, out = Region(self.spans), set()
        for position in range(len(self.operations) - 1, -1, -1):
            s = self.operations[position]
            if isinstance(s, ReplayedLaunch):
                out |= {(position, i) for i in s.plan.inputs
                        if i in s.parts and later.meets(s.parts[i])}  # fmt: skip
            for p in s.writes:
                later.add(p)
        return out

    def first(self) -> Mixture | None:
        """Runs all, and compares what each launch reads before it runs."""
        self._begin()
        found = Region(self.spans)  # what the replay has computed so far
        loose = self.loose  # what of it has no one value: the order of a GPU's threads decides
        for position, s in enumerate(self.operations):
            for part, now, name in self._read(position, s):
                have = self.own.view(part)
                if not found.meets(part) or loose.meets(part):
                    have[...] = now
                elif position in self.flowing and not _same(have, now):
                    return Mixture(name, self._writer(position, part))
            s.forward_own()
            mine = s.unordered or any(loose.meets(p) for p in s.reads)
            for p in s.writes:
                found.add(p)
                if mine:
                    loose.add(p)
        return self._results() if self.results else None

    def _begin(self) -> None:
        """What was there before the tape; what comes from outside follows as it is read."""
        for s in self.operations:
            for p in s.touched:
                with np.errstate(all="ignore"):
                    self.own.view(p)[...] = self.start.view(p)

    def _read(self, position: int, s: Operation) -> Iterator[tuple[Placement, NumpyArray, str]]:
        """What a record reads: where, what is there for its adjoint, and what the user calls it."""
        record = self.run.records[position]
        launch = record.launch
        if isinstance(s, ReplayedLaunch) and launch is not None:
            restored = {x.index: x for x in self.run.restored.get(position, ())}
            reads = launch.reads()
            for i in s.plan.inputs:
                a = launch.values[i]
                if i not in s.parts or a is None or (position, i) in self.lost:
                    continue
                part = s.parts[i]
                if i in restored:
                    now = restored[i].contents()
                elif i in reads or not self.written.meets(part):
                    now = present(a)
                else:
                    continue  # no adjoint reads it, and the tape makes it
                if i in launch.plan.writes and i not in restored:
                    continue  # it is what the launch left by now
                name = variable(launch, i) or launch.plan.params[i].name
                yield part, now, name
        elif isinstance(s, ReplayedStretch):
            known = {x.index: x for x in self.run.restored.get(position, ())}
            for i, (part, operand) in enumerate(zip(s.reads, record.operands(), strict=True)):
                x = known.get(i)
                now = present(operand.of) if x is None else x.contents()
                yield part, now, operand.name
        elif isinstance(s, ReplayedLinear):
            for part, operand in product(s.reads, record.operands()):
                if not self.written.meets(part) and operand.of._info.numpy.names is None:
                    yield part, present(operand.of), operand.name

    def _writer(self, position: int, part: Placement) -> Write:
        for s in reversed(self.operations[:position]):
            mine = Region(self.spans)
            for p in s.writes:
                mine.add(p)
            if mine.meets(part):
                record = self.live[id(s)]
                return Write(record.name, s.launch, record.site)
        return Write()

    def _results(self) -> Mixture | None:
        """What the tape left, which nothing on it reads."""
        for position in range(len(self.operations) - 1, -1, -1):
            s, record = self.operations[position], self.run.records[position].launch
            if not isinstance(s, ReplayedLaunch) or record is None:
                continue
            for i in s.plan.writes:
                a = record.values[i]
                if a is not None and i in s.parts and s.parts[i].wants:
                    if self.loose.meets(s.parts[i]):
                        continue
                    if not _same(self.own.view(s.parts[i]), present(a)):
                        name = variable(record, i) or record.plan.params[i].name
                        return Mixture(name, Write(record.name, s.launch, record.site))
        return None


def _same(a: NumpyArray, b: NumpyArray) -> bool:
    if np.array_equal(a, b, equal_nan=number_kind(a.dtype) == "f"):
        return True
    if number_kind(a.dtype) != "f":
        return False
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        size = np.abs(y[np.isfinite(y)])
        allowed = _UNITS * epsilon(a.dtype) * float(size.max(initial=0.0))
        same = (np.abs(x - y) <= allowed) | (x == y) | (np.isnan(x) & np.isnan(y))
    return bool(same.all())
