"""Tests whether a derivative is zero up to rounding of the launch's inputs.

Of the mean that minimises a sum of squares, the sum's derivative vanishes: its terms are large, and
cancel. What rounding of the mean leaves of it is no digit of anything; nor is what rounding of the
terms adds to that. No other formula would give more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    rng = default_rng(0)
    # What many threads read a few numbers for is likely to have been made from as many.
    most = max([exact.threads, *(evaluations.size(x) for x in evaluations.readable)])
    terms = most / evaluations.size(a)
    units = UNITS * max(1.0, (terms / PARTS) ** 0.5)

    def gradient() -> Array:
        return exact.vjp({b: w})[a].astype(np.float64)

    def moved(part: float) -> Array:
        """How far the derivative goes with inputs off by that part, or, for 0, by rounding."""
        found = []
        for _ in range(TRIES):
            with exact.at(_displaced(evaluations, part, units, rng)):
                found.append(np.abs(gradient() - here))
        return np.asarray(np.max(found, axis=0))

    try:
        here = gradient()
        size, noise = np.abs(here), moved(0.0)
        small = np.maximum(size, off) <= noise
        if not small.any():
            return small
        # What explodes is as far off for a small step as for a large one.
        unit = max(epsilon(evaluations.own.initial[x].dtype)
                   for x in evaluations.readable)  # fmt: skip
        grown = (BESIDE / (units * unit)) ** 0.5
        with np.errstate(all="ignore"):
            far = moved(BESIDE) >= np.maximum(LARGER * size, grown * noise)
        return np.asarray(small & far)
    except EvaluationFailed:
        return np.zeros(exact.initial[a].shape, np.bool_)


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
