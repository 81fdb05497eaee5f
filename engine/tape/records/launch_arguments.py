"""What a launch on a tape got, and what that held."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from engine.diagnostics import Span
from engine.runtime.array import array
from engine.runtime.kernel import Kernel
from engine.runtime.plan import Plan
from engine.runtime.plan_parts import Selection
from engine.runtime.storage import Glance, Hold
from engine.tape.records.record import OFF, Description, Operand, Record
from engine.tape.restoration import contents

NumpyArray = np.ndarray[Any, Any]


class LaunchArguments(Record):
    """A launch by its kernel and arguments. held: of the plan's `held`, what each contained."""

    __slots__ = (
        "_arrays",
        "aliased",
        "blob",
        "dim",
        "held",
        "input_count",
        "plan",
        "selection",
        "values",
    )

    plan: Plan
    dim: tuple[int, ...]
    values: list[Any]
    blob: bytes
    input_count: int
    aliased: frozenset[str]
    selection: Selection
    held: Sequence[Hold | None]
    _arrays: list[array] | None

    def __getattr__(self, name: str) -> Any:
        """What is set only where somebody asks."""
        if name == "_arrays":
            return None
        raise AttributeError(name)

    @property
    def kernel(self) -> Kernel:
        """What was launched."""
        return self.plan.kernel

    @property
    def definition(self) -> Span:
        """The place of the kernel's own code."""
        return self.plan.variants.facts.span

    @property
    def name(self) -> str:
        return self.plan.kernel.key

    @property
    def arrays(self) -> Sequence[array]:
        if self._arrays is not None:
            return self._arrays
        found, values = {}, self.values
        for p in self.plan.array_params:
            a = values[p.index]
            if a is not None:
                whole = a if a._whole is None else a._whole
                found[id(whole)] = whole
        self._arrays = list(found.values())
        return self._arrays

    @property
    def written(self) -> Sequence[array]:
        values = self.values
        return [values[i] for i in self.plan.writes if values[i] is not None]

    @property
    def args(self) -> list[Any]:
        """The launch's arguments in parameter order; arrays as they are, None for none."""
        return self.values

    @property
    def wrt(self) -> frozenset[str]:
        """Names of the array parameters that had gradients when the launch was recorded."""
        return self.selection.wrt

    @property
    def holds(self) -> dict[int, Hold]:
        """What the inputs contained, by position."""
        pairs = zip(self.plan.held, self.held, strict=False)
        return {i: h for i, h in pairs if h is not None}

    @property
    def in_order(self) -> bool:
        """Whether its threads ran one after the other, or as if they did: not on a GPU."""
        return self.plan.backend.on_host

    def take_holds(self, eager: bool, copied: bool = True) -> None:
        """Remembers what the inputs contain; to be called before the kernel runs.

        eager: copies them now. copied: whether they are, when they are about to change.
        """
        values = self.values
        held: list[Hold | None] = []
        for i in self.plan.held:
            a = values[i]
            if a is None:
                held.append(None)
            elif copied or eager:
                held.append(a.storage.hold(a.lo, a.hi, eager))
            else:
                held.append(Glance(a.storage, a.lo, a.hi))
        self.held = held

    def let_go(self) -> None:
        self.held = ()

    def hold_of(self, index: int) -> Hold | None:
        """The hold on an input; None where there is none."""
        if not self.held or index not in self.plan.held:
            return None
        return self.held[self.plan.held.index(index)]

    def watched(self) -> Iterable[tuple[int, array, Hold | None]]:
        for i in self.selection.watched:
            if self.values[i] is not None:
                yield i, self.values[i], self.hold_of(i)

    def argument(self, index: int) -> str:
        return f"argument {self.plan.params[index].name!r} of kernel {self.name!r}"

    def inputs_at_record(self) -> list[Any]:
        """The arguments as they were when the launch was recorded, in parameter order.

        Arrays come as fresh NumPy copies, components last; None where the contents are
        `lost` or no array was passed. What other code wrote unseen (through a NumPy view) counts
        as having been there, unless it was copied (`config.snapshot_exposed_bytes`).
        Arrays that the kernel only writes come with their present contents, which no
        result depends on. Other arguments come as they were given.
        """
        out = []
        holds = self.holds
        for p, v in zip(self.plan.params, self.values, strict=True):
            if p.array_kind is None or v is None:
                out.append(v)
            elif p.index in holds:
                out.append(contents(v, holds[p.index]))
            else:
                out.append(None if p.index in self.plan.inputs else self._only_written(v))
        return out

    def _only_written(self, a: Any) -> NumpyArray:
        return np.array(a._host())

    @property
    def lost(self) -> dict[str, str]:
        """Names of the inputs whose contents at record time are not known, and why."""
        out = {}
        for i in self.plan.inputs:
            if self.values[i] is not None:
                hold = self.hold_of(i)
                why = OFF if hold is None else hold.lost
                if why:
                    out[self.plan.params[i].name] = why
        return out

    @property
    def snapshots(self) -> Sequence[Hold]:
        return list(self.holds.values())

    def contents(self, index: int) -> NumpyArray | None:
        """What an input held at the launch, as a fresh copy; None where it still holds it.

        What other code may have changed unseen is taken to be as it was. Raises TapeError
        (E401) where the contents are not known any more.
        """
        a, hold = self.values[index], self.hold_of(index)
        if hold is not None and hold.unseen and hold.version == a.storage.version:
            return None
        if hold is None or hold.lost:
            raise self.unknown(index, hold)
        if hold.storage is not None:
            return None
        return contents(a, hold)

    def _pack(self, values: Sequence[Any]) -> bytes:
        return self.plan.packed(values)

    @property
    def sources(self) -> Iterable[array]:
        return [a for i in self.plan.held if (a := self.values[i]) is not None]

    def operands(self) -> Iterable[Operand]:
        watched = self.selection.watched
        for i in self.plan.inputs:
            a = self.values[i]
            if a is not None:
                yield Operand(a, self.argument(i), self.holds.get(i), i in watched)

    def only_read(self, captured: Record) -> Iterable[tuple[array, Hold | None]]:
        for i in self.plan.only_read:
            if self.values[i] is not None:
                yield self.values[i], self.holds.get(i)

    @property
    def listed(self) -> Sequence[Any]:
        return [self.values[p.index] for p in self.plan.array_params]

    def describe(self, count: int) -> Description:
        plan = self.plan
        of = list(enumerate(plan.array_params))
        reads = (k for k, p in of if p.index in plan.reads and p.name not in plan.structure)
        return Description(
            "launch", tuple(p.name for _, p in of), tuple(reads),
            tuple(k for k, p in of if p.index in plan.writes),
        )  # fmt: skip

    def alike(self, number: Callable[[Any], object]) -> Hashable:
        arrays = (self.values[p.index] for p in self.plan.array_params)
        places = tuple(None if a is None else number(a) for a in arrays)
        return self.plan.variants, tuple(self.dim), self.aliased, places
