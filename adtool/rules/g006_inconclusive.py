"""G006: no reference derivative is trustworthy there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.report import Finding
from adtool.rules.base import (
    Manual,
    Rule,
    derivative,
    fed_by_nan,
    grouped,
    hits,
    launches,
    named,
    other_pairs,
    seen_of,
    values,
    worst_of_first,
)

if TYPE_CHECKING:
    from adtool.session import Session


_ADVICE = "try another step with --eps, or inputs of moderate size"
_ADVICE_RAISES = (
    "programs may request it in this way too: let it work in this case (grad.clone() makes a copy "
    "with its own memory)"
)
_ADVICE_CHANGED = (
    "let a call read only its arguments, and let its gradient read only values that the call "
    "saved; pass globals, attributes and buffers as arguments"
)
_ADVICE_NAN = (
    "find out where these values come from: at such values adtool cannot check a derivative"
)


class Inconclusive(Rule):
    """Fires for pairs with the verdict `inconclusive`, once a kernel and reason."""

    code = "G006"
    name = "inconclusive"
    severity = "warning"
    manual = Manual(
        what="""
            The adjoint and the reference differ, but the reference is not accurate enough to
            blame the adjoint: its own noise is larger than the tolerance.
            """,
        why="""
            A verdict either way would be a guess. A false error teaches people to ignore the
            tool, and a false pass hides bugs.
            """,
        example="""
            for _ in range(60):
                a = 3.99 * a * (1.0 - a)      # chaos: a step of any size ends elsewhere
            y[i] = a

            warning[G006]: kernel `k` could not be checked in launch 0 of tape 0: ...
            """,
        todo="""
            Read the reason in the finding. Another step size (--eps) often helps, or inputs of
            moderate size: derivatives at 1e8 in float32 have few digits to compare. A larger
            --rtol accepts the noise.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a kernel and reason; one for all that NaN was given to.

        What was given NaN that a launch before it made in a gradient is said there (G002).
        """
        fed = fed_by_nan(session)
        first = min((h.where for h in hits(session, "nan")), default=None)
        known = {id(h.pair) for h in fed}
        told = {id(h.pair) for h in fed if first is not None and h.where > first}
        for group in grouped(
            (h for h in hits(session, "inconclusive") if id(h.pair) not in told),
            lambda h: "NaN" if id(h.pair) in known else (
                h.launch.kernel, h.launch.span, h.pair.reason
            ),
        ):  # fmt: skip
            hit = worst_of_first(group)
            count = launches(group)
            launch, pair = hit.launch, hit.pair
            reason = f" ({pair.reason})" if pair.reason else ""
            raised = launch.by_hand is not None and " raises " in pair.reason
            numbers = "" if raised else values(pair.worst)  # they agree
            worst = None if raised else pair.worst
            advice = _ADVICE_NAN if id(pair) in known else _ADVICE
            if launch.by_hand is not None and "changed since" in pair.reason:
                advice = _ADVICE_CHANGED
            yield self.finding(
                f"{named(launch)} could not be checked {seen_of(hit, count)}: "
                f"{derivative(pair, worst)}{numbers}{reason}",
                _ADVICE_RAISES if raised else advice,
                span=launch.span, tape=hit.tape, launch=launch.index, kernel=launch.kernel,
                count=count, notes=other_pairs(group, hit),
            )  # fmt: skip
