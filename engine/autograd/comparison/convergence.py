"""Verdicts from slopes over many steps: do they converge, and to the adjoint?

The slopes are believed from the smallest step on, where some in a row are sharp and say the
same; what they leave open is inconclusive.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from engine.autograd.comparison.judgement import FAIL, KINK, PASS, Judgement
from engine.autograd.reference.noise import Array
from engine.autograd.reference.step_sweep import Slopes

SHARP = 0.25  # an error this small beside a distance leaves no doubt of it
TIGHT = 0.05  # and beside a slope, so little that agreeing with it means something
FLAT = 0.1  # slopes this close beside a distance are the same
OPEN = Judgement("inconclusive", "differences in the precision of the arrays cannot decide")


def judge_slopes(
    samples: Sequence[Slopes], ad: Array, allowed: Array, rtol: float
) -> tuple[list[Judgement], Array]:
    """What the slopes say of each entry, and the slope that says so (NaN where none does).

    Verdicts are pass, kink, fail and inconclusive. rtol: what differences can tell at best.
    """
    judgements: list[Judgement] = []
    slopes = np.full(len(ad), np.nan)
    for i in range(len(ad)):
        found = [(s.central[i], s.right[i], s.left[i], s.error[i]) for s in reversed(samples)]
        with np.errstate(all="ignore"):
            judgement, slopes[i] = _one(found, float(ad[i]), float(allowed[i]), rtol)
        judgements.append(judgement)
    return judgements, slopes


_Estimate = tuple[float, float, float, float]


def _one(found: list[_Estimate], ad: float, allowed: float, rtol: float) -> tuple[Judgement, float]:
    """found: central, right and left slopes and their error, the smallest step first.

    The smallest steps that settle it are believed, unless a smaller one contradicts them.
    """
    first = next((k for k, s in enumerate(found) if s[3] <= SHARP * max(map(abs, (ad, *s[:3])))),
                 len(found))  # fmt: skip
    near = found[first : first + 3]
    if len(near) == 3 and all(abs(x[0] - ad) <= 0.5 * abs(y[0] - ad) for x, y in pairwise(near)):
        return PASS, ad  # the slope nears the adjoint's as the step shrinks
    if any(_kink(ad, x, y) for x, y in pairwise(found[first : first + 5])):
        return KINK, np.nan
    for k in range(first, len(found)):
        slope, _, _, error = found[k]
        reach, distance = max(abs(slope), abs(ad)), abs(slope - ad)
        if error <= TIGHT * reach and distance <= allowed + 2 * error + rtol * reach:
            if _unopposed(found[:k], slope, reach):
                return PASS, slope
        elif _plateau(found[k : k + 3], ad) and _unopposed(found[:k], slope, distance):
            return FAIL, slope
    return OPEN, np.nan


def _unopposed(smaller: list[_Estimate], slope: float, scale: float) -> bool:
    """Whether the slopes over smaller steps may be the same, beside that scale."""
    return all(abs(s[0] - slope) <= 2.0 * s[3] + FLAT * scale for s in smaller)


def _plateau(near: list[_Estimate], ad: float) -> bool:
    """Whether three steps agree on a slope that certainly is not the adjoint's."""
    if len(near) < 3 or not all(_differs(ad, s) for s in near):
        return False
    return all(
        abs(x[0] - y[0]) <= min(FLAT * abs(y[0] - ad), FLAT * abs(x[0]) + 0.5 * (x[3] + y[3]))
        for x, y in pairwise(near)
    )


def _kink(ad: float, *two: _Estimate) -> bool:
    """Whether one-sided slopes stay apart over two steps, and the adjoint lies between them."""
    (_, right, left, _), (_, other_right, other_left, _) = two
    if max(abs(right - other_right), abs(left - other_left)) > SHARP * abs(right - left):
        return False
    return all(
        min(right, left) - error <= ad <= max(right, left) + error
        and 2.0 * error <= SHARP * abs(right - left)
        for _, right, left, error in two
    )


def _differs(ad: float, s: _Estimate) -> bool:
    """Whether there is a slope, and it certainly is another one."""
    central, right, left, error = s
    distance = abs(central - ad)
    return error <= SHARP * distance and abs(right - left) <= SHARP * distance
