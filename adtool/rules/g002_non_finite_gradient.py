"""G002: a NaN or an infinity appears in an adjoint."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.counts import counted
from adtool.report import Finding
from adtool.rules import peers
from adtool.rules.base import (
    Hit,
    Manual,
    Rule,
    derivative,
    faulty,
    fed_by_nan,
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
    from engine.diagnostics import Span


class NonFiniteGradient(Rule):
    """Fires for pairs with the verdict `nan`, once a kernel and source line."""

    code = "G002"
    name = "non-finite-gradient"
    severity = "error"
    manual = Manual(
        what="""
            The adjoint of a launch contains a NaN or an infinity although the inputs of the
            launch are finite. The finding names the first such launch, the array and the
            element. If adtool can tell, it also names the operation and the values of its
            operands.

            adtool looks at each launch with gradients of moderate size. It does not report a
            gradient of the program that is too large for its type only after several launches.
            `adtool trace` and `adtool graph` show where a gradient is first not finite.
            """,
        why="""
            One NaN in a gradient spreads to every parameter of the same update, and from there
            to everything. The forward values often stay finite, so the loss looks healthy until
            the update.
            """,
        example="""
            y[i] = engine.sqrt(x[i])      # x[i] is 0: the slope of sqrt is infinite there

            error[G002]: inf in the gradient of `x[3]`, kernel `k` in launch 0 of tape 0:
            `engine.sqrt(x[i])` with x[i] = 0
            """,
        todo="""
            Keep the operation away from the point where its slope is not finite: write sqrt(x +
            e) with a small e, add a branch such as `if x > 0.0:`, or use a formula without the
            operation (compare squared lengths instead of lengths).

            The guard must be a branch: where(x > 0.0, sqrt(x), 0.0) computes both sides, and 0
            times an infinite slope is NaN.

            If values are too large for their type (1e30 * 1e30 in float32), look for what makes
            them diverge, such as a step that is too large; scale them, or compute in float64.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a kernel and place of origin.

        Where an operation is to blame in one launch, launches of the kernel in which none
        could be named belong to it: their inputs are usually not finite any more.
        """
        found = list(hits(session, "nan"))
        outside = faulty(session, "outside")
        told = {h.tape for h in found}
        told |= {t.tape for t in session.tapes if any(x.kernel in outside for x in t.launches)}
        for t in session.tapes:
            if t.whole is None or t.whole.verdict != "nan" or t.whole.cause or t.tape in told:
                continue
            yield self.finding(
                f"the gradient of tape {t.tape} as a whole is not finite, although the gradient "
                "of each of its launches is",
                "look for arrays that changed between the launch and the backward pass",
                span=None, tape=t.tape, launch=-1,
            )  # fmt: skip
        origins: dict[str, Span] = {}
        for h in found:
            if h.pair.nonfinite is not None and h.pair.nonfinite.span is not None:
                origins.setdefault(h.launch.kernel, h.pair.nonfinite.span)

        def place(h: Hit) -> Span:
            at = h.pair.nonfinite
            if at is not None and at.span is not None:
                return at.span
            return origins.get(h.launch.kernel, h.launch.span)

        for group in grouped(found, lambda h: (h.launch.kernel, place(h))):
            hit = group[0]
            origin = next((h for h in group if h.pair.nonfinite and h.pair.nonfinite.span), hit)
            count = launches(group)
            launch, at = hit.launch, hit.pair.nonfinite
            tail = f"{named(launch)} {seen_of(hit, count)}"
            if at is None:
                entry = hit.pair.worst
                kind = _word(math.nan if entry is None else entry.ad)
                message = f"{kind} in the gradient of {tail}: {derivative(hit.pair, entry)}"
            else:
                element = str(list(at.element)) if at.element else ""
                message = f"{_word(at.value)} in the gradient of `{at.array}{element}`, {tail}"
            message += _operation(origin, origin.where != hit.where)
            notes = other_pairs(group, hit)
            if hit is found[0]:
                notes += _spread(session, hit)
            yield self.finding(
                message, _advice(origin), span=place(hit), tape=hit.tape, launch=launch.index,
                kernel=launch.kernel, count=count, notes=notes,
            )  # fmt: skip


def _advice(hit: Hit) -> str:
    at = hit.pair.nonfinite
    if peer := peers.wrong_peer(hit.launch):
        return peers.told(peer)
    if hit.launch.by_hand is not None:
        return (
            f"`{hit.launch.by_hand.gradient}` divides by zero, or evaluates a function where its "
            "slope is not finite: guard it there, or add a small constant; or the values are too "
            "large for their type: scale them, or compute in float64"
        )
    if at is not None and at.overflow:
        return (
            "the result is too large for its type: look for values that diverge; scale them, or "
            "compute in float64"
        )
    if at is not None and at.selected:
        return (
            "`where` computes both sides, and 0 times an infinite slope is NaN: move the "
            "operation into the branch of an `if`"
        )
    return (
        "keep the operation away from the point where its slope is not finite: "
        "guard it by an `if`, or add a small constant"
    )


def _spread(session: Session, first: Hit) -> tuple[str, ...]:
    """A note that says where NaN went from there."""
    later = [h for h in fed_by_nan(session) if h.where > first.where]
    if not later:
        return ()
    count = launches(later)
    which = "a later launch was" if count == 1 else f"{counted(count, 'later launch')} were"
    return (
        f"{which} given NaN or Inf and could not be checked, {seen(1, *later[0].where)} first"
        if count > 1
        else f"{which} given NaN or Inf and could not be checked",
    )


def _operation(hit: Hit, elsewhere: bool) -> str:
    at = hit.pair.nonfinite
    if at is None or not at.operation:
        return ""
    operands = " with " + ", ".join(map(_operand, at.operands)) if at.operands else ""
    what = at.expression or at.operation
    where = f" {seen(1, *hit.where)}" if elsewhere else ""
    return f": `{what}`{operands}{where}"


def _operand(named: tuple[str, str]) -> str:
    """A value with its name, unless the name is one that the compiler made up."""
    name, value = named
    return value if re.fullmatch(r"_?t_\d+", name) else f"{name} = {value}"


def _word(value: float) -> str:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return "NaN"
