"""G007: two runs of the same launch, or of its adjoint, differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.report import Finding
from adtool.rules.base import Manual, Rule, grouped, hits, launches, named, other_pairs, seen_of

if TYPE_CHECKING:
    from adtool.session import Session


class Nondeterministic(Rule):
    """Fires for pairs with the verdict `nondeterministic`, once a kernel."""

    code = "G007"
    name = "nondeterministic"
    severity = "warning"
    manual = Manual(
        what="""
            A launch was run twice at the same inputs, and its results, or those of its
            adjoint, differ by more than rounding in another order explains. The finding gives
            the spread: the largest difference beside the largest value.
            """,
        why="""
            Such a launch is no function of its inputs, so that it has no derivative that a
            check could compare with, and a run cannot be repeated.
            """,
        example="""
            engine.atomic_add(next, 0, 1)     # who comes first gets the first place
            k = engine.atomic_add(count, 0, 1)
            y[k] = x[i]

            warning[G007]: kernel `k` gives other results each time it runs ...
            """,
        todo="""
            Let no thread depend on which other one came first: give each its own place, and
            sum up in a fixed order where digits matter. Random numbers belong to a seed that
            is an argument of the kernel.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a kernel."""
        found = hits(session, "nondeterministic")
        for group in grouped(found, lambda h: (h.launch.kernel, h.launch.span)):
            hit = group[0]
            count = launches(group)
            reason = f": {hit.pair.reason}" if hit.pair.reason else ""
            yield self.finding(
                f"{named(hit.launch)} gives other results each time it runs "
                f"{seen_of(hit, count)}{reason}",
                "let no thread depend on which other one came first"
                if hit.launch.by_hand is None
                else "let its results depend on its arguments alone, and draw random numbers from "
                "the framework's own generator",
                span=hit.launch.span, tape=hit.tape, launch=hit.launch.index,
                kernel=hit.launch.kernel, count=count, notes=other_pairs(group, hit),
            )  # fmt: skip
