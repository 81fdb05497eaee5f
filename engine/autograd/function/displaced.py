"""Runs a Python function at displaced inputs, in its arrays' precision, and differences it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.function.call import leaves_of
from engine.autograd.function.recorded_call import RecordedCall
from engine.autograd.function.scalars import scalar_at, set_scalar
from engine.autograd.reference.differences import Slope
from engine.autograd.variables.roles import Pair
from engine.autograd.variables.variable import Variable
from engine.lang.numbers import epsilon
from engine.runtime.array import array
from engine.runtime.launch_errors import fail

Array = NDArray[Any]

# The step that balances rounding and the fourth-order error of extrapolated differences, as a
# power of the precision; and what to multiply it by, for the search.
POWER = 0.2
FACTORS = (1.0, 4.0, 0.25, 1.0 / 16.0)
FINER = tuple(0.25**k for k in (3, 4, 5, 6, 7))
TINY = 1e-45  # what underflows in float32 says nothing


class DisplacedFunction:
    """The function as one of a single displaced scalar, in the arrays' own precision.

    Every run starts from the same memory and is undone afterwards.
    """

    def __init__(self, recorded: RecordedCall, outputs: Sequence[Variable]) -> None:
        """outputs: variables of the recorded results."""
        self.call = recorded.call
        self.outputs = outputs
        self._restore = recorded.restore
        leaves = [leaves_of(recorded.results[v.index])[p.leaf] for v in outputs for p in v.parts]
        # The relative rounding of the outputs.
        self.precision = max(epsilon(a._parts.dtype) for a in leaves)

    def at(self, a: array, scalar: int, t: float) -> tuple[float, Array]:
        """By how much the scalar really moved, and the outputs, one after the other."""
        before = scalar_at(a, scalar)
        with np.errstate(all="ignore"):
            moved = float(a._parts.dtype.type(before + t))
            a.storage.before_write(a.lo, a.hi)
            set_scalar(a, scalar, moved)
            try:
                return moved - before, self.values()
            finally:
                self._restore()

    def along(self, moves: Sequence[tuple[array, Array]], t: float) -> Array:
        """Outputs with arrays displaced by t times directions."""
        try:
            for a, v in moves:
                a.storage.before_write(a.lo, a.hi)
                a._put((a._host() + t * v).astype(a._parts.dtype))
            return self.values()
        finally:
            self._restore()

    def values(self) -> Array:
        """The outputs of a run as float64, one variable after the other."""
        results = self.call.run()[1]
        out = [np.zeros(0)]
        for v in self.outputs:
            flat = np.empty(v.size)
            leaves = leaves_of(results[v.index]) if v.index < len(results) else []
            for part in v.parts:
                found = leaves[part.leaf]._host() if part.leaf < len(leaves) else None
                if found is None or found.size != part.size:
                    raise self._changed(v)
                flat[part.places()] = found.reshape(-1)
            out.append(flat)
        return np.concatenate(out)

    def _changed(self, v: Variable) -> Exception:
        return fail(
            "E202", f"function {self.call.key!r} returns different arrays from run to run",
            f"{v.label} had {v.size} numbers at first",
            help=(
                "a check runs the function repeatedly, so it must always return arrays of the "
                "same shapes"
            ),
        )  # fmt: skip

    def span(self, v: Variable) -> slice:
        """Where a variable's scalars are among those of all outputs."""
        begin = 0
        for other in self.outputs:
            if other is v:
                break
            begin += other.size
        return slice(begin, begin + v.size)


def slope_by(
    displaced: DisplacedFunction, a: array, scalar: int, typical: float, eps: float | None
) -> Slope:
    """The derivative of all outputs by one scalar, with a bound of its error.

    eps: the step of a plain central difference; None searches one.
    """
    if eps is not None:
        ahead, behind = (displaced.at(a, scalar, s)[1] for s in (eps, -eps))
        with np.errstate(all="ignore"):
            value = (ahead - behind) / (2.0 * eps)
        return Slope(value, np.zeros_like(value))
    precision = max(epsilon(a._parts.dtype), displaced.precision)
    x = abs(scalar_at(a, scalar))
    largest = max(x, 0.1 * typical)
    sizes = [largest * f for f in (*FACTORS, *FINER)]
    if 0 < x < largest:  # the function may change over its own size
        sizes += [x * f for f in (FACTORS[0], *FINER) if x * f < sizes[-1]]
    best: Array | None = None
    error: Array | None = None
    smallest, moves = np.inf, np.zeros(1, bool)
    for size in sizes:
        h = size * precision**POWER
        value, bound, moved = _extrapolated(displaced, a, scalar, h, precision)
        moves = moves | moved
        if best is None or error is None:
            best, error = value, bound
        else:
            apart = np.abs(value - best)
            contradicted = apart > error + bound
            # Over a smaller step, a function that is steep or has a kink near by shows it.
            closer = (h < smallest) & (bound <= 0.25 * apart)
            better = np.where(contradicted, closer, bound < error)
            best, error = np.where(better, value, best), np.where(better, bound, error)
        smallest = min(smallest, h)
        if h != sizes[0] and np.all(~moves | (error <= 100 * precision * np.abs(best))):
            break
    assert best is not None and error is not None
    return Slope(best, error)


def _extrapolated(
    displaced: DisplacedFunction, a: array, scalar: int, h: float, precision: float
) -> tuple[Array, Array, Array]:
    """Richardson's extrapolation of central differences with steps h and h/2.

    Gives also a bound of its error, and which outputs moved at all.
    """
    far, near = ([displaced.at(a, scalar, s * k) for s in (1.0, -1.0)] for k in (h, h / 2.0))
    with np.errstate(all="ignore"):
        wide, narrow = ((x[0][1] - x[1][1]) / (x[0][0] - x[1][0]) for x in (far, near))
        size = np.maximum(np.abs(near[0][1]), np.abs(near[1][1]))
        rounding = (8.0 * precision * size + 4.0 * TINY) / h
        value = (4.0 * narrow - wide) / 3.0
        bound = np.abs(narrow - wide) + rounding
        moved = (far[0][1] != far[1][1]) | (near[0][1] != near[1][1])
        return value, np.where(np.isfinite(value), bound, np.inf), moved


def typical_size(a: array) -> float:
    """The root mean square of an array's finite values, 1 where that is zero."""
    x = a._host().astype(np.float64)
    x = x[np.isfinite(x)]
    size = float(np.sqrt(np.mean(x * x))) if x.size else 0.0
    return size if np.isfinite(size) and size > 0 else 1.0


def difference_columns(
    displaced: DisplacedFunction, pairs: Sequence[Pair],
    matrices: Mapping[tuple[int, int], Array], eps: float | None, limit: int,
) -> None:  # fmt: skip
    """Fills matrices column by column; to be called `restored`.

    eps: see `slope_by`. limit: columns of each input; all if <= 0.
    """
    for v in {id(p.input): p.input for p in pairs}.values():
        targets = [p for p in pairs if p.input is v]
        leaves = leaves_of(displaced.call.given[v.index])
        for part in v.parts:
            a = leaves[part.leaf]
            typical = typical_size(a)
            for f, col in enumerate(part.index().tolist()):
                if 0 < limit <= col:
                    continue
                slope = slope_by(displaced, a, f, typical, eps).value
                for p in targets:
                    matrices[p.key][:, col] = slope[displaced.span(p.output)]
