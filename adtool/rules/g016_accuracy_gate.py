"""G016: a gradient does not reach the accuracy that the gate asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adtool.accuracy.entries import rank, size
from adtool.counts import more
from adtool.report import Finding
from adtool.rules.base import Manual, Rule, grouped

if TYPE_CHECKING:
    from adtool.accuracy.measuring import Measured
    from adtool.session import Session

_SHOWN = 6  # pairs that are named in notes


class AccuracyGate(Rule):
    """Fires for kernels and tapes with pairs that `--gate accuracy=...` does not let pass."""

    code = "G016"
    name = "accuracy-gate"
    severity = "error"
    otherwise = "warning if the accuracy is unknown"
    manual = Manual(
        what="""
            The gate sets an accuracy (`--gate accuracy=1e-6`), and the error of a pair of a
            kernel, or of a whole tape, is larger: in float64, or by rounding in the kernel's
            own precision. Errors are relative to the entry, or to the largest entry of the
            pair. For a whole tape, the effect of rounding in values that launches pass on is a
            warning if it is larger than the gate and than 1e-5.

            The finding is a warning if the accuracy of a pair is unknown, because no reference
            was accurate enough or because the pair was not checked. Wrong gradients (G001,
            G002, G010) are not reported a second time, and at a kink there is no accuracy to
            measure.
            """,
        why="""
            The tolerance of the check tells a wrong formula from a right one. An optimiser that
            should converge to eight digits needs more than that, and the gate can require it.
            """,
        example="""
            adtool check --gate error,accuracy=1e-6 train.py

            error[G016]: kernel `kick` does not reach the accuracy 1e-06: ...
            """,
        todo="""
            If rounding is the larger part, rewrite the formula so that nothing cancels, or use
            float64 there. Otherwise look at the largest entry, which the table names. float32
            cannot reach an accuracy below 1e-6.
            """,
    )

    def check(self, session: Session) -> Iterator[Finding]:
        """One finding a kernel for what is too far off, and one for what is not known."""
        wanted = session.accuracy
        if wanted is None:
            return
        from adtool.accuracy.judging import measured_session

        found = measured_session(session, "", "")
        spans = {(t.tape, x.index): x.span for t in session.tapes for x in t.launches}
        for kind in ("off", "values", "unknown"):
            some = [m for m in found if _kind(m, wanted) == kind]
            for group in grouped(some, lambda m: (m.entry.tape, m.entry.kernel)):
                first = max(group, key=_error)
                rest = [m for m in group if m is not first]
                notes = [f"also {m.entry.name}: {_said(m)}" for m in rest[:_SHOWN]]
                if len(rest) > _SHOWN:
                    notes.append(f"and {more(len(rest) - _SHOWN, 'pair')}")
                what = "the tape" if first.entry.tape else f"kernel `{first.label}`"
                message = f"{what} does not reach the accuracy {wanted:g}"
                if kind == "unknown":
                    message = f"the accuracy of {what} is not known"
                yield self.finding(
                    f"{message}: {first.entry.name}: {_said(first)}",
                    "see `adtool explain G016`",
                    span=spans.get((first.tape, first.launch)),
                    tape=first.tape, launch=first.launch, kernel=first.label,
                    notes=tuple(notes), severity="error" if kind == "off" else "warning",
                )  # fmt: skip


def _error(m: Measured) -> float:
    rounding = 0.0 if m.entry.tape else size(m.entry.rounding)
    return max(size(m.entry.error), rounding)


def _kind(m: Measured, wanted: float) -> str:
    e = m.entry
    if e.verdict == "kink" or rank(e.verdict) == rank("fail"):
        return ""
    if rank(e.verdict) == rank("skipped") or (e.error is None and e.rounding is None):
        return "unknown"
    if _error(m) > wanted:
        return "off"
    # What no kernel is to blame for: it is told, and fails nothing.
    lost = e.tape and size(e.rounding) > max(wanted, e.floor_rounding)
    return "values" if lost else ""


def _said(m: Measured) -> str:
    e = m.entry
    if rank(e.verdict) == rank("skipped"):
        reason = m.pair.reason if m.pair is not None and m.pair.reason else ""
        return f"{e.verdict} ({reason})" if reason else e.verdict
    if e.error is None and e.rounding is None:
        return "it was not measured"
    if e.tape and size(e.rounding) > size(e.error):
        return f"rounding of its values causes an error of the gradient of {e.rounding:.2g}"
    if size(e.rounding) > size(e.error):
        return f"rounding causes an error of {e.rounding:.2g}"
    return f"its error is {e.error:.2g}"
