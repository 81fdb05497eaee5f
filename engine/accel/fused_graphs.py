"""Captured sequences with private tapes: one call of compiled code, without records.

A tape that is made, recorded and run backward where a sequence is captured, and that is forgotten
there, is of no use to anybody but that sequence. What it would remember is not made then: launches,
cotangents, adjoints and cleared gradients run one after another.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from types import MethodType
from typing import Any

from engine.accel.graph_records import Asked, GraphLaunch, Ranges, asks, floats_of
from engine.accel.graph_steps import (
    Writes,
    as_one,
    as_step,
    fill_as_step,
    is_compiled,
    is_quiet,
    limits,
    write_as_step,
)
from engine.accel.launcher import maker, row_words
from engine.compile.backend import Limits, Outcome, Step
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.deferred import DeferredLaunch, DeferredWrite, Noted
from engine.runtime.execute import Executable
from engine.runtime.guards import Guard
from engine.tape.gradients import one_of
from engine.tape.tape import Tape

Told = tuple[Executable, tuple[int, ...]] | None


class _Impossible(Exception):
    """A sequence does what only records can do, or may do so."""


class _Record:
    """What a tape would have recorded so far.

    read: what adjoints may come to read. lost: whether any of that was written since.
    """

    def __init__(self) -> None:
        self.launches: list[GraphLaunch] = []
        self.seeded: dict[int, array] = {}
        self.read = Ranges()
        self.lost = False

    def add(self, launch: GraphLaunch) -> None:
        self.launches.append(launch)
        for a in launch.watched:
            self.read.add(a)

    def written(self, arrays: Iterable[array]) -> None:
        self.lost = self.lost or any(map(self.read.meets, arrays))


class _Maker:
    """Goes through the operations of a sequence, and notes what runs."""

    def __init__(self, now: Limits, fresh: Collection[int]) -> None:
        self.now = now
        self.fresh = fresh
        self.steps: list[Step] = []
        self.told: list[Told] = []
        self.written: list[array] = []
        self.grads: dict[int, tuple[array, array | None]] = {}
        self.given: list[tuple[dict[Any, Any], array, array]] = []
        self.records: dict[int, _Record] = {}

    def operation(self, operation: Any, tape: Any) -> None:
        if operation.__class__ is DeferredWrite and tape is None:
            self.write(operation)
        elif operation.__class__ is DeferredLaunch and operation.simple:
            self.launch(operation, tape)
        elif operation.__class__ is partial:
            self.backward(operation)
        elif operation.__class__ is MethodType:
            of: Any = operation.__self__
            record = self.record(of)
            if operation == of.zero:
                self.clear(record)
            elif operation.__name__ not in ("_join", "_left"):
                raise _Impossible
        else:
            raise _Impossible

    def record(self, tape: object) -> _Record:
        """What a tape has, of which a sequence has recorded all."""
        if id(tape) not in self.fresh:
            raise _Impossible
        return self.records.setdefault(id(tape), _Record())

    def step(self, step: Step | None, told: Told, writes: Sequence[array]) -> None:
        if step is None:
            raise _Impossible
        for r in self.records.values():
            r.written(writes)
        self.steps.append(step)
        self.told.append(told)
        self.written += writes

    def write(self, operation: DeferredWrite) -> None:
        self.step(write_as_step(operation), None, [operation.dest])

    def fill(self, a: array, item: bytes | None) -> None:
        """Writes one element all over an array."""
        self.step(None if item is None else fill_as_step(a, item), None, [a])

    def launch(self, operation: DeferredLaunch, tape: object) -> None:
        call = operation.launch
        if tape is None:
            if not is_compiled(call.plan._forward):
                raise _Impossible
            forward = call.plan.forward
            writes = [a for i in call.plan.writes if (a := call.values[i]) is not None]
            self.step(as_step(forward, call, self.now), (forward, call.dim), writes)
            return
        launch = GraphLaunch(operation, self.now)
        executable = launch.selection.executable
        if launch.selection.saves_journal or not is_compiled(executable) or call.plan.arguments:
            raise _Impossible
        self.step(launch.step, (executable, call.dim), launch.writes)
        self.record(tape).add(launch)

    def gradient(self, a: array) -> array | None:
        """The gradient that an array has, and is to have each time; None for none."""
        if id(a) not in self.grads:
            if a._shared is not None:
                raise _Impossible
            self.grads[id(a)] = (a, a.grad if asks(a) else a._grad)
        return self.grads[id(a)][1]

    def backward(self, operation: partial[Any]) -> None:
        of = operation.func
        if not isinstance(of, MethodType) or of != getattr(of.__self__, "backward", None):
            raise _Impossible
        record = self.record(of.__self__)
        if record.lost or len(operation.args) != 2 or operation.keywords:
            raise _Impossible
        self.seed(record, *operation.args)
        for launch in reversed(record.launches):
            self.adjoint(launch)

    def seed(self, record: _Record, loss: Any, grads: Any) -> None:
        if loss.__class__ is array and not grads:
            a, gradient = loss, self.gradient(loss)
            if gradient is None:
                raise _Impossible
            self.fill(gradient, one_of(loss))
        elif loss is None and grads.__class__ is dict and len(grads) == 1:
            ((a, cotangent),) = grads.items()
            if a.__class__ is not array or cotangent.__class__ is not array:
                raise _Impossible
            gradient = self.gradient(a)
            if gradient is None or gradient.shape != cotangent.shape:
                raise _Impossible
            write = DeferredWrite(gradient, cotangent, None, lambda: None)
            self.step(write_as_step(write), None, [gradient])
            self.given.append((grads, a, cotangent))
        else:
            raise _Impossible
        record.seeded[id(a)] = a

    def adjoint(self, launch: GraphLaunch) -> None:
        adjoint, call = launch.adjoint, launch.call
        if adjoint is False:
            return
        found = [self.gradient(call.values[i]) for i in launch.selection.gradients]
        gradients = [g for g in found if g is not None]
        if adjoint is None or len(gradients) < len(found):
            raise _Impossible
        step = launch.back(adjoint, gradients, self.now)
        self.step(step, (adjoint, call.dim), gradients)

    def clear(self, record: _Record) -> None:
        found: dict[int, array] = {}
        arrays = [x.call.values[i] for x in record.launches for i, _ in x.call.plan.bits]
        for a in (*arrays, *record.seeded.values()):
            gradient = None if a is None else self.gradient(a)
            if gradient is not None:
                found[id(gradient)] = gradient
        for g in found.values():
            self.fill(g, bytes(g._info.size))


class FusedGraph:
    """Runs a sequence."""

    __slots__ = ("_asked", "_batch", "_floats", "_given", "_grads", "_tape", "_told", "_words",
                 "_writes")  # fmt: skip

    def __init__(self, made: _Maker, batch: Any, tape: Tape) -> None:
        self._batch = batch
        self._told = made.told
        self._writes = Writes(made.written)
        launches = [x for r in made.records.values() for x in r.launches]
        floats = floats_of(launches)
        for r in made.records.values():
            floats |= r.seeded
        self._floats = tuple(floats.values())
        self._asked = Asked(self._floats, launches)
        self._grads = tuple(made.grads.values())
        self._words = row_words(self._grads, array)
        self._given = made.given
        self._tape = tape

    def __call__(self) -> bool:
        """Runs all of it; False where something is not as it was, and nothing has happened."""
        if events.tape() is not None or not self.is_ready() or not self._writes.try_announce():
            return False
        self._batch.run(self._tell, [0])
        return True

    def is_ready(self) -> bool:
        """Whether it may run: settings are as they were, and nobody listens."""
        batch = self._batch
        return (
            batch.limits == limits() and is_quiet() and not Guard.made
            and self._tape.has_default_settings() and batch.fits()
            and self._is_same()
        )  # fmt: skip

    def _is_same(self) -> bool:
        """Whether gradients are taken, and lie, as they did."""
        functions, words = maker.functions, self._words
        if functions is None or words is None or not functions.have_same(words.at):
            return False
        if not self._asked.is_same():
            return False
        for given, a, cotangent in self._given:
            if len(given) != 1 or given.get(a) is not cotangent:
                return False
        return not array.retains or not any(a.retain_grad for a in self._floats)

    def _tell(self, number: int, came: Outcome) -> None:
        told = self._told[number]
        assert told is not None  # writes leave nothing
        told[0].finish(came, told[1])


def fused(
    operations: Sequence[Noted], steps: Sequence[Noted], fresh: Sequence[Callable[[], None]]
) -> FusedGraph | None:
    """What runs operations whose tapes nobody else has; None where that cannot be, or not yet.

    steps: the same as they are run. fresh: what makes tapes new ones, of all that are made there.
    """
    now = limits()
    if not (fresh and TRUSTED) or as_one((), now) is None or not is_quiet():
        return None
    tapes: list[Any] = [getattr(anew, "__self__", None) for anew in fresh]
    for k in range(len(tapes)):
        tape = tapes[k]
        if type(tape) is not Tape or tape._notes or weakref.getweakrefcount(tape):
            return None
        if references(tape) != mentions((*operations, *steps), fresh, tape) + 1:  # the list
            return None
    made = _Maker(now, frozenset(map(id, tapes)))
    try:
        for operation, recorder in operations:
            made.operation(operation, recorder)
    except _Impossible:
        return None
    batch = as_one(made.steps, now)
    found = None if batch is None else FusedGraph(made, batch, tapes[0])
    return found if found is not None and found.is_ready() else None


class _Probe:
    """What is referred to as often as a tape that nobody has."""


def references(tape: object) -> int:
    """How many references there are to a tape beside one variable of the caller's."""
    probe = _Probe()
    return sys.getrefcount(tape) - _passed(probe)


def _passed(probe: object) -> int:
    return sys.getrefcount(probe)


def _counts() -> bool:
    """Whether this Python counts references as `fused` takes it."""
    found = []
    for more in range(3):
        kept = [_Probe()]
        others = kept * more
        for k in range(len(kept)):
            one = kept[k]
            found.append(references(one))
        del others
    return found == [1, 2, 3]


TRUSTED = _counts()


def mentions(operations: Iterable[Noted], fresh: Iterable[object], of: object) -> int:
    """How often the parts of a sequence refer to a tape."""
    found = 0
    methods: dict[int, Any] = {id(r): r for r in fresh}
    for noted in {id(x): x for x in operations}.values():
        found += noted[1] is of
        methods[id(noted[0])] = noted[0]
    whole = {id(m): m for m in (getattr(x, "func", x) for x in methods.values())}
    return found + sum(isinstance(m, MethodType) and m.__self__ is of for m in whole.values())
