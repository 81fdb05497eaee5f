"""Judges a run against its baseline and its gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from adtool.accuracy.comparison import Comparison, compared, excused, told
from adtool.accuracy.entries import Expected
from adtool.accuracy.measuring import Measured, measured, measured_report, names_of
from adtool.exits import Exit
from adtool.report import FAULTS, Finding, Report, exit_code
from engine.diagnostics import Span

if TYPE_CHECKING:
    from adtool.report import Launch
    from adtool.session import Session


def measured_session(session: Session, folder: str, script: str) -> tuple[Measured, ...]:
    """What a session measured."""
    from adtool.results import launches_of, wholes_of

    part = session.options.partial or session.part
    return measured(launches_of(session), wholes_of(session), script, folder, part)


def comparison_of_session(
    session: Session, expected: Expected
) -> tuple[Comparison, tuple[Launch, ...]]:
    """A session beside what is expected of it, and its launches."""
    from adtool.results import launches_of

    launches = launches_of(session)
    found = measured_session(session, expected.folder, expected.script)
    kernels = names_of(launches, expected.folder).values()
    return compared(found, kernels, expected, is_whole(session)), launches


def is_whole(session: Session) -> bool:
    """Whether all was checked that the script records."""
    return session.failure is None and not session.options.partial and not session.part


def excuse(findings: Sequence[Finding], expected: Expected | None) -> tuple[Finding, ...]:
    """The findings, suppressed where the baseline knows them."""
    if expected is None:
        return tuple(findings)
    return tuple(
        replace(f, suppressed=True, suppressed_by="baseline")
        if not f.suppressed and excused(f, expected.known) else f
        for f in findings
    )  # fmt: skip


def notes_of(session: Session, findings: Sequence[Finding]) -> tuple[str, ...]:
    """What is to be said of a comparison that is no finding. findings: all, with fingerprints."""
    expected = session.expected
    if expected is None or session.failure is not None:
        return ()
    comparison, _ = comparison_of_session(session, expected)
    return _notes(comparison, expected, findings, is_whole(session))


def _notes(
    comparison: Comparison, expected: Expected, findings: Sequence[Finding], whole: bool
) -> tuple[str, ...]:
    there = {f.fingerprint for f in findings}
    lost = [k for k in expected.known if k.fingerprint not in there] if whole else []
    return tuple(told(comparison, expected, lost))


def compare_report(report: Report, expected: Expected) -> tuple[Report, Comparison]:
    """A report that was written before, with what the baseline has to say of it."""
    from adtool.fingerprints import marked
    from adtool.rules.g015_accuracy_regression import AccuracyRegression

    whole = is_whole_report(report)
    found = measured_report(report, expected.script, expected.folder)
    kernels = names_of(report.launches, expected.folder).values()
    comparison = compared(found, kernels, expected, whole)
    spans = {
        (x.tape, x.index): Span(x.file, x.line, 1, x.line, 1) for x in report.launches if x.file
    }
    own = [_unexcused(f) for f in report.findings if f.code != AccuracyRegression.code]
    more = marked(AccuracyRegression().findings(comparison.worse, report.launches, spans))
    findings = (*more, *excuse(own, expected))
    code = exit_code(findings, report.gate, report.error is not None)
    notes = tuple(n for n in report.notes if not n.startswith("baseline: "))
    hidden = _hidden(report, findings)
    if hidden:
        code = max(code, Exit.FINDINGS)
        notes += (
            f"baseline: the gradients of {', '.join(hidden)} are wrong, but another finding hid "
            "them when the report was written: compare the script instead",
        )
    return replace(
        report, findings=findings, ok=code == 0, exit_code=int(code),
        notes=(*notes, *_notes(comparison, expected, findings, whole)),
    ), comparison  # fmt: skip


def is_whole_report(report: Report) -> bool:
    """Whether a report is of all that the script records; one without tapes as wholes is not."""
    return report.error is None and not report.partial and bool(report.end_to_end)


def _hidden(report: Report, findings: Sequence[Finding]) -> list[str]:
    """Kernels with a wrong gradient that is not told, because of a fault that is excused now."""
    faults = {f.kernel for f in findings if f.code in FAULTS and f.suppressed_by == "baseline"}
    told = {f.kernel for f in findings if f.code == "G001"}
    wrong = (x.kernel for x in report.launches if any(p.verdict == "fail" for p in x.pairs))
    return [f"`{k}`" for k in dict.fromkeys(wrong) if k in faults - told]


def _unexcused(f: Finding) -> Finding:
    """A finding without what another baseline had to say of it."""
    return replace(f, suppressed=False, suppressed_by=None) if f.suppressed_by == "baseline" else f
