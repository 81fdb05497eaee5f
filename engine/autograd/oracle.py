"""Derivatives by central differences in float64, with an estimate of their own error.

Two step sizes give two central differences; Richardson's extrapolation combines
them (4 D(h/2) - D(h)) / 3, and their distance bounds the error (Press et al.,
Numerical Recipes, section 5.7). Where they disagree, the step shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Outputs of the launch, flat and concatenated, for an input displaced by t times a direction.
Line = Callable[[float], Array]

STEP = 1e-3
# Step sizes to try, as multiples of STEP * scale: smaller for steep functions, larger
# where the outputs are so large that rounding hides a small step.
FACTORS = tuple(16.0**k for k in (0, -1, 1, -2, 2, -3, 3, -4, 4, -5, 5, -6))
PATIENCE = 3  # steps without progress before the search ends
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Slope:
    """d outputs / d t with an error bound, both flat over the outputs."""

    value: Array
    error: Array


def slope(line: Line, scale: float, tolerance: Callable[[Array], Array]) -> Slope:
    """The derivative along a line at t = 0.

    scale: typical size of the displaced values, for the first step. tolerance: the
    error that matters, by derivative; the search for a step stops well below it.
    """
    best: Array | None = None
    error: Array | None = None
    idle = 0
    with np.errstate(all="ignore"):
        here = line(0.0)
        for factor in FACTORS:
            value, err = _extrapolated(line, STEP * scale * factor, here)
            if best is None or error is None:
                best, error = value, err
            else:
                # A bound that contradicts a smaller step's is not believed: far away, a
                # function may be flat, or repeat itself.
                better = (err < error) & ((factor < 1) | (np.abs(value - best) <= error + err))
                idle = 0 if np.any(better & (err < 0.5 * error)) else idle + 1
                best, error = np.where(better, value, best), np.where(better, err, error)
            if idle == PATIENCE or np.all(error <= 0.02 * tolerance(best)):
                break
    assert best is not None and error is not None
    return Slope(best, error)


def opinions(line: Line, scale: float) -> list[Slope]:
    """Derivatives by several small steps, each with its bound: for judging a disagreement."""
    out = []
    with np.errstate(all="ignore"):
        for k in (-1, -2, -3, -4):
            value, err = _extrapolated(line, STEP * scale * 16.0**k)
            out.append(Slope(value, err))
    return out


def _extrapolated(line: Line, h: float, here: Array | None = None) -> tuple[Array, Array]:
    far, near = (line(h), line(-h)), (line(h / 2.0), line(-h / 2.0))
    wide = (far[0] - far[1]) / (2.0 * h)
    narrow = (near[0] - near[1]) / h
    # What the outputs may be off by through rounding, the launch's own sums included.
    rounding = 4.0 * EPSILON * np.maximum(np.abs(far[0]), np.abs(far[1])) / h
    value = (4.0 * narrow - wide) / 3.0
    known = np.isfinite(value)
    if here is not None:
        # Second differences over the step shrink with it, unless the function jumps between
        # here and there on both sides: central differences would not notice.
        bend, half = (np.abs(x[0] - 2.0 * here + x[1]) / k for x, k in ((far, h), (near, h / 2.0)))
        known &= ~((half > 1.5 * bend) & (half > 16.0 * rounding))
    return value, np.where(known, np.abs(narrow - wide) + rounding, np.inf)


def fixed(line: Line, eps: float) -> Slope:
    """The central difference with one absolute step, as the reference's formula has it."""
    with np.errstate(all="ignore"):
        value = (line(eps) - line(-eps)) / (2.0 * eps)
    return Slope(value, np.zeros_like(value))


def extrapolated(line: Line, h: float) -> Slope:
    """The derivative by central differences of the steps h and h/2, extrapolated."""
    with np.errstate(all="ignore"):
        return Slope(*_extrapolated(line, h))


def one_sided(line: Line, scale: float) -> tuple[Array, Array, Array]:
    """Slopes to the right and to the left, and how far rounding may put them off."""
    h = 1e-7 * scale
    with np.errstate(all="ignore"):
        here, after, before = line(0.0), line(h), line(-h)
        noise = EPSILON * np.maximum(np.abs(here), np.abs(after - before)) / h
        return (after - here) / h, (here - before) / h, noise


def pick(count: int, limit: int, rng: np.random.Generator) -> Sequence[int]:
    """All indices below count, or `limit` of them at random, in order."""
    if limit <= 0 or count <= limit:
        return range(count)
    return sorted(rng.choice(count, size=limit, replace=False).tolist())
