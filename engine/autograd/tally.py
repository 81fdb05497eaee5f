"""What is known about a pair of arrays while its launch is checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.autograd.results import Entry, Verdict

ORDER: tuple[Verdict, ...] = (
    "nan", "fail", "nondeterministic", "inconclusive", "rounding", "kink", "pass", "skipped",
)  # fmt: skip
# A difference is a wrong gradient only if it is this many times the oracle's own error.
TRUST = 8.0

NOT_FINITE = "the adjoint is not finite"
KINK = "one-sided slopes differ and the adjoint lies between them"


@dataclass
class Tally:
    """The worst verdict so far, and the errors seen."""

    verdict: Verdict = "skipped"
    checked: int = 0
    directional: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    worst: Entry | None = None
    worst_excess: float = -1.0
    reason: str = ""
    digits_lost: float = 0.0
    # The largest element of the lifted adjoint, and what the launch's own is off by.
    scale: float = 0.0
    off: float = 0.0

    def say(self, verdict: Verdict, reason: str = "") -> None:
        """Takes the verdict if it is worse than what is known.

        Of what gives other results each time, nothing else is worth saying.
        """
        if self.verdict == "nondeterministic":
            return
        if ORDER.index(verdict) < ORDER.index(self.verdict):
            self.verdict = verdict
            self.reason = reason

    def reconsider(self) -> None:
        """Forgets a disagreement that a closer look is about to judge anew."""
        if self.verdict in ("fail", "inconclusive", "kink"):
            self.verdict, self.reason, self.worst, self.worst_excess = "skipped", "", None, -1.0

    def compare(
        self, ad: float, ref: float, allowed: float, row: int, col: int, size: float = 0.0
    ) -> None:
        """Takes note of one entry's error; the worst is the one furthest over its tolerance.

        Beside a reference that is zero as far as can be told, no error is relative. size: of
        the parts of a sum, which the error is relative to if they are larger than the sum.
        """
        err = abs(ad - ref)
        excess = err / allowed if np.isfinite(err) else np.inf
        if np.isfinite(err):
            self.max_abs = max(self.max_abs, err)
            if abs(ref) > allowed:
                self.max_rel = max(self.max_rel, err / max(abs(ref), size))
        if excess > self.worst_excess:
            self.worst_excess = float(excess)
            self.worst = Entry(row, col, float(ad), float(ref))

    def judge(self, diff: float, allowed: float, error: float, finite: bool) -> None:
        """error: the reference's own; finite: whether there is a reference."""
        if not finite:
            self.say("inconclusive", "the function itself is not finite beside this point")
        elif diff <= allowed:
            self.say("pass")
        elif diff <= TRUST * error:
            self.say("inconclusive", f"the reference itself is uncertain by {error:.1e}")
        else:
            self.say("fail")
