"""G005: the one-sided slopes differ, and the adjoint lies between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.report import Finding
from adtool.rules.base import (
    Manual,
    Rule,
    derivative,
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


class Kink(Rule):
    """Fires for pairs with the verdict `kink`, once a kernel."""

    code = "G005"
    name = "kink"
    severity = "note"
    manual = Manual(
        what="""
            A launch was recorded exactly where its function has a corner, such as abs(x) at 0
            or max(a, b) at a = b. The slopes to the left and to the right differ, and the
            adjoint is one of them or lies between them.
            """,
        why="""
            Nothing is wrong: any value between the slopes is a subgradient, and optimisers can
            use it. adtool reports the kink because finite differences disagree with the adjoint
            there, which would otherwise look like a failure.
            """,
        example="""
            y[i] = engine.max(x[i], 0.0)      # x[i] is 0.0: the slope is 0 or 1

            note[G005]: kernel `k` has a kink in launch 0 of tape 0:
            `engine.max(x[i], 0.0)`, `d y[0] / d x[0]`: adjoint 0, reference 0.5
            """,
        todo="""
            Usually nothing. If many elements start at the corner (for example, parameters that
            are initialised with zeros and go into abs or max), start beside it, or use a smooth
            function.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a kernel, at the operation that has the kink where that is known."""
        for group in grouped(hits(session, "kink"), lambda h: (h.launch.kernel, h.launch.span)):
            hit = worst_of_first(group)
            count = launches(group)
            launch, pair = hit.launch, hit.pair
            at = next((h.pair.corner for h in group if h.pair.corner is not None), None)
            what = f"`{at.expression}`, " if at is not None and at.expression else ""
            yield self.finding(
                f"{named(launch)} has a kink {seen_of(hit, count)}: {what}"
                f"{derivative(pair, pair.worst)}{values(pair.worst)}",
                "the adjoint lies between the one-sided slopes, so it is a valid subgradient",
                span=launch.span if at is None else at.span, tape=hit.tape, launch=launch.index,
                kernel=launch.kernel, count=count, notes=other_pairs(group, hit),
            )  # fmt: skip
