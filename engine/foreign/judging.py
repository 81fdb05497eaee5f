"""The verdict on a derivative on which the handwritten gradient and differences disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from engine.autograd.comparison.convergence import judge_slopes
from engine.autograd.comparison.judgement import (
    FAIL,
    KINK,
    PASS,
    TRUST,
    Judgement,
    judge,
)
from engine.autograd.comparison.tolerance import median
from engine.autograd.reference.differences import Slope, one_sided, opinions, remembered
from engine.autograd.reference.noise import Line, fourth_differences
from engine.autograd.reference.step_sweep import step_sizes, sweep
from engine.foreign.evaluated import SHAKEN, ZERO, Evaluated
from engine.foreign.operation import Array

TINY = 1e-45
VAGUE = 0.1  # of a derivative: what tells it to that part tells whether it is right
CANCELLED = 64.0  # units of rounding that a value has of its own at the most
MOVING = ((1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4), (1e-3,), (1e-2,))
LARGER = (1e-4, 1e-3, 1e-2)
BENDS = 0.25  # of what an extrapolation takes away: what it may leave
# What cannot be told of an entry, since differences are too rough, does not matter where it is next
# to nothing beside the largest entry.
LOST = 1e-9
# Of a value, what rounding of an input changes it by where no step is small enough; and how many
# times another change of it may be that by the same rounding.
CHAOTIC, WILD, ALIKE = 1e-7, 1e-3, 1e5
CHAOS = Judgement(
    "inconclusive", "rounding of the input changes the function by a large part of its value"
)


def settled(
    e: Evaluated, value: Line, scale: float, ad: float, found: Slope, allowed: float,
    most: float = 0.0, rounded: tuple[Line, float] | None = None,
) -> Judgement:  # fmt: skip
    """The verdict on a derivative along a line. value: one number by displacement.

    found: by differences, with its error. scale: of what is displaced. most: the largest derivative
    beside it, if it is an entry. rounded: the same number with its inputs displaced by t
    times their own size at the most, and its derivative by the gradient.
    """
    ref, error = float(found.value[0]), float(found.error[0])
    difference = abs(ad - ref)
    if difference <= allowed:
        return judge(difference, allowed, error)
    if e.tolerance.literal:
        return judge(difference, allowed + error, error, bool(np.isfinite(ref)))
    value = remembered(value)  # the looks below ask for many of the same values
    rest = cache(lambda: _rest(value, scale))
    if _nothing(e, value, scale, ad, ref) and not _refuted(e, value, scale, ad, found, rest()):
        return PASS
    if e.precision.coarse:
        verdict = _swept(e, value, scale, ad, allowed)
        sharp = np.isfinite(ref) and difference > TRUST * error + allowed
        return FAIL if verdict is PASS and sharp else verdict
    if (rough := _by_rest(e, value, scale, ad, error, allowed, most, rest)) is not None:
        return rough
    kink = _kink(e, value, scale, ad, allowed)
    if kink is not None:
        return kink
    if _small_steps_agree(e, value, scale, ad, ref, allowed):
        return PASS
    last = judge(difference, allowed, error, bool(np.isfinite(ref)))
    return CHAOS if last is FAIL and rounded and _is_chaotic(e, *rounded) else last


def _is_chaotic(e: Evaluated, value: Line, ad: float) -> bool:
    """Whether rounding of the input changes the value by much, and by about what the adjoint says.

    Then no step is small enough to be a reference. Both sides and the middle must be apart, else
    they are at a branch, or at a value of its own.
    """
    here = float(value(0.0)[0])
    for units in SHAKEN:
        t = units * e.precision.epsilon
        right, left = float(value(t)[0]), float(value(-t)[0])
        apart = min(abs(right - here), abs(left - here), abs(right - left))
        much = apart > CHAOTIC * max(abs(here), abs(right), abs(left))
        says = abs(ad) * t
        wild = apart > WILD * max(abs(here), abs(right), abs(left))
        if much and apart <= ALIKE * says and (wild or says <= ALIKE * apart):
            return True
    return False


def _by_rest(
    e: Evaluated, value: Line, scale: float, ad: float, known: float, allowed: float, most: float,
    rest: Callable[[], float],
) -> Judgement | None:  # fmt: skip
    """What larger steps say where a value is rougher than its own rounding; None where it is not.

    They tell fewer digits. What cannot be told does not matter beside larger entries. known: the
    error that a closer look has found; less than that rounding over the largest step is none.
    rest: see `_rest`. It takes many values, and is not asked where no rounding could excuse what
    the gradient is off by.
    """
    steps = _larger_steps(value, scale)
    if not any(
        off <= allowed or off <= LOST * most or off <= VAGUE * abs(near)
        for near, off in ((near, abs(ad - near)) for _, near, _ in steps)
    ):
        return None
    noise = rest()
    if noise <= CANCELLED * e.precision.epsilon * abs(float(value(0.0)[0])):
        return None
    near, error = _by_larger_steps(steps, noise)
    off = abs(ad - near)
    if off <= allowed or (off <= TRUST * error and max(off, error) <= LOST * most):
        return PASS
    if known < 4.0 * noise / scale and off <= TRUST * error <= VAGUE * abs(near):
        return PASS
    return None


def _refuted(
    e: Evaluated, value: Line, scale: float, ad: float, found: Slope, noise: float
) -> bool:
    """Whether differences tell another derivative, however small that is beside the value."""
    ref, error = float(found.value[0]), float(found.error[0])
    noise = max(noise, e.precision.epsilon * abs(float(value(0.0)[0])))
    unsure = TRUST * max(error, 4.0 * noise / scale)
    return abs(ad - ref) > unsure and unsure <= VAGUE * max(abs(ad), abs(ref))


def _rest(value: Line, scale: float) -> float:
    """The rounding of a value, which is that of larger ones where it is what is left of these.

    Then it stands still for small steps, and moves by all of the rounding for larger ones.
    """
    with np.errstate(all="ignore"):
        for steps in MOVING:
            found = [float(fourth_differences(value, step * scale)[0]) for step in steps]
            if noise := max((n for n in found if np.isfinite(n)), default=0.0):
                return noise
    return 0.0


def _nothing(e: Evaluated, value: Line, scale: float, ad: float, ref: float) -> bool:
    """Whether both are next to nothing beside the function's own value: rounding of a zero."""
    size = abs(float(value(0.0)[0]))
    rounding = ZERO if not e.precision.coarse else 8.0 * e.precision.epsilon
    return bool(np.isfinite(size)) and max(abs(ad), abs(ref)) * scale <= rounding * size


def _kink(e: Evaluated, value: Line, scale: float, ad: float, allowed: float) -> Judgement | None:
    """KINK where the one-sided slopes stay apart, PASS where the adjoint is the nearer one's."""
    for measured in (False, True):
        right, left, noise = (float(x[0]) for x in one_sided(value, scale, e.precision, measured))
        low, high = min(right, left), max(right, left)
        noise *= 1.0 if measured else CANCELLED / 4.0  # a sum has more than that of one value
        slack = 1e-4 * (abs(low) + abs(high)) + noise
        if high - low > 4.0 * slack and low - slack <= ad <= high + slack:
            near, other, unsure = (
                float(x[0]) for x in one_sided(value, scale / 16.0, e.precision, measured)
            )
            if abs(near - other) + unsure > 0.5 * (high - low):
                return KINK
    return None


def _small_steps_agree(
    e: Evaluated, value: Line, scale: float, ad: float, ref: float, allowed: float
) -> bool:
    """Whether smaller steps, where sharp enough to tell, all side with the handwritten gradient."""
    asked = False
    for s in opinions(value, scale, e.precision):
        near, error = float(s.value[0]), float(s.error[0])
        if not error < 0.1 * abs(ad - ref):
            continue
        asked = True
        if abs(near - ad) > allowed + error:
            return False
    return asked


def _larger_steps(value: Line, scale: float) -> list[tuple[float, float, float]]:
    """Slopes by larger steps: the step, the slope, and what an extrapolation takes away."""
    out = []
    with np.errstate(all="ignore"):
        for h in (step * scale for step in LARGER):
            near, far = (float((value(t) - value(-t))[0]) / (2.0 * t) for t in (h, 2.0 * h))
            bend = (near - far) / 3.0  # Richardson's extrapolation takes most of it away
            out.append((h, near + bend, bend))
    return out


def _by_larger_steps(
    steps: Sequence[tuple[float, float, float]], rest: float
) -> tuple[float, float]:
    """The slope by the step that tells most of a value with that rounding, and its error."""
    with np.errstate(all="ignore"):
        out = [(near, 8.0 * rest / h + BENDS * abs(bend)) for h, near, bend in steps]
    return min(out, key=lambda found: found[1] if np.isfinite(found[1]) else np.inf)


def _swept(e: Evaluated, value: Line, scale: float, ad: float, allowed: float) -> Judgement:
    """What many steps say, in coarse precision."""
    eps = e.precision.epsilon
    sizes = step_sizes(scale, scale, eps)
    with np.errstate(all="ignore"):
        noise = fourth_differences(value, 64.0 * sizes[-1])
    one: Array = np.arange(1)
    slopes = sweep(lambda t: (t, value(t)), sizes, eps, TINY, noise, one)
    return judge_slopes(slopes, np.array([ad]), np.array([allowed]), e.rtol)[0][0]


def between(e: Evaluated, line: Line, part: slice, w: Array, ad: float, allowed: float) -> bool:
    """Whether w'Jv lies between what the one-sided slopes of each output allow, and they differ."""
    right, left, noise = (x[part] for x in one_sided(line, 1.0, e.precision, True))
    if e.precision.coarse:  # a few samples say little of the noise of each
        noise = np.maximum(noise, 4.0 * median(noise))
    with np.errstate(all="ignore"):
        apart = np.abs(right - left) > 4e-4 * (np.abs(right) + np.abs(left)) + 4.0 * noise
        low, high = np.minimum(w * right, w * left), np.maximum(w * right, w * left)
        slack = float(np.linalg.norm(w * noise)) + allowed + 1e-4 * float(np.linalg.norm(high))
    return bool(apart.any() and low.sum() - slack <= ad <= high.sum() + slack)


def allowed_along(e: Evaluated, ref: float, spread: float) -> float:
    """The error allowed along a direction. spread: of the parts of its sum."""
    size = max(abs(ref), spread)
    return max(float(e.allowed(np.asarray(size), np.asarray(size))), 1e-300)
