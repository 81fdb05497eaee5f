"""A third opinion, where the adjoint and the differences disagree: forward mode.

Three numbers stand for one derivative: what the adjoint says, differences with their error,
and forward mode of the kernel's own code, which needs no step: <J v, w> = <v, J' w>. Two that
agree outvote the third, with one reserve: adjoint and forward mode share the derivatives of
builtin functions, so that they may be wrong together. Differences that are sure of themselves
are therefore only outvoted where their noise, measured, is too large for what they claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.autograd.comparison.judgement import FAIL, PASS, TRUST, Judgement, judge

ABSORBED = (
    "forward mode agrees with the adjoint, and the differences are not informative: "
    "rounding absorbs their steps"
)
# The error of the differences that still tells one digit, relative to the derivative.
DIGIT = 0.1


@dataclass(frozen=True)
class Opinions:
    """What is said of one derivative: by the adjoint, by differences, and who else may be asked.

    ref: the differences' value, error: their own. allowed: the error that is no error.
    forward: computes forward mode's value, NaN where there is none. again: takes the
    differences again with their noise measured: value and error.
    """

    ad: float
    ref: float
    error: float
    allowed: float
    forward: Callable[[], float]
    again: Callable[[], tuple[float, float]]


def arbitrate(q: Opinions) -> Judgement:
    """The verdict on a derivative. Others are asked only where the first two disagree."""
    difference = abs(q.ad - q.ref)
    if not np.isfinite(q.ref) or difference <= q.allowed:
        return judge(difference, q.allowed, q.error, bool(np.isfinite(q.ref)))
    forward = q.forward()
    if not np.isfinite(forward):
        return judge(difference, q.allowed, q.error)
    ref, error = q.ref, q.error
    agrees = abs(q.ad - forward) <= q.allowed
    if agrees:
        ref, error = q.again()
        difference = abs(q.ad - ref)
        if difference <= q.allowed:
            return PASS
    if difference > TRUST * error:
        return FAIL
    if not agrees and abs(forward - ref) <= TRUST * error + q.allowed:
        return FAIL
    if agrees and TRUST * error <= DIGIT * max(abs(q.ad), abs(ref)):
        return PASS
    if agrees and np.isinf(error):
        return Judgement("inconclusive", ABSORBED)
    return judge(difference, q.allowed, error)
