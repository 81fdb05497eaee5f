"""The state of a pair during its comparison: the worst verdict and the errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.tolerance import relative_to
from engine.autograd.results import Entry, PairResult, Verdict
from engine.classes import dataclass

Array = NDArray[Any]

ORDER: tuple[Verdict, ...] = (
    "nan", "fail", "nondeterministic", "inconclusive", "rounding", "kink", "pass", "skipped",
)  # fmt: skip
# A difference is a wrong gradient only if it is this many times the reference's own error.
TRUST = 8.0

# Excesses that differ by a smaller part are equal: then the larger error is the worse one. A wrong
# factor makes all entries wrong by the same part, and only rounding chooses among them.
TIE = 0.01

NOT_FINITE = "the adjoint is not finite"
KINK_REASON = "one-sided slopes differ and the adjoint lies between them"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and why where that needs saying."""

    verdict: Verdict
    reason: str = ""


PASS, FAIL, NAN = Judgement("pass"), Judgement("fail"), Judgement("nan", NOT_FINITE)
KINK = Judgement("kink", KINK_REASON)


def judge(difference: float, allowed: float, error: float, finite: bool = True) -> Judgement:
    """The verdict on one derivative.

    difference: between adjoint and reference. error: the reference's own. finite: whether
    there is a reference.
    """
    if not finite:
        return Judgement("inconclusive", "the function itself is not finite beside this point")
    if difference <= allowed:
        return PASS
    if difference <= TRUST * error:
        return Judgement("inconclusive", f"the reference itself is uncertain by {error:.1e}")
    return FAIL


def worst_of(excess: Array, error: Array) -> tuple[int, ...]:
    """The index of the entry that is furthest over its tolerance; of equal ones, the largest error.

    excess: how far each is over it. error: of each; of the same shape.
    """
    most = float(excess.max())
    least = most if np.isinf(most) else most - TIE * abs(most)
    size = np.where(excess >= least, np.nan_to_num(error, nan=np.inf, posinf=np.inf), -1.0)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(size)), excess.shape))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one pair so far: the worst verdict, and the errors seen.

    checked, directional, max_abs, max_rel, worst, digits_lost: see `PairResult`. excess: how
    far the worst entry is over its tolerance. scale, off: the largest element of the lifted
    adjoint, and what the launch's own is off by. forward_error, tolerance, joint: see `PairResult`.
    """

    verdict: Verdict = "skipped"
    reason: str = ""
    checked: int = 0
    directional: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    worst: Entry | None = None
    excess: float = -1.0
    digits_lost: float = 0.0
    scale: float = 0.0
    off: float = 0.0
    forward_error: float | None = None
    tolerance: float | None = None
    joint: bool = False

    def judged(self, *judgements: Judgement) -> Comparison:
        """With these judgements, of which those count that are worse than what is known.

        Of what gives other results each time, nothing else is worth saying.
        """
        worst = Judgement(self.verdict, self.reason)
        for j in judgements:
            if worst.verdict == "nondeterministic":
                break
            if ORDER.index(j.verdict) < ORDER.index(worst.verdict):
                worst = j
        return replace(self, verdict=worst.verdict, reason=worst.reason)

    def reopened(self) -> Comparison:
        """Without a disagreement that a closer look is about to judge anew."""
        if self.verdict not in ("fail", "inconclusive", "kink"):
            return self
        again = replace(self, verdict="skipped", reason="", worst=None, excess=-1.0)
        # What was not to be trusted is no error, either.
        return replace(again, max_abs=0.0, max_rel=0.0) if self.verdict == "inconclusive" else again

    def measured(
        self, ad: float, ref: float, allowed: float, row: int = -1, col: int = -1,
        size: float = 0.0,
    ) -> Comparison:  # fmt: skip
        """With the error of one entry; the worst is the one furthest over its tolerance.

        Beside a reference that is zero as far as can be told, no error is relative. size: of
        the parts of a sum, which the error is relative to if they are larger than the sum.
        """
        error = abs(ad - ref)
        excess = error / allowed if np.isfinite(error) else np.inf
        max_abs, max_rel = self.max_abs, self.max_rel
        relative = relative_to(float(error), float(ref), allowed, self.tolerance, size)
        if np.isfinite(error):
            max_abs, max_rel = max(max_abs, error), max(max_rel, relative or 0.0)
        worst, most = self.worst, self.excess
        if excess > most:
            worst = Entry(row, col, float(ad), float(ref), relative, float(allowed))
            most = float(excess)
        return replace(self, max_abs=max_abs, max_rel=max_rel, worst=worst, excess=most)

    def bounded(self, max_abs: float, max_rel: float) -> Comparison:
        """With errors that are at least these."""
        return replace(self, max_abs=max(self.max_abs, max_abs), max_rel=max(self.max_rel, max_rel))

    def result(self, source: str, target: str) -> PairResult:
        """What the check returns for an input and an output of these names."""
        worst = self.worst
        if worst is not None and worst.ad == worst.oracle == 0:
            worst = None  # nothing to be seen in exact zeros
        most = self
        if worst is not None and np.isfinite(error := abs(worst.ad - worst.oracle)):
            # What entries have found replaces what directions have, which may be what is shown.
            most = self.bounded(error, worst.relative or 0.0)
        return PairResult(
            source, target, self.verdict, self.checked, self.directional, most.max_abs,
            most.max_rel, worst, self.reason, None, self.digits_lost, None, self.scale, self.off,
            self.forward_error, tolerance=self.tolerance, joint=self.joint,
        )  # fmt: skip
