"""What a run has come to, in words: every summary, headline and table takes them from here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from adtool.counts import counted

if TYPE_CHECKING:
    from adtool.report import Report

Kind = Literal["passed", "passed with warnings", "failed", "not checked"]


def kind(report: Report) -> Kind:
    """The verdict on a run, as one of four. Suppressed findings are no warnings."""
    if report.error is not None:
        return "not checked"
    if not report.ok:
        return "failed"
    return "passed with warnings" if _warnings(report) else "passed"


def verdict(report: Report) -> str:
    """The verdict on a run: `passed`, `passed with 1 warning`, `failed` or `not checked`."""
    found = kind(report)
    return passed(_warnings(report)) if found.startswith("passed") else found


def passed(warnings: int) -> str:
    """The verdict on what passed: it says how many warnings there are."""
    return f"passed with {counted(warnings, 'warning')}" if warnings else "passed"


def tally(reports: Sequence[Report]) -> str:
    """How many runs came to what: `3 scripts: 2 passed, 1 failed`."""
    found = [kind(r) for r in reports]
    counts = [f"{found.count(k):,} {k}" for k in dict.fromkeys(found)]
    return f"{counted(len(reports), 'script')}: {', '.join(counts)}"


def _warnings(report: Report) -> int:
    return sum(f.severity == "warning" and not f.suppressed for f in report.findings)
