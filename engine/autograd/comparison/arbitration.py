"""Forward mode as a third opinion where adjoint and differences disagree.

Three numbers stand for one derivative: what the adjoint says, differences with their error,
and forward mode of the kernel's own code, which needs no step: <J v, w> = <v, J' w>. Two that
agree outvote the third. Where it is the differences that are outvoted, they are taken again at
ever smaller scales, with their noise measured: of a chaotic or very steep function, only steps
far below those of a tame one see the slope. What they confirm at one scale passes; if at none, it
is left open and never called wrong: forward mode does not run the derivatives that users wrote, so
the two agree on a wrong one only where a builtin's own rule is wrong.

Rounding inside of the kernel may put forward mode off, too: where a function subtracts nearly
equal numbers, and its user wrote a derivative that does not, that one is the best of the three. So,
before the adjoint is called wrong, it is asked how much rounding changes what forward mode says.
Where that explains what is between the two, the differences that tell most decide.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from engine.autograd.comparison.judgement import FAIL, PASS, TRUST, Judgement, judge
from engine.autograd.comparison.tolerance import AUTO_RTOL
from engine.classes import dataclass

ABSORBED = (
    "forward mode agrees with the adjoint, and the differences are not informative: "
    "rounding absorbs their steps"
)
# The error of the differences that still tells one digit, relative to the derivative.
DIGIT = 0.1
# At these parts of the usual scale the differences are taken again.
SCALES = (1.0, 16.0**-2, 16.0**-4, 16.0**-6)
# And at these where rounding absorbs the usual steps: of inputs that are next to nothing beside
# what they are added to.
WIDER = (16.0**4, 16.0**8, 16.0**12)
# Part of the error allowed that is allowed in any case.
LEAST = 1e-4
# Forward mode may be off by so many times what rounding is seen to change.
NOISE = 8.0
# Where it is, differences confirm an adjoint whose error is no more than such a part.
CLEAR = 1e-2
# Where they tell nothing: what changes by more than that part is no rounding, but a function whose
# derivative changes that fast, and which forward mode knows as well as the adjoint.
MURKY = 0.1
SPOILT = Judgement(
    "inconclusive", "rounding inside of the kernel spoils differences and forward mode"
)
# By what factor differences come closer, from one scale to the next, where their error is a part of
# the step.
CLOSER = 128.0
OUTVOTED = Judgement(
    "inconclusive", "only differences disagree: forward mode agrees with the adjoint"
)


@dataclass(frozen=True)
class Opinions:
    """What is said of one derivative: by the adjoint, by differences, and who else may be asked.

    ref: the differences' value, error: their own. allowed: the error that is no error.
    forward: computes forward mode's value, NaN where there is none. again: takes the
    differences again at a part of their scale, with their noise measured: value and error.
    tiny: whether what is displaced is small, so that far wider steps are near, too. noise: computes
    what rounding changes forward mode's value by. relative: whether the error allowed is a part of
    the differences. brief: whether it makes no difference if one more derivative is confirmed or
    left open; only what is wrong is told then.
    """

    ad: float
    ref: float
    error: float
    allowed: float
    forward: Callable[[], float]
    again: Callable[[float], tuple[float, float]]
    tiny: bool = False
    noise: Callable[[], float] = lambda: 0.0
    relative: bool = True
    brief: bool = False

    def allowed_beside(self, other: float) -> float:
        """The error allowed beside another number than the differences', which may be far off."""
        if not (self.relative and abs(self.ref) > abs(other)):
            return self.allowed
        return self.allowed * max(abs(other) / abs(self.ref), LEAST)


def arbitrate(q: Opinions) -> Judgement:
    """The verdict on a derivative. Others are asked only where the first two disagree."""
    difference = abs(q.ad - q.ref)
    if difference <= q.allowed:
        return judge(difference, q.allowed, q.error)
    forward = q.forward()
    if not np.isfinite(q.ref):
        apart = abs(q.ad - forward) > max(q.allowed, AUTO_RTOL * abs(forward))
        known = np.isfinite(forward) and apart and _refuted(q, forward)
        return FAIL if known else judge(difference, q.allowed, q.error, False)
    if not np.isfinite(forward):
        return judge(difference, q.allowed, q.error)
    # The error allowed is by the size of the differences, which may be next to nothing.
    if abs(q.ad - forward) <= max(q.allowed_beside(forward), AUTO_RTOL * abs(forward)):
        return _outvoted(q)
    # Two that agree sharply are not off by rounding.
    if q.error > q.allowed or abs(q.ref - forward) > q.allowed:
        spoilt = NOISE * q.noise()
        if abs(q.ad - forward) <= spoilt:
            return _by_differences(q, forward, spoilt)
    if difference > TRUST * q.error or abs(forward - q.ref) <= TRUST * q.error + q.allowed:
        return FAIL
    return FAIL if _refuted(q, forward) else judge(difference, q.allowed, q.error)


def _by_differences(q: Opinions, forward: float, spoilt: float) -> Judgement:
    """The verdict where rounding spoils forward mode: by the differences that tell most.

    spoilt: how far it may be off. Differences that are further from it are no derivative.
    """
    found = []
    for scale in SCALES:
        ref, error = q.again(scale)
        unsure = TRUST * error
        if unsure <= abs(ref) and abs(ref - forward) <= spoilt + unsure:
            found.append((unsure / abs(ref), unsure, ref) if ref else (0.0, unsure, ref))
    if not found:
        return SPOILT if spoilt <= NOISE * MURKY * abs(forward) else FAIL
    part, unsure, ref = min(found)
    if abs(q.ad - ref) > q.allowed_beside(ref) + unsure:
        return FAIL
    return PASS if part <= CLEAR else SPOILT


def _refuted(q: Opinions, forward: float) -> bool:
    """Whether differences at some scale confirm forward mode, and contradict the adjoint."""
    for scale in SCALES:
        ref, error = q.again(scale)
        unsure = TRUST * error
        tells = unsure <= DIGIT * max(abs(forward), abs(ref))
        if tells and abs(forward - ref) <= unsure + q.allowed < abs(q.ad - ref):
            return True
    return False


def _outvoted(q: Opinions) -> Judgement:
    """The verdict where forward mode agrees with the adjoint, and the differences do not."""
    if q.brief:
        return OUTVOTED
    off = []
    for scale in SCALES:
        confirmed, absorbed, difference = _confirms(q, scale)
        if confirmed:
            return PASS
        if absorbed:  # smaller steps are lost, too
            wide = q.tiny and any(_confirms(q, s)[0] for s in WIDER)
            return PASS if wide else Judgement("inconclusive", ABSORBED)
        off.append(difference)
    # A derivative is what they converge to: where a square meets a constant they are never near.
    closing = all(b <= a / CLOSER for a, b in pairwise(off))
    return PASS if closing else OUTVOTED


def _confirms(q: Opinions, scale: float) -> tuple[bool, bool, float]:
    """Whether differences at a scale confirm the adjoint, and whether they see any change.

    And how far they are from it.
    """
    ref, error = q.again(scale)
    difference = abs(q.ad - ref)
    tells = TRUST * error <= DIGIT * max(abs(q.ad), abs(ref))
    confirmed = difference <= q.allowed or (tells and difference <= TRUST * error)
    return confirmed, bool(np.isinf(error)), difference
