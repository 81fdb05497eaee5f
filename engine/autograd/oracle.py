"""Derivatives by central differences, with an estimate of their own error.

Values are float64, but for what has no float64 form (see `Grain`).

Two step sizes give two central differences; Richardson's extrapolation combines
them (4 D(h/2) - D(h)) / 3, and their distance bounds the error (Press et al.,
Numerical Recipes, section 5.7). Where they disagree, the step shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Line: outputs of the launch, flat and concatenated, for an input displaced by t times a direction.
from engine.autograd import rounding
from engine.autograd.rounding import Array, Line, Stairs

PATIENCE = 3  # steps without progress before the search ends


@dataclass(frozen=True)
class Grain:
    """How fine the values of a function are, and the steps that suit that.

    epsilon: their relative rounding. step: relative to the size of what is displaced.
    factors: multiples of it to try: smaller for steep functions, larger where outputs are
    so large that rounding hides a small step. side: the step of one-sided differences.
    """

    epsilon: float
    step: float
    factors: tuple[float, ...]
    side: float

    @property
    def coarse(self) -> bool:
        """True where rounding inside of the function has to be measured."""
        return self.epsilon > FINE.epsilon


FINE = Grain(
    float(np.finfo(np.float64).eps),
    1e-3,
    tuple(16.0**k for k in (0, -1, 1, -2, 2, -3, 3, -4, 4, -5, 5, -6)),
    1e-7,
)


def grain_of(epsilon: float) -> Grain:
    """The grain of values with that relative rounding; 0 means float64."""
    if not epsilon:
        return FINE
    # The error of an extrapolated difference is least about there.
    step = epsilon**0.25
    factors = tuple(4.0**k for k in (0, 2, -1, 1, 3, -2, 4, -3, 5, 6))
    return Grain(epsilon, step, factors, epsilon**0.5)


@dataclass(frozen=True)
class Slope:
    """d outputs / d t with an error bound, both flat over the outputs."""

    value: Array
    error: Array


def slope(
    line: Line, scale: float, tolerance: Callable[[Array], Array], grain: Grain = FINE
) -> Slope:
    """The derivative along a line at t = 0.

    scale: typical size of the displaced values, for the first step. tolerance: the
    error that matters, by derivative; the search for a step stops well below it.
    """
    best: Array | None = None
    error: Array | None = None
    stairs = Stairs(line) if grain.coarse else None
    idle = 0
    with np.errstate(all="ignore"):
        here = line(0.0)
        noise = rounding.noise(line, grain.step * scale) if grain.coarse else 0.0
        for factor in grain.factors:
            h = grain.step * scale * factor
            value, err = richardson(line, h, grain, noise, here)
            better: Any = True
            if best is None or error is None:
                best, error = value, err
            else:
                # A bound that contradicts a smaller step's is not believed: far away, a
                # function may be flat, or repeat itself.
                better = (err < error) & ((factor < 1) | (np.abs(value - best) <= error + err))
                idle = 0 if np.any(better & (err < 0.5 * error)) else idle + 1
                best, error = np.where(better, value, best), np.where(better, err, error)
            if stairs is not None:
                stairs.look(h, better, [here, line(h), line(-h)])
            if idle == PATIENCE or np.all(error <= 0.02 * tolerance(best)):
                break
    assert best is not None and error is not None
    if stairs is not None:
        error = np.maximum(error, stairs.bound())
    return Slope(best, error)


def nearer(wide: Slope, near: Slope) -> Slope:
    """Of two searches the better entries; `near` took smaller steps, and may see more."""
    with np.errstate(all="ignore"):
        apart = np.abs(wide.value - near.value)
        contradicted = ~(apart <= wide.error + near.error)
        better = np.where(contradicted, near.error <= 0.25 * apart, near.error < wide.error)
        better |= ~np.isfinite(wide.error) & np.isfinite(near.error)
        return Slope(
            np.where(better, near.value, wide.value), np.where(better, near.error, wide.error)
        )


def opinions(line: Line, scale: float, grain: Grain = FINE) -> list[Slope]:
    """Derivatives by several small steps, each with its bound: for judging a disagreement."""
    out = []
    with np.errstate(all="ignore"):
        noise = rounding.noise(line, grain.step * scale) if grain.coarse else 0.0
        for factor in sorted(f for f in grain.factors if f < 1)[::-1][:4]:
            value, err = richardson(line, grain.step * scale * factor, grain, noise)
            out.append(Slope(value, err))
    return out


def richardson(
    line: Line, h: float, grain: Grain, noise: Array | float = 0.0, here: Array | None = None
) -> tuple[Array, Array]:
    far, near = (line(h), line(-h)), (line(h / 2.0), line(-h / 2.0))
    wide = (far[0] - far[1]) / (2.0 * h)
    narrow = (near[0] - near[1]) / h
    # What the outputs may be off by through rounding, the launch's own sums included.
    unsure = 4.0 * np.maximum(
        grain.epsilon * np.maximum(np.abs(far[0]), np.abs(far[1])), noise
    ) / h  # fmt: skip
    value = (4.0 * narrow - wide) / 3.0
    known = np.isfinite(value)
    if here is not None:
        # Second differences over the step shrink with it, unless the function jumps between
        # here and there on both sides: central differences would not notice.
        bend, half = (np.abs(x[0] - 2.0 * here + x[1]) / k for x, k in ((far, h), (near, h / 2.0)))
        known &= ~((half > 1.5 * bend) & (half > 16.0 * unsure))
    return value, np.where(known, np.abs(narrow - wide) + unsure, np.inf)


def fixed(line: Line, eps: float, grain: Grain = FINE) -> Slope:
    """The central difference with one absolute step, as the reference's formula has it.

    It is taken at its word, but for the rounding of values that are coarser than float64.
    """
    with np.errstate(all="ignore"):
        after, before = line(eps), line(-eps)
        value = (after - before) / (2.0 * eps)
        error = np.zeros_like(value)
        if grain.coarse:
            error += grain.epsilon * np.maximum(np.abs(after), np.abs(before)) / eps
    return Slope(value, error)


def extrapolated(line: Line, h: float, grain: Grain = FINE) -> Slope:
    """The derivative by central differences of the steps h and h/2, extrapolated."""
    with np.errstate(all="ignore"):
        return Slope(*richardson(line, h, grain))


def one_sided(line: Line, scale: float, grain: Grain = FINE) -> tuple[Array, Array, Array]:
    """Slopes to the right and to the left, and how far rounding may put them off."""
    h = grain.side * scale
    with np.errstate(all="ignore"):
        here, after, before = line(0.0), line(h), line(-h)
        noise = grain.epsilon * np.maximum(np.abs(here), np.abs(after - before)) / h
        return (after - here) / h, (here - before) / h, noise


def pick(count: int, limit: int, rng: np.random.Generator) -> Sequence[int]:
    """All indices below count, or `limit` of them at random, in order."""
    if limit <= 0 or count <= limit:
        return range(count)
    return sorted(rng.choice(count, size=limit, replace=False).tolist())
