"""Tests whether a derivative is zero up to rounding of the launch's inputs.

Of the mean that minimises a sum of squares, the sum's derivative vanishes: its terms are large, and
cancel. What rounding of the mean leaves of it is no digit of anything; nor is what rounding of the
terms adds to that. No other formula would give more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.tolerance import AUTO_FLOOR
from engine.autograd.launch.evaluation import EvaluationFailed, Evaluations
from engine.draws import default_rng
from engine.lang.numbers import epsilon

Array = NDArray[np.float64]

# Units of rounding that inputs may be off by: most were computed, and sums lose some; those of many
# numbers as the root of how many, in as many parts.
UNITS = 8.0
PARTS = 1024.0
# Inputs that are moved by this part of themselves are beside the recorded ones; there, a derivative
# that vanishes here is this many times larger. One that merely explodes is not.
BESIDE = 1e-3
LARGER = 100.0
# Random displacements of the inputs.
TRIES = 4


def vanishing(
    evaluations: Evaluations, pair: tuple[str, str], w: Array, off: Array | float = 0.0
) -> NDArray[np.bool_]:
    """Where a derivative, and what its own precision adds to it, are rounding of the inputs.

    Each element of w'J is judged by itself: one that explodes excuses no other. pair: input and
    output. w: cotangents. off: what the launch's own adjoint is off by, in the shape of the input.
    """
    exact, (a, b) = evaluations.exact, pair
    off = np.broadcast_to(off, exact.initial[a].shape)
    return _vanishing(evaluations, a, lambda: exact.vjp({b: w})[a].astype(np.float64), off)[0]


def vanishing_outputs(
    evaluations: Evaluations, pair: tuple[str, str], v: Array, adjoint: Array, reference: Array
) -> NDArray[np.bool_]:
    """The same of each element of Jv: a sum of which one output cancels, and others do not.

    pair: input and output. v: tangents. adjoint, reference: of Jv, by the adjoint and by
    differences, in the shape of the output. Differences of sums that cancel have no more digits
    than their terms.
    """
    exact, (a, b) = evaluations.exact, pair
    zero, beside = _vanishing(
        evaluations, a, lambda: exact.jvp({a: v})[b].astype(np.float64), np.abs(adjoint)
    )
    return np.asarray(zero & (np.abs(reference) <= AUTO_FLOOR * (beside / BESIDE)))


def _vanishing(
    evaluations: Evaluations, a: str, derivative: Callable[[], Array], off: Array
) -> tuple[NDArray[np.bool_], Array]:
    """Where a derivative by input `a` is zero up to rounding of what the launch reads.

    With how far it goes beside the recorded inputs.
    """
    exact = evaluations.exact
    rng = default_rng(0)
    # What many threads read a few numbers for is likely to have been made from as many.
    most = max([exact.threads, *(evaluations.size(x) for x in evaluations.readable)])
    terms = most / evaluations.size(a)
    units = UNITS * max(1.0, (terms / PARTS) ** 0.5)

    def moved(part: float) -> Array:
        """How far the derivative goes with inputs off by that part, or, for 0, by rounding."""
        found = []
        for _ in range(TRIES):
            with exact.at(_displaced(evaluations, part, units, rng)):
                found.append(np.abs(derivative() - here))
        return np.asarray(np.max(found, axis=0))

    try:
        here = derivative()
        size, noise = np.abs(here), moved(0.0)
        small = np.maximum(size, off) <= noise
        if not small.any():
            return small, np.zeros(here.shape)
        # What explodes is as far off for a small step as for a large one.
        unit = max(epsilon(evaluations.own.initial[x].dtype)
                   for x in evaluations.readable)  # fmt: skip
        grown = (BESIDE / (units * unit)) ** 0.5
        beside = moved(BESIDE)
        with np.errstate(all="ignore"):
            far = beside >= np.maximum(LARGER * size, grown * noise)
        return np.asarray(small & far), beside
    except EvaluationFailed:
        return np.zeros(off.shape, np.bool_), np.zeros(off.shape)


def _displaced(
    evaluations: Evaluations, part: float, units: float, rng: np.random.Generator
) -> dict[str, Array]:
    """What the launch reads, each number off by a part of itself; by units of rounding for 0."""
    exact, own = evaluations.exact, evaluations.own
    out = {}
    with np.errstate(all="ignore"):
        for name in evaluations.readable:
            x, unit = exact.initial[name], epsilon(own.initial[name].dtype)
            out[name] = x * (1.0 + (part or units * unit) * _signed(rng, x.shape))
    return out


def _signed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers about one of both signs: what is moved by the same amount cancels by chance."""
    return np.asarray(rng.uniform(0.5, 1.5, shape) * rng.choice([-1.0, 1.0], shape))
