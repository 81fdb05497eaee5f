"""Derivatives by central differences, with an estimate of their own error.

Values are float64, but for what has no float64 form (see `WorkingPrecision`).

Two step sizes give two central differences; Richardson's extrapolation combines
them (4 D(h/2) - D(h)) / 3, and their distance bounds the error (Press et al.,
Numerical Recipes, section 5.7). Where they disagree, the step shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from engine.autograd.reference.noise import (
    Array,
    Line,
    Stairs,
    fourth_differences,
    noise_level,
    side_noise,
)
from engine.classes import dataclass

PATIENCE = 3  # steps without progress before the search ends
ENOUGH = 0.02  # of the error that matters: no better step is looked for then
# The error of a difference, relative to the parts of a sum, that still tells something.
ROUGH = 1e-2


@dataclass(frozen=True)
class WorkingPrecision:
    """The precision that a function is computed in, and the steps that suit it.

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
        return self.epsilon > FLOAT64.epsilon


FLOAT64 = WorkingPrecision(
    float(np.finfo(np.float64).eps),
    1e-3,
    tuple(16.0**k for k in (0, -1, 1, -2, 2, -3, 3, -4, 4, -5, 5, -6)),
    1e-7,
)


def working_precision(epsilon: float) -> WorkingPrecision:
    """The precision of values with that relative rounding; 0 means float64."""
    if not epsilon:
        return FLOAT64
    # The error of an extrapolated difference is least about there.
    step = epsilon**0.25
    factors = tuple(4.0**k for k in (0, 2, -1, 1, 3, -2, 4, -3, 5, 6))
    return WorkingPrecision(epsilon, step, factors, epsilon**0.5)


@dataclass(frozen=True)
class Slope:
    """d outputs / d t with an error bound, both flat over the outputs."""

    value: Array
    error: Array


def slope(
    line: Line,
    scale: float,
    tolerance: Callable[[Array], Array],
    precision: WorkingPrecision = FLOAT64,
) -> Slope:
    """The derivative along a line at t = 0.

    scale: typical size of the displaced values, for the first step. tolerance: the
    error that matters, by derivative; the search for a step stops well below it.
    """
    return slopes([line], [scale], tolerance, precision)[0]


def slopes(
    lines: Sequence[Line],
    scales: Sequence[float],
    tolerance: Callable[[Array], Array],
    precision: WorkingPrecision = FLOAT64,
) -> list[Slope]:
    """The derivatives along several lines, each as `slope` gives it.

    The lines have equally many outputs. tolerance: takes derivatives in rows, one a line.
    """
    known: dict[int, Slope] = {}
    with np.errstate(all="ignore"):
        here = np.array([line(0.0) for line in lines])
        sizes = np.array([precision.step * scale for scale in scales])
        stairs = [Stairs(line) for line in lines] if precision.coarse else []
        noise: Any = 0.0
        searched = list(lines)
        if precision.coarse:
            levels = zip(lines, sizes.tolist(), strict=True)
            noise = np.array([fourth_differences(line, h) for line, h in levels])
        else:
            for i, line in enumerate(lines):
                h = float(sizes[i]) * precision.factors[0]
                ahead = line(h)
                if np.array_equal(ahead, here[i]):
                    found = _still(line, scales[i], tolerance, precision, here[i])
                    if found is not None:
                        known[i] = found
                searched[i] = _knowing(line, {h: ahead})
        left = [i for i in range(len(lines)) if i not in known]
        if known:
            here, sizes = here[left], sizes[left]
        best = error = idle = np.zeros(0)
        for number, factor in enumerate(precision.factors):
            if not left:
                break
            steps = sizes * factor
            far, near = _around(searched, left, steps), _around(searched, left, steps / 2.0)
            value, err = _extrapolated(far, near, steps[:, None], precision, noise, here)
            better: Any = np.True_
            if number:
                # A bound that contradicts a smaller step's is not believed: far away, a
                # function may be flat, or repeat itself.
                better = err < error
                if factor >= 1:
                    better &= np.abs(value - best) <= error + err
                sharper = (better & (err < 0.5 * error)).any(axis=1)
                idle = np.where(sharper, 0, idle + 1)
                value, err = np.where(better, value, best), np.where(better, err, error)
            else:
                idle = np.zeros(len(left))
            best, error = value, err
            for k, i in enumerate(left if stairs else ()):
                chosen = np.broadcast_to(better, value.shape)[k]
                stairs[i].look(float(steps[k]), chosen, [here[k], far[0][k], far[1][k]])
            over = (idle == PATIENCE) | (err <= ENOUGH * tolerance(value)).all(axis=1)
            over |= factor == precision.factors[-1]
            if over.any():
                for at in np.flatnonzero(over).tolist():
                    known[left[at]] = Slope(best[at], error[at])
                on = ~over
                left = [i for i, more in zip(left, on, strict=True) if more]
                best, error, idle, here, sizes = (x[on] for x in (best, error, idle, here, sizes))
                noise = noise[on] if stairs else noise
        for i, s in enumerate(stairs):
            known[i] = Slope(known[i].value, np.maximum(known[i].error, s.bound()))
    return [known[i] for i in range(len(lines))]


def _around(lines: Sequence[Line], which: Sequence[int], steps: Array) -> tuple[Array, Array]:
    """The values of some lines at their steps, and at the opposite ones, in rows."""
    pairs = [(lines[i], h) for i, h in zip(which, steps.tolist(), strict=True)]
    return np.array([f(h) for f, h in pairs]), np.array([f(-h) for f, h in pairs])


def _still(
    line: Line, scale: float, tolerance: Callable[[Array], Array], precision: WorkingPrecision,
    here: Array,
) -> Slope | None:  # fmt: skip
    """The slope, zero, where nothing moves in the first step; None where anything does.

    here: the values at 0, and as far ahead as the first step goes.
    Smaller steps would only say so with larger bounds. Larger ones are taken as in `slope`, up to
    where something moves: None if that may be what rounding hid in the first step.
    """
    first, *others = precision.factors
    h = precision.step * scale * first
    if not all(np.array_equal(line(t), here) for t in (-h, h / 2.0, -h / 2.0)):
        return None
    best, error = richardson(lambda t: here, h, precision, here=here)
    for factor in (f for f in others if f > first):
        if np.all(error <= ENOUGH * tolerance(best)):
            break
        h = precision.step * scale * factor
        ends = {t: line(t) for t in (h, -h)}
        if all(np.array_equal(x, here) for x in ends.values()):
            # Nor does anything nearer, then: what is between is not asked.
            ends |= {h / 2.0: here, -h / 2.0: here}
        value, err = richardson(_knowing(line, ends), h, precision, here=here)
        believed = (err < error) & (np.abs(value - best) <= error + err)
        if np.any(believed & (value != 0)):
            return None
        if np.any(value != 0) or not np.all(np.isfinite(err)):
            break
        error = np.where(believed, err, error)
    return Slope(best, error)


def bear_out(line: Line, known: Array, size: Array, allowed: Array) -> bool:
    """Whether differences bear out derivatives on which forward mode and the adjoint agree.

    With the first step that tells anything: at a kink, none does. size: of the parts of which each
    derivative is the sum. allowed: the errors allowed.
    """
    once = remembered(line)
    with np.errstate(all="ignore"):
        # By one difference, where that is as near as is asked for.
        if np.all(np.abs(known - fixed(once, FLOAT64.step, FLOAT64).value) <= allowed):
            return True
    enough = np.maximum(ROUGH * size, allowed)

    def matters(d: Array) -> Array:
        return np.where(np.abs(known - d) <= allowed, np.inf, enough / ENOUGH)

    found = slope(once, 1.0, matters)
    with np.errstate(all="ignore"):
        off = np.abs(known - found.value)
        clear = (found.error <= enough) & (off <= allowed + found.error)
        return bool(np.all(clear | (off <= allowed)))


def remembered(line: Line) -> Line:
    """The same, evaluated once at each place."""
    seen: dict[float, Array] = {}

    def once(t: float) -> Array:
        if t not in seen:
            seen[t] = line(t)
        return seen[t]

    return once


def _knowing(line: Line, known: Mapping[float, Array]) -> Line:
    """The same, which need not be evaluated where its value is known."""
    return lambda t: known[t] if t in known else line(t)


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


def opinions(line: Line, scale: float, precision: WorkingPrecision = FLOAT64) -> Iterator[Slope]:
    """Derivatives by several small steps, each with its bound: for judging a disagreement."""
    with np.errstate(all="ignore"):
        noise = fourth_differences(line, precision.step * scale) if precision.coarse else 0.0
    for factor in sorted(f for f in precision.factors if f < 1)[::-1][:4]:
        with np.errstate(all="ignore"):
            found = Slope(*richardson(line, precision.step * scale * factor, precision, noise))
        yield found


def richardson(
    line: Line,
    h: float,
    precision: WorkingPrecision,
    noise: Array | float = 0.0,
    here: Array | None = None,
) -> tuple[Array, Array]:
    """The derivative by the steps h and h/2, and the bound of its error."""
    far, near = (line(h), line(-h)), (line(h / 2.0), line(-h / 2.0))
    return _extrapolated(far, near, h, precision, noise, here)


def _extrapolated(
    far: tuple[Array, Array], near: tuple[Array, Array], h: Array | float,
    precision: WorkingPrecision, noise: Array | float, here: Array | None,
) -> tuple[Array, Array]:  # fmt: skip
    """The same from values: at h and -h, and at half of these."""
    wide = (far[0] - far[1]) / (2.0 * h)
    narrow = (near[0] - near[1]) / h
    # What the outputs may be off by through rounding, the launch's own sums included.
    unsure = 4.0 * np.maximum(
        precision.epsilon * np.maximum(np.abs(far[0]), np.abs(far[1])), noise
    ) / h  # fmt: skip
    value = (4.0 * narrow - wide) / 3.0
    known = np.isfinite(value)
    if here is not None:
        # Second differences over the step shrink with it, unless the function jumps between
        # here and there on both sides: central differences would not notice.
        bend, half = (np.abs(x[0] - 2.0 * here + x[1]) / k for x, k in ((far, h), (near, h / 2.0)))
        known &= ~((half > 1.5 * bend) & (half > 16.0 * unsure))
    return value, np.where(known, np.abs(narrow - wide) + unsure, np.inf)


def fixed(line: Line, eps: float, precision: WorkingPrecision = FLOAT64) -> Slope:
    """The central difference with one absolute step, as the reference's formula has it.

    It is taken at its word, but for the rounding of values that are coarser than float64.
    """
    with np.errstate(all="ignore"):
        after, before = line(eps), line(-eps)
        value = (after - before) / (2.0 * eps)
        error = np.zeros_like(value)
        if precision.coarse:
            error += precision.epsilon * np.maximum(np.abs(after), np.abs(before)) / eps
    return Slope(value, error)


def extrapolated(line: Line, h: float, precision: WorkingPrecision = FLOAT64) -> Slope:
    """The derivative by central differences of the steps h and h/2, extrapolated."""
    with np.errstate(all="ignore"):
        return Slope(*richardson(line, h, precision))


def one_sided(
    line: Line, scale: float, precision: WorkingPrecision = FLOAT64, measured: bool = False
) -> tuple[Array, Array, Array]:
    """Slopes to the right and to the left, and how far rounding may put them off.

    measured: rounding inside of the function counts, too, which may be far above its values'.
    """
    h = precision.side * scale
    with np.errstate(all="ignore"):
        here, after, before = line(0.0), line(h), line(-h)
        noise = precision.epsilon * np.maximum(np.abs(here), np.abs(after - before)) / h
        for near, side in ((after, h), (before, -h)) if measured else ():
            further = (line(side * k) for k in (2, 3, 4))
            noise = np.maximum(noise, side_noise(np.stack([here, near, *further])) / h)
        return (after - here) / h, (here - before) / h, noise


def remeasured(value: Line, scale: float, precision: WorkingPrecision) -> tuple[float, float]:
    """The derivative of a single number, and its error with the noise as measured.

    The error is infinite where the number does not change at all over the first step: then
    steps are lost in something large.
    """
    with np.errstate(all="ignore"):
        noise = noise_level(value, precision.step * scale, precision.epsilon)
        if not np.isfinite(noise):
            return float("nan"), float("inf")
        best, least = float("nan"), float("inf")
        for factor in precision.factors:
            h = precision.step * scale * factor
            d, error = (float(x[0]) for x in richardson(value, h, precision))
            error += 4.0 * noise / h
            if np.isfinite(d) and error < least:
                best, least = d, error
    return best, least
