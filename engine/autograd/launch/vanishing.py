"""Whether a derivative is zero, up to rounding of what its launch was given.

Of the mean that minimises a sum of squares, the sum's derivative vanishes: its terms are large, and
cancel. What rounding of the mean leaves of it is no digit of anything; nor is what rounding of the
terms adds to that. No other formula would give more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.tolerance import largest
from engine.autograd.launch.evaluation import EvaluationFailed, Evaluations
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


def vanishes(
    evaluations: Evaluations, pair: tuple[str, str], w: Array, live: NDArray[np.bool_],
    scale: float, off: float,
) -> bool:  # fmt: skip
    """Whether a derivative, and what its own precision adds to it, are rounding of the inputs.

    pair: input and output. w: cotangents. live: elements of the input that count. scale: the
    largest element of w'J; off: what the launch's own adjoint is off by.
    """
    exact, (a, b) = evaluations.exact, pair
    rng = np.random.default_rng(0)
    # What many threads read a few numbers for is likely to have been made from as many.
    most = max([exact.threads, *(evaluations.size(x) for x in evaluations.readable)])
    terms = most / evaluations.size(a)
    units = UNITS * max(1.0, (terms / PARTS) ** 0.5)

    def gradient() -> Array:
        return exact.vjp({b: w})[a][live].astype(np.float64)

    def moved(part: float) -> float:
        """How far the derivative goes with inputs off by that part, or, for 0, by rounding."""
        with _displaced(evaluations, part, units, rng):
            return largest(gradient() - here)

    try:
        here = gradient()
        noise = max(moved(0.0) for _ in range(TRIES))
        if not max(scale, off) <= noise:
            return False
        # What explodes is as far off for a small step as for a large one.
        unit = max(epsilon(evaluations.own.initial[x].dtype)
                   for x in evaluations.readable)  # fmt: skip
        grown = (BESIDE / (units * unit)) ** 0.5
        beside = max(moved(BESIDE) for _ in range(TRIES))
        return bool(beside >= max(LARGER * scale, grown * noise))
    except EvaluationFailed:
        return False
    finally:
        exact.refresh()


@contextmanager
def _displaced(
    evaluations: Evaluations, part: float, units: float, rng: np.random.Generator
) -> Iterator[None]:
    """What the launch reads, each number off by a part of itself; by units of rounding for 0."""
    exact, own = evaluations.exact, evaluations.own
    kept = {name: exact.initial[name].copy() for name in evaluations.readable}
    try:
        for name, x in kept.items():
            unit = epsilon(own.initial[name].dtype)
            with np.errstate(all="ignore"):
                exact.initial[name][...] = x * (
                    1.0 + (part or units * unit) * rng.choice([-1.0, 1.0], x.shape)
                )
        exact.refresh()
        yield
    finally:
        for name, x in kept.items():
            exact.initial[name][...] = x
