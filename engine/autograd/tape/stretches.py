"""Stretches of other frameworks in the replay of a tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.tolerance import Tolerance, largest
from engine.autograd.launch.evaluation import EvaluationFailed
from engine.autograd.reference.differences import slope
from engine.autograd.tape.memory import Memories, placements
from engine.autograd.tape.operations import NotReplayable, Operation
from engine.tape.outline import root_of
from engine.tape.records.foreign import ForeignRecord

Array = NDArray[Any]

# Results of two runs in one precision that are nearer than this, as a part of the largest, are the
# same: frameworks may sum up in another order.
_NEAR = 1e-3
# The same for the two sides of a test of the function's own gradient.
_RIGHT = 1e-4


class ReplayedStretch(Operation):
    """A function of a framework, in float64.

    Its tangents are those of differences: neither a derivative that is written by hand nor the
    framework's own rules are asked. restored: whether its gradient is taken at what it read, where
    that was overwritten.
    """

    def __init__(self, record: ForeignRecord) -> None:
        self.record: ForeignRecord = record
        self.reads = [placements(a, root_of(a))[0] for a in record.inputs]
        self.writes = [placements(a, root_of(a))[0] for a in record.outputs]
        self.restored = True
        self._kept: list[Array] = []

    def bind(self, memories: Memories) -> None:
        self._own = [memories.own.view(p) for p in (*self.reads, *self.writes)]
        self._main = [memories.main.view(p) for p in (*self.reads, *self.writes)]
        self._moved = [memories.tangents.view(p) if p.float else None
                       for p in (*self.reads, *self.writes)]  # fmt: skip
        self._grads = [memories.grads.view(p) if p.wants else None
                       for p in (*self.reads, *self.writes)]  # fmt: skip

    @property
    def _count(self) -> int:
        return len(self.reads)

    def _inputs(self) -> list[Array]:
        return [np.array(x) for x in self._main[: self._count]]

    def _run(self, values: Sequence[Array]) -> list[Array]:
        """The results. Raises EvaluationFailed for what the function raises."""
        name = self.record.name
        try:
            found = self.record.stretch.run(values)
        except Exception as why:
            told = (str(why).splitlines() or [type(why).__name__])[0]
            raise EvaluationFailed(f"{name!r} cannot be computed in float64: {told}") from None
        views = self._main[self._count :]
        if [x.size for x in found] != [v.size for v in views]:
            raise EvaluationFailed(f"{name!r} returns other shapes in float64")
        if any(v.dtype.kind == "f" and x.dtype != np.float64
               for x, v in zip(found, views, strict=True)):  # fmt: skip
            raise EvaluationFailed(f"{name!r} has no float64 form: it returns another precision")
        return [x.reshape(v.shape) for x, v in zip(found, views, strict=True)]

    def forward_own(self) -> None:
        found = self.record.stretch.run([np.array(x) for x in self._own[: self._count]])
        with np.errstate(all="ignore"):
            for view, x in zip(self._own[self._count :], found, strict=True):
                view[...] = x.reshape(view.shape)

    def forward_seen(self) -> bool:
        """Raises NotReplayable where it does something else by now than when it was recorded."""
        try:
            self.forward_own()
        except Exception as why:
            told = (str(why).splitlines() or [type(why).__name__])[0]
            name = self.record.name
            raise NotReplayable(f"{name!r} cannot be run again: {told}", self.record.site) from None
        then = self.record.results
        for was, now in zip(then or (), self._own[self._count :], strict=False):
            x, y = (np.asarray(v).reshape(now.shape).astype(np.float64) for v in (was, now))
            allowed = _NEAR * largest(np.nan_to_num(x))
            if not np.all((np.abs(x - y) <= allowed) | (x == y) | (np.isnan(x) & np.isnan(y))):
                raise NotReplayable(
                    f"{self.record.name!r} computes other values than when it was recorded: it "
                    "depends on values outside of its inputs, which have changed", self.record.site,
                )  # fmt: skip
        return True

    def forward(self) -> None:
        for view, x in zip(self._main[self._count :], self._run(self._inputs()), strict=True):
            view[...] = x

    def forward_recorded(self) -> None:
        self._kept = self._inputs()
        self.forward()

    def backward(self) -> None:
        seeds = []
        for view, g in zip(self._main[self._count :], self._grads[self._count :], strict=True):
            seeds.append(np.zeros_like(view) if g is None else g.copy())
            if g is not None:
                g.fill(0)
        values = self._kept if self.restored else self._inputs()
        for g, x in zip(self._grads, self._pulled(values, seeds), strict=False):
            if g is not None and x is not None:
                g += x

    def _pulled(self, values: Sequence[Array], seeds: Sequence[Array]) -> list[Array | None]:
        wanted = [p.wants for p in self.reads]
        if not any(wanted) or not any(p.wants for p in self.writes):
            return [None] * self._count
        try:
            return self.record.stretch.vjp(values, seeds, wanted, False)
        except Exception as why:
            told = (str(why).splitlines() or [type(why).__name__])[0]
            raise EvaluationFailed(f"the gradient of {self.record.name!r}: {told}") from None

    def tangent(self) -> None:
        values = self._inputs()
        moved = [None if t is None else t.copy() for t in self._moved[: self._count]]
        pushed = self._pushed(values, moved)
        self.forward()
        for t, x in zip(self._moved[self._count :], pushed, strict=True):
            if t is not None:
                t[...] = x

    def _pushed(self, values: Sequence[Array], moved: Sequence[Array | None]) -> list[Array]:
        """The tangents of the results, by differences."""
        views = self._main[self._count :]
        step = _scale(values, moved)
        if step == 0.0:
            return [np.zeros(v.shape) for v in views]

        def line(t: float) -> Array:
            at = [x if v is None else x + t * v for x, v in zip(values, moved, strict=True)]
            found = self._run(at)
            return np.concatenate([np.asarray(x, np.float64).ravel() for x in found])

        known = slope(line, step, lambda d: Tolerance().of(d, largest(d)))
        cuts = np.cumsum([v.size for v in views])[:-1]
        return [x.reshape(v.shape)
                for x, v in zip(np.split(known.value, cuts), views, strict=True)]  # fmt: skip

    def is_wrong(self, rng: np.random.Generator) -> bool:
        """Whether its own gradient is not the derivative of what it computes, at what it read."""
        values = self._kept or self._inputs()
        seeds = [rng.standard_normal(v.shape) if p.wants else np.zeros(v.shape)
                 for v, p in zip(self._main[self._count :], self.writes, strict=True)]  # fmt: skip
        moved = [rng.standard_normal(x.shape) if p.wants else None
                 for x, p in zip(values, self.reads, strict=True)]  # fmt: skip
        pulled, pushed = self._pulled(values, seeds), self._pushed(values, moved)
        pairs = zip(pulled, moved, strict=True)
        terms = [float((g * v).sum()) for g, v in pairs if g is not None and v is not None]
        others = [float((s * t).sum()) for s, t in zip(seeds, pushed, strict=True)]
        size = max((abs(x) for x in (*terms, *others)), default=0.0)
        return not abs(sum(terms) - sum(others)) <= _RIGHT * size


def _scale(values: Sequence[Array], moved: Sequence[Array | None]) -> float:
    """How far to go along a direction to move values by their own size; 0 for no direction."""
    found = []
    for x, v in zip(values, moved, strict=True):
        most = 0.0 if v is None else largest(v)
        if most > 0.0:
            typical = float(np.sqrt(np.mean(np.square(np.nan_to_num(x)))))
            found.append((typical if typical > 0.0 else 1.0) / most)
    return min(found, default=0.0)
