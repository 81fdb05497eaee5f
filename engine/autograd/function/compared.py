"""The pairs of variables that are compared for a Python function, at one run of it.

A function may do more than launch kernels, so it is run at displaced inputs, in its own
precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.judgement import NAN, Comparison, Judgement
from engine.autograd.comparison.tolerance import AUTO_RTOL, Tolerance
from engine.autograd.function.call import leaves_of
from engine.autograd.function.displaced import POWER, DisplacedFunction
from engine.autograd.function.recorded_call import RecordedCall
from engine.autograd.variables.roles import Pair
from engine.autograd.variables.variable import Part, Variable
from engine.cached import cached_property
from engine.classes import dataclass
from engine.lang.numbers import epsilon, least
from engine.runtime.array import array

Array = NDArray[Any]

# Above this many scalars on a side or entries in all, random directions take the place of entries.
SIDE = 512
ENTRIES = 100_000


@dataclass(frozen=True)
class ComparedFunction:
    """What is compared: pairs of a function's variables, at one run of it.

    max_inputs, max_outputs: how many scalars of each variable to look at; all if <= 0.
    """

    recorded: RecordedCall
    pairs: Sequence[Pair]
    displaced: DisplacedFunction
    tolerance: Tolerance
    max_inputs: int
    max_outputs: int
    rng: np.random.Generator

    @cached_property
    def inputs(self) -> list[Variable]:
        """All inputs, once each."""
        return _unique([p.input for p in self.pairs])

    @cached_property
    def outputs(self) -> list[Variable]:
        """All outputs, once each."""
        return _unique([p.output for p in self.pairs])

    @cached_property
    def precision(self) -> float:
        """The relative rounding of the coarsest arrays."""
        return max(epsilon(t) for t in self._types)

    @cached_property
    def tiny(self) -> float:
        """The smallest positive value of the coarsest arrays."""
        return max(least(t) for t in self._types)

    @cached_property
    def _types(self) -> list[Any]:
        found = [leaves_of(self.recorded.call.given[p.input.index])[q.leaf]
                 for p in self.pairs for q in p.input.parts]  # fmt: skip
        found += [leaves_of(self.recorded.results[p.output.index])[q.leaf]
                  for p in self.pairs for q in p.output.parts]  # fmt: skip
        return [a._parts.dtype for a in found]

    @cached_property
    def rtol(self) -> float:
        """What differences in this precision can tell."""
        return float(max(AUTO_RTOL, 100.0 * self.precision ** (1.0 - POWER)))

    @property
    def small(self) -> bool:
        """Whether entries are compared one by one."""
        inputs = sum(v.size for v in self.inputs)
        outputs = sum(v.size for v in self.outputs)
        asked = self.max_inputs > 0 or self.max_outputs > 0
        return asked or (max(inputs, outputs) <= SIDE and inputs * outputs <= ENTRIES)

    def input_leaves(self, v: Variable) -> list[tuple[Part, array]]:
        """The arrays of an input, and which of its scalars are theirs."""
        leaves = leaves_of(self.recorded.call.given[v.index])
        return [(part, leaves[part.leaf]) for part in v.parts]

    def not_finite(self, p: Pair) -> Judgement:
        """The verdict on an adjoint that is not: it is the function's fault unless its inputs'."""
        for _, a in self.input_leaves(p.input):
            if not np.all(np.isfinite(a._host())):
                why = f"argument {p.input.label!r} holds NaN or Inf"
                return Judgement("inconclusive", why)
        return NAN

    @property
    def _automatic(self) -> bool:
        """Whether no tolerance was given; a step alone is none."""
        return self.tolerance.atol is None and self.tolerance.rtol is None

    def begun(self) -> dict[tuple[int, int], Comparison]:
        """A comparison for each pair, of which nothing is known."""
        relative = self.rtol if self._automatic else self.tolerance.relative
        return {p.key: Comparison(tolerance=relative) for p in self.pairs}

    def allowed(self, ref: Array) -> Array:
        """The largest error allowed at each entry, beside the others in its row and column."""
        size = np.where(np.isfinite(ref), np.abs(ref), 0.0)
        near = size
        if size.ndim == 2:
            near = np.minimum(size.max(axis=1, keepdims=True), size.max(axis=0, keepdims=True))
        if not self._automatic:
            return self.tolerance.of(ref, near)
        return np.asarray(self.rtol * np.abs(ref) + 0.1 * self.rtol * near)


def _unique(variables: Sequence[Variable]) -> list[Variable]:
    return list({id(v): v for v in variables}.values())
