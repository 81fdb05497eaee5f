"""G015: a gradient is less accurate than the baseline says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from adtool.accuracy.comparison import Worse
from adtool.counts import more
from adtool.report import Finding
from adtool.rules.base import Manual, Rule, grouped

if TYPE_CHECKING:
    from adtool.report import Launch
    from adtool.session import Session
    from engine.diagnostics import Span

_SHOWN = 6  # pairs that are named in notes


class AccuracyRegression(Rule):
    """Fires for kernels, and for tapes as wholes, that a baseline has as more accurate."""

    code = "G015"
    name = "accuracy-regression"
    severity = "error"
    manual = Manual(
        what="""
            A pair of a kernel, or a whole tape, is less accurate than the baseline (`--baseline
            FILE`). Its error, or its rounding error, is above the floor and more than
            `--factor` times the earlier one (10 by default), or its verdict is worse, or it was
            checked earlier and is not checked any more.
            """,
        why="""
            The gradient is still within the tolerance, so no other finding reports it. Digits
            go one by one: a sum in another order, a difference of nearly equal numbers, until
            an optimiser stops too early and nothing tells since when.
            """,
        example="""
            root = wp.sqrt(1.0 + r * r) + 512.0 - 512.0     # was: wp.sqrt(1.0 + r * r)

            error[G015]: kernel `energy` is less accurate than in the baseline:  ...
            """,
        todo="""
            Look at the changes of the kernel, or of its input values. If you accept the loss of
            accuracy, `adtool baseline write` stores the present values; reviewers see the
            change of the file.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a kernel, or a kind of tape."""
        if session.expected is None:
            return
        from adtool.accuracy.judging import comparison_of_session

        spans = {
            (t.tape, x.index): x.span for t in session.tapes for x in t.launches
        }  # fmt: skip
        comparison, launches = comparison_of_session(session, session.expected)
        yield from self.findings(comparison.worse, launches, spans)

    def findings(
        self,
        worse: Sequence[Worse],
        launches: Sequence[Launch],
        spans: dict[tuple[int, int], Span],
    ) -> Iterator[Finding]:
        """One finding a kernel. spans: of the launches' kernels, where they are known."""
        for group in grouped(worse, lambda w: (w.before.tape, w.before.kernel)):
            first = group[0]
            before = first.before
            what = "the tape" if before.tape else f"kernel `{_label(first)}`"
            tape, launch, span = -1, -1, None
            if first.now is not None:
                tape, launch = first.now.tape, first.now.launch
            elif found := next((x for x in launches if x.kernel == _label(first)), None):
                tape, launch = found.tape, found.index
            if not before.tape:
                span = spans.get((tape, launch))
            notes = [f"also {w.before.name}: {w.why}" for w in group[1 : 1 + _SHOWN]]
            if len(group) > 1 + _SHOWN:
                notes.append(f"and {more(len(group) - 1 - _SHOWN, 'pair')}")
            yield self.finding(
                f"{what} is less accurate than in the baseline: {before.name}: {first.why}",
                (
                    "look at what changed in the kernel or its inputs; if you accept the lower "
                    "accuracy, store it with `adtool baseline write`"
                ),
                span=span, tape=tape, launch=launch,
                kernel="" if before.tape else _label(first), notes=tuple(notes),
            )  # fmt: skip


def _label(w: Worse) -> str:
    return w.before.kernel.partition("@")[0] if w.now is None else w.now.label
