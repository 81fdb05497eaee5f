"""Derivatives by central differences in float64, with an estimate of their own error.

Two step sizes give two central differences; Richardson's extrapolation combines
them (4 D(h/2) - D(h)) / 3, and their distance bounds the error (Press et al.,
Numerical Recipes, section 5.7). Where they disagree, the step shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Outputs of the launch, flat and concatenated, for an input displaced by t times a direction.
Line = Callable[[float], Array]

SHRINK = 1.0 / 16.0
TRIES = 6
STEP = 1e-3


@dataclass(frozen=True)
class Slope:
    """d outputs / d t with an error bound, both flat over the outputs."""

    value: Array
    error: Array


def central(line: Line, h: float) -> Array:
    return (line(h) - line(-h)) / (2.0 * h)


def slope(line: Line, scale: float, tolerance: Callable[[Array], Array]) -> Slope:
    """The derivative along a line at t = 0.

    scale: typical size of the displaced values, for the first step. tolerance: the
    error that matters, by derivative; the search for a step stops well below it.
    """
    best: Array | None = None
    error: Array | None = None
    h = STEP * scale
    with np.errstate(all="ignore"):
        for _ in range(TRIES):
            wide, narrow = central(line, h), central(line, h / 2.0)
            value = (4.0 * narrow - wide) / 3.0
            err = np.abs(narrow - wide)
            # The differences cannot be better than the rounding of what they subtract.
            err = np.where(np.isfinite(value), err, np.inf)
            if best is None or error is None:
                best, error = value, err
            else:
                better = err < error
                best, error = np.where(better, value, best), np.where(better, err, error)
            if np.all(error <= 0.02 * tolerance(best)):
                break
            h *= SHRINK
    assert best is not None and error is not None
    return Slope(best, error)


def fixed(line: Line, eps: float) -> Slope:
    """The central difference with one absolute step, as the reference's formula has it."""
    with np.errstate(all="ignore"):
        value = central(line, eps)
    return Slope(value, np.zeros_like(value))


def one_sided(line: Line, scale: float) -> tuple[Array, Array]:
    """Slopes to the right and to the left, for telling a kink from an error."""
    h = 1e-7 * scale
    with np.errstate(all="ignore"):
        here = line(0.0)
        return (line(h) - here) / h, (here - line(-h)) / h


def pick(count: int, limit: int, rng: np.random.Generator) -> Sequence[int] | NDArray[Any]:
    """All indices below count, or `limit` of them at random, in order."""
    if limit <= 0 or count <= limit:
        return range(count)
    return np.sort(rng.choice(count, size=limit, replace=False))
