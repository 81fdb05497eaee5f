"""G007: two runs of the same launch, or of its adjoint, differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.report import Finding
from adtool.rules.base import (
    Manual,
    Rule,
    faulty,
    grouped,
    hits,
    launches,
    named,
    other_pairs,
    seen,
    seen_of,
)

if TYPE_CHECKING:
    from adtool.session import Session


class Nondeterministic(Rule):
    """Fires for pairs with the verdict `nondeterministic`, once a kernel.

    Of launches on GPUs whose runs differ by no more than rounding, a note, once a line.
    """

    code = "G007"
    name = "nondeterministic"
    severity = "warning"
    otherwise = "note if only the last digits differ"
    manual = Manual(
        what="""
            adtool ran a launch twice at the same inputs, and its results, or those of its
            adjoint, differ by more than rounding in another order explains. The finding gives
            the spread: the largest difference relative to the largest value. If several threads
            of a launch on a GPU add floats to one element, adtool runs the launch a few more
            times, because the order of the additions changes. A spread of the size of rounding
            is a note, with the line of the sum.
            """,
        why="""
            Such a launch is not a function of its inputs, so it has no derivative that a check
            could compare with, and a run cannot be repeated. If only the order of a sum
            changes, the gradient is right, but its last digits differ from run to run.
            """,
        example="""
            k = engine.atomic_add(count, 0, 1)    # on a GPU, each run has another order
            y[k] = x[i]

            warning[G007]: kernel `k` gives different results in each run ...
            """,
        todo="""
            Do not let a thread depend on which other thread came first: give each thread a
            separate place, and sum in a fixed order if the last digits matter. Pass the seed of
            random numbers to the kernel as an argument. `engine.config.deterministic = True`
            gives sums on GPUs a fixed order, which costs time (see docs/cuda.md).
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a kernel, and one for each line of a sum that is not the same twice."""
        yield from self._differ(session)
        yield from self._round(session)

    def _round(self, session: Session) -> Iterator[Finding]:
        told = {h.launch.kernel for h in hits(session, "nondeterministic")}
        told |= faulty(session, "outside", "race")
        seen_ones = [
            (tape.tape, launch, s) for tape in session.tapes for launch in tape.launches
            for s in launch.spreads if launch.kernel not in told
        ]  # fmt: skip
        for group in grouped(seen_ones, lambda x: (x[1].kernel, x[2].span or x[1].span)):
            tape, launch, _ = group[0]
            worst = max((s for _, _, s in group), key=lambda s: s.part)
            count = len({(t, x.index) for t, x, _ in group})
            yield self.finding(
                f"{named(launch)} gives different last digits in each run "
                f"{seen(count, tape, launch.index)}: its {worst.text}",
                "the gradient is right; set `engine.config.deterministic = True` if runs must be "
                "equal bit for bit",
                span=worst.span or launch.span, tape=tape, launch=launch.index,
                kernel=launch.kernel, count=count, severity="note", notes=(worst.what,),
            )  # fmt: skip

    def _differ(self, session: Session) -> Iterator[Finding]:
        found = hits(session, "nondeterministic")
        for group in grouped(found, lambda h: (h.launch.kernel, h.launch.span)):
            hit = group[0]
            count = launches(group)
            reason = f": {hit.pair.reason}" if hit.pair.reason else ""
            yield self.finding(
                f"{named(hit.launch)} gives different results in each run "
                f"{seen_of(hit, count)}{reason}",
                "let results depend only on the arguments of the kernel, and not on the order of "
                "threads or on a hidden state: pass the seed of random numbers as an argument"
                if hit.launch.by_hand is None
                else "let its results depend only on its arguments, and draw random numbers from "
                     "the generator of the framework",
                span=hit.launch.span, tape=hit.tape, launch=hit.launch.index,
                kernel=hit.launch.kernel, count=count, notes=other_pairs(group, hit),
            )  # fmt: skip
