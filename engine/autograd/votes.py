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
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.oracle import Grain, richardson
from engine.autograd.rounding import Line
from engine.autograd.tally import TRUST, Tally

Array = NDArray[Any]

ABSORBED = (
    "forward mode agrees with the adjoint, and the differences are not informative: "
    "rounding absorbs their steps"
)
# The error of the differences that still tells one digit, relative to the derivative.
DIGIT = 0.1


@dataclass(frozen=True)
class Question:
    """One derivative: the adjoint's value, the differences', and what may be off.

    allowed: the error that is no error. forward: computes forward mode's value, NaN where
    there is none. again: takes the differences again with their noise measured.
    """

    ad: float
    ref: float
    error: float
    allowed: float
    forward: Callable[[], float]
    again: Callable[[], tuple[float, float]]


def settle(t: Tally, q: Question) -> None:
    """Gives a verdict on a derivative."""
    diff = abs(q.ad - q.ref)
    if not np.isfinite(q.ref) or diff <= q.allowed:
        t.judge(diff, q.allowed, q.error, bool(np.isfinite(q.ref)))
        return
    forward = q.forward()
    if not np.isfinite(forward):
        t.judge(diff, q.allowed, q.error, True)
        return
    ref, error = q.ref, q.error
    agrees = abs(q.ad - forward) <= q.allowed
    if agrees:
        ref, error = q.again()
        diff = abs(q.ad - ref)
        if diff <= q.allowed:
            t.say("pass")
            return
    if diff > TRUST * error:
        t.say("fail")
    elif not agrees and abs(forward - ref) <= TRUST * error + q.allowed:
        t.say("fail")
    elif agrees and TRUST * error <= DIGIT * max(abs(q.ad), abs(ref)):
        t.say("pass")
    elif agrees and np.isinf(error):
        t.say("inconclusive", ABSORBED)
    else:
        t.judge(diff, q.allowed, error, True)


def remeasured(value: Line, scale: float, grain: Grain) -> tuple[float, float]:
    """The derivative of a single number, and its error with the noise as measured.

    The error is infinite where the number does not change at all over the first step: then
    steps are lost in something large.
    """
    with np.errstate(all="ignore"):
        noise = noise_of(value, grain.step * scale, grain.epsilon)
        if not np.isfinite(noise):
            return float("nan"), float("inf")
        best, least = float("nan"), float("inf")
        for factor in grain.factors:
            h = grain.step * scale * factor
            d, error = (float(x[0]) for x in richardson(value, h, grain))
            error += 4.0 * noise / h
            if np.isfinite(d) and error < least:
                best, least = d, error
    return best, least


def noise_of(value: Line, h: float, epsilon: float) -> float:
    """What rounding makes of a function's values close to t = 0.

    Differences of high order of a smooth function at close points are noise alone (More and
    Wild, Estimating computational noise, SIAM J. Sci. Comput. 33, 2011). A staircase is as
    high as its steps; infinite where there is no step from -h to h.
    """
    values = np.array([float(value(h * k / 4.0)[0]) for k in range(-4, 5)])
    distinct = len(np.unique(values))
    if distinct == 1:
        return float("inf")
    if distinct <= len(values) // 2:
        return float(np.ptp(values))
    noise = epsilon * float(np.abs(values).max())
    for spacing in (h / 16.0, h / 256.0):
        table = np.array([float(value(spacing * k)[0]) for k in range(-4, 5)])
        levels = []
        for order in range(1, 7):
            table = np.diff(table)
            gamma = factorial(order) ** 2 / factorial(2 * order)
            levels.append(float(np.sqrt(gamma * np.mean(table * table))))
        noise = max(noise, min(levels[3:]))
    return noise
