"""G011: the derivative is right, but rounding in the kernel's own precision spoils its value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.counts import more
from adtool.report import Finding
from adtool.rules.base import (
    Hit,
    Manual,
    Rule,
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
    from engine.autograd import LaunchResult, PairResult

# Of the largest derivative by the same launches, what another one may be off by.
_PART = 1e-2


class Rounding(Rule):
    """Fires for pairs with the verdict `rounding`, once a kernel."""

    code = "G011"
    name = "rounding"
    severity = "warning"
    manual = Manual(
        what="""
            The adjoint is right: computed in float64 it agrees with the reference. Computed in
            the kernel's own precision, as the program does, its rounding error exceeds the
            tolerance. The finding gives the number of decimal digits that are lost (float32 has
            7).

            Two cases are not reported, because they lose nothing: a derivative that is zero up
            to rounding of the launch's inputs, such as the derivative by a mean that minimises
            a sum of squares; and a derivative whose error is less than a hundredth of the
            derivatives of other launches at the same line, such as at the end of a fit. A note
            says how many launches with the verdict `rounding` are left out for this reason.
            """,
        why="""
            The gradient points in another direction than the mathematics says, although no
            formula is wrong. The usual reason is that values of very different size are added,
            or nearly equal values are subtracted. The forward values suffer as well.
            """,
        example="""
            far = x[i] + 3.0e4                # 3e4 + 0.001 is 3e4 in float32
            y[i] = far * far - 6.0e4 * x[i]

            warning[G011]: rounding in the adjoint of kernel `k` ...: 6.9 of 6.9 digits are lost
            """,
        todo="""
            Rewrite the formula so that no large values cancel, sum small terms first or in
            pairs, or compute this part with float64 arrays.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a kernel, with the worst of its launches."""
        seen_at_all = list(hits(session, "rounding"))
        if not seen_at_all:
            return
        largest: dict[object, float] = {}
        for tape in session.tapes:
            for launch in tape.launches:
                for p in launch.pairs:
                    key = _alike(launch, p)
                    largest[key] = max(largest.get(key, 0.0), p.scale)
        for every in grouped(seen_at_all, lambda h: (h.launch.kernel, h.launch.span)):
            group = [
                h for h in every
                if h.pair.off > _PART * largest[_alike(h.launch, h.pair)] or not h.pair.off
            ]  # fmt: skip
            if not group:
                continue
            hit = max(group, key=_digits_lost)
            count = launches(group)
            first, kernel = group[0], hit.launch.kernel
            worst = "" if hit.where == first.where else f" {seen(1, *hit.where)}"
            yield self.finding(
                f"rounding in the adjoint of {named(hit.launch)} {seen_of(first, count)}: "
                f"`d {hit.pair.output} / d {hit.pair.input}`: {hit.pair.reason}{worst}",
                "rewrite the formula so that no large values cancel, or use float64 for this part",
                span=first.launch.span, tape=first.tape, launch=first.launch.index, kernel=kernel,
                count=count, notes=(*other_pairs(group, hit), *_small(launches(every) - count)),
            )  # fmt: skip


def _small(left_out: int) -> tuple[str, ...]:
    """A note on launches that have the verdict and do not count; none where there are none."""
    if not left_out:
        return ()
    is_it = "is left out: its error is" if left_out == 1 else "are left out: their errors are"
    return (
        f"{more(left_out, 'launch')} with the verdict `rounding` {is_it} less than a hundredth of "
        "the derivatives of other launches at that line",
    )


def _alike(launch: LaunchResult, pair: PairResult) -> object:
    return launch.kernel, launch.span, launch.site, pair.input, pair.output


def _digits_lost(h: Hit) -> float:
    return h.pair.digits_lost
