"""The number of checked tapes, launches and pairs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adtool.counts import counted
from adtool.coverage import coverage

if TYPE_CHECKING:
    from adtool.report import Report


def measured(report: Report) -> list[str]:
    """Tapes and launches, calls of functions of other frameworks, pairs of them, what is missing.

    The parts of a summary line, the same in every format.
    """
    calls = [x for x in report.launches if x.framework]
    tapes = report.tapes - len({x.tape for x in calls})
    launches = len(report.launches) - len(calls)
    parts = []
    if tapes or launches or not calls:
        every = coverage(report)
        parts.append(_of(tapes, len(every.tapes), "tape"))
        parts.append(counted(launches, "launch") if every.whole else every.share)
    if calls:
        parts.append(counted(len(calls), "call") + " of functions")
    parts.append(counted(report.decided, "pair") + " checked")
    if left_out := sum(e.verdict == "skipped" for e in report.end_to_end):
        parts.append(f"{counted(left_out, 'tape')} not end to end")
    return parts


def _of(checked: int, recorded: int, noun: str) -> str:
    """`1 of 40 tapes`; `40 tapes` where that is all, or it is not known how many there were."""
    if checked >= recorded:
        return counted(checked, noun)
    return f"{checked:,} of {counted(recorded, noun)}"


def severities(report: Report, *left_out: str) -> list[str]:
    """How many findings there are of each severity: `1 error`, `2 notes`.

    left_out: severities that are told elsewhere.
    """
    return [
        counted(n, severity)
        for severity in ("error", "warning", "note")
        if severity not in left_out
        and (n := sum(f.severity == severity and not f.suppressed for f in report.findings))
    ]
