"""The record of what another framework computes: a function of arrays with a gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.diagnostics import Diagnostic, Span, TapeError
from engine.diagnostics.site import Site
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.storage import Glance, Hold
from engine.tape.records.record import Description, Operand, Record, Replayer
from engine.tape.restoration import Restoration, contents, present

if TYPE_CHECKING:
    from engine.tape.forward import Tangents

NumpyArray = np.ndarray[Any, Any]
Values = Sequence[NumpyArray]


class Stretch(ABC):
    """A function of a framework, on NumPy values with components last.

    It does the same each time it is called with the same values. framework: its name. span: where
    the function is defined.
    """

    name: str
    framework: str
    span: Span | None

    @abstractmethod
    def run(self, values: Values) -> list[NumpyArray]:
        """The results."""

    @abstractmethod
    def remember(self) -> None:
        """From now on, `run` finds what it holds beside its inputs as that is at present."""

    @abstractmethod
    def vjp(
        self, values: Values, cotangents: Values, wanted: Sequence[bool], own: bool
    ) -> list[NumpyArray | None]:
        """The gradients of the inputs that are wanted, by the framework's reverse mode.

        own: whether gradients of parameters that the function holds are added to them.
        """

    @abstractmethod
    def jvp(self, values: Values, tangents: Values) -> list[NumpyArray]:
        """The tangents of the results, by forward mode. Raises TypeError where there is none."""


class ForeignRecord(Record):
    """A stretch that was run.

    holds: what its inputs held then. results: what it computed, where a check may ask.
    """

    __slots__ = ("holds", "inputs", "outputs", "results", "stretch")

    repeatable = False

    def __init__(
        self, stretch: Stretch, inputs: Sequence[array], outputs: Sequence[array],
        site: Site | None,
    ) -> None:  # fmt: skip
        self.stretch = stretch
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.holds: dict[int, Hold] = {}
        self.results: Values | None = None
        self._site = site

    @property
    def name(self) -> str:
        return self.stretch.name

    @property
    def arrays(self) -> Sequence[array]:
        return [*self.inputs, *self.outputs]

    @property
    def written(self) -> Sequence[array]:
        return self.outputs

    @property
    def snapshots(self) -> Sequence[Hold]:
        return list(self.holds.values())

    @property
    def flows(self) -> bool:
        """Whether a gradient flows from its results to its inputs."""
        some = any(a.requires_grad for a in self.inputs)
        return some and any(a.requires_grad for a in self.outputs)

    def take_holds(self, eager: bool, copied: bool) -> None:
        """Remembers what its inputs contain: see `LaunchRecord.take_holds`."""
        for i, a in enumerate(self.inputs):
            if copied or eager:
                self.holds[i] = a.storage.hold(a.lo, a.hi, eager)
            else:
                self.holds[i] = Glance(a.storage, a.lo, a.hi)

    def watched(self) -> Iterable[tuple[int, array, Hold | None]]:
        for i, a in enumerate(self.inputs):
            yield i, a, self.holds.get(i)

    def reads(self) -> Collection[int]:
        return range(len(self.inputs)) if self.flows else ()

    def argument(self, index: int) -> str:
        return f"input {index} of {self.name!r}"

    def contents(self, index: int) -> NumpyArray:
        """What an input held then. Raises TapeError (E401) where that is not known any more."""
        a, hold = self.inputs[index], self.holds.get(index)
        if hold is not None and hold.unseen and hold.version == a.storage.version:
            return present(a)
        was = contents(a, hold)
        if was is None:
            raise self.unknown(index, hold)
        return was

    def reverse(self, restored: Sequence[Restoration] = ()) -> None:
        if all(a.existing_grad is None for a in self.outputs):
            return
        events.needs_host("a tape calls another library")
        cotangents = []
        for a in self.outputs:
            g = a.grad
            if g is None:
                cotangents.append(np.zeros_like(a._parts))
            else:
                cotangents.append(np.array(g._host()))
                g.zero_()
        other = {x.index: x.contents() for x in restored}
        values = [other[i] if i in other else present(a) for i, a in enumerate(self.inputs)]
        wanted = [a.requires_grad for a in self.inputs]
        found = self.stretch.vjp(values, cotangents, wanted, True)
        for a, seed in zip(self.inputs, found, strict=True):
            into = a.grad
            if into is not None and seed is not None:
                into.storage.before_write(into.lo, into.hi)
                with np.errstate(all="ignore"):
                    np.add(into._parts, seed, out=into._parts, casting="unsafe")

    @property
    def stored(self) -> Iterable[array]:
        return self.outputs

    @property
    def sources(self) -> Iterable[array]:
        return self.inputs

    def passes_gradient(self, a: array) -> bool:
        return self.flows

    def operands(self) -> Iterable[Operand]:
        for i, a in enumerate(self.inputs):
            yield Operand(a, self.argument(i), self.holds.get(i), True)

    def only_read(self, captured: Record) -> Iterable[tuple[array, Hold | None]]:
        for i, a in enumerate(self.inputs):
            yield a, self.holds.get(i)

    @property
    def definition(self) -> Span | None:
        return self.stretch.span

    def captured(self, contents: bool = True) -> Record:
        from engine.tape.records.captured import CapturedForeign

        return CapturedForeign(self, contents)

    def replay(self, by: Replayer) -> None:
        by.foreign(self)

    def describe(self, count: int) -> Description:
        mine = len(self.inputs)
        names = (*(f"inputs[{i}]" for i in range(mine)),
                 *(f"outputs[{i}]" for i in range(count - mine)))  # fmt: skip
        reads, writes = tuple(range(mine)), tuple(range(mine, count))
        return Description("function", names, reads, writes)

    def tangent(self, tangents: Tangents) -> None:
        into = [a for a in self.outputs if a.requires_grad]
        moving = [a for a in self.inputs if a.requires_grad]
        if not into or not any(map(tangents.is_moving, moving)):
            for a in into:
                tangents.of(a)._parts[...] = 0
            return
        values = [self.contents(i) for i in range(len(self.inputs))]
        moved = [tangents.of(a)._parts if a.requires_grad else np.zeros_like(x)
                 for a, x in zip(self.inputs, values, strict=True)]  # fmt: skip
        try:
            pushed = self.stretch.jvp(values, moved)
        except TypeError as why:
            raise TapeError(
                Diagnostic("E401", f"{self.name!r} on the tape has no forward derivative",
                           self.site, notes=(str(why),))
            ) from None  # fmt: skip
        for a, t in zip(self.outputs, pushed, strict=True):
            if a.requires_grad:
                tangents.put(a, t)
