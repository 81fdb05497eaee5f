"""The report as Markdown, for step summaries and comments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from adtool.consequences import arranged, headline
from adtool.counts import more
from adtool.places import short, shortened
from adtool.render.characters import bounded
from adtool.render.counts import measured, severities
from adtool.render.escapes import code, escaped, fenced, prose
from adtool.render.rows import Row, TableData, legend, limits, tables, wholes
from adtool.report import Failure, Finding, Report, at_gate, gate_words
from adtool.verdicts import tally, verdict

if TYPE_CHECKING:
    from adtool.render.formats import Setting

LIMIT = 400_000  # bytes of the whole: GitHub takes 1 MiB of a step
_FINDINGS = 100  # of a script, in its table
_SHOWN = 30  # of these with their lines
_MESSAGE = 2000  # characters
_LINE = 300  # of a line of source, or of a traceback
_TRACEBACK = 60  # lines
_HEADS = (
    "launch", "kernel", "input", "output", "checked", "error", "relative error", "AD", "reference",
    "verdict",
)  # fmt: skip
_LEFT = 4  # columns of words come first


def render(reports: Sequence[Report], setting: Setting) -> str:
    """One document: of several scripts a table first. Never longer than `LIMIT` bytes."""
    parts: list[str] = []
    size = 0
    for part in _parts(reports, setting):
        size += len(part.encode("utf-8")) + 1
        if size > LIMIT - 200:
            parts.append("*The rest is left out because the summary is too long.*\n")
            break
        parts.append(part)
    return "\n".join(parts)


def _parts(reports: Sequence[Report], setting: Setting) -> Iterator[str]:
    if setting.several:
        yield "## adtool: " + _counted(reports) + "\n"
        yield from (prose(note) + "\n" for note in setting.notes)
        if not reports:
            return
        rows = [
            [code(str(r.script), True), verdict(r), _summary(r), prose(_why(r), True)]
            for r in reports
        ]
        yield from _table(("script", "verdict", "checked", "why"), rows, 4)
    for report in reports:
        yield from _report(report, setting)


def _report(report: Report, setting: Setting) -> Iterator[str]:
    level = "###" if setting.several else "##"
    yield f"{level} {code(str(report.script))}: {verdict(report)}\n"
    gate = f"Gate: {gate_words(report)}." + (
        "" if report.ok or report.error else " The script did not pass."
    )
    yield f"{_summary(report)}. {gate}\n"
    if report.error is not None:
        yield from _failure(report.error)
    whole, idle = arranged(report.findings)
    found = [told.finding for told in whole]
    if found:
        rows = [
            [f.severity, escaped(_code(f)), _place(f, True),
             prose(bounded(shortened(f.message), _MESSAGE), True)]
            for f in found[:_FINDINGS]
        ]  # fmt: skip
        yield from _table(("severity", "finding", "place", "message"), rows, 4)
        if len(found) > _FINDINGS:
            yield f"and {more(len(found) - _FINDINGS, 'finding')}\n"
    if hidden := sum(f.suppressed for f in report.findings):
        yield f"{hidden} suppressed.\n"
    for told in whole[:_SHOWN]:
        yield from _finding(told.finding, level + "#")
        yield from _headlines("because of it", told.consequences, told.finding)
    yield from _headlines("no action needed", idle)
    for note in report.notes:
        yield f"**warning**: {prose(note)}\n"
    if not setting.quiet:
        yield from _launches(report)


def _failure(error: Failure) -> Iterator[str]:
    yield f"**error**: {prose(bounded(shortened(error.message), _MESSAGE))}\n"
    if error.detail:
        lines = shortened(error.detail).rstrip("\n").split("\n")[-_TRACEBACK:]
        yield fenced([bounded(x, _LINE) for x in lines], "text") + "\n"
    for p in error.problems[:_SHOWN]:
        place = f" at {code(f'{short(p.file)}:{p.line}')}" if p.file else ""
        yield f"- {p.severity} {escaped(p.code)}{place}: {prose(bounded(p.message, _MESSAGE))}\n"
    if error.help:
        yield f"**help**: {prose(error.help)}\n"


def _finding(f: Finding, level: str) -> Iterator[str]:
    place = _place(f)
    yield f"{level} {f.severity}: {escaped(_code(f))}" + (f" at {place}" if place else "") + "\n"
    yield prose(bounded(shortened(f.message), _MESSAGE)) + "\n"
    if f.source and f.line:
        digits = len(str(f.line + len(f.source) - 1))
        lines = [
            f"{n:>{digits}}  {bounded(s, _LINE)}".rstrip() for n, s in enumerate(f.source, f.line)
        ]
        yield fenced(lines, "python") + "\n"
    if f.help:
        yield f"**help**: {prose(bounded(shortened(f.help), _MESSAGE))}\n"
    for note in f.notes:
        yield f"**note**: {prose(bounded(shortened(note), _MESSAGE))}\n"


def _headlines(head: str, found: Sequence[Finding], cause: Finding | None = None) -> Iterator[str]:
    """Findings that have a line each."""
    if found:
        lines = [f"- {prose(bounded(headline(f, cause), _LINE))}" for f in found[:_SHOWN]]
        if len(found) > _SHOWN:
            lines.append(f"- and {more(len(found) - _SHOWN, 'finding')}")
        yield "\n".join([f"{head}:\n", *lines]) + "\n"


def _launches(report: Report) -> Iterator[str]:
    shown, left_out = tables(report)
    for data in shown:
        yield f"**{escaped(data.title)}**\n"
        yield from _rows(data)
    if left_out:
        yield f"Not shown: {more(left_out, 'kind of tapes', 'kinds of tapes')}.\n"
    lines = [*wholes(report), *limits(report)]
    if marks := legend(shown):
        lines.append(marks)
    yield from (f"- {escaped(line)}" for line in lines)
    if lines:
        yield ""


def _rows(data: TableData) -> Iterator[str]:
    yield from _table(_HEADS, [_cells(r) for r in data.rows], _LEFT)


def _cells(row: Row) -> list[str]:
    names = [code(n, True) for n in (row.kernel, row.input, row.output)]
    numbers = (row.checked, row.error, row.relative, row.ad, row.reference)
    return [row.launch, *names, *numbers, row.verdict]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    """A table of cells that are Markdown already. left: columns that are no numbers."""
    rules = ["---" if i < left or i == len(heads) - 1 else "---:" for i in range(len(heads))]
    lines = [heads, rules, *rows]
    yield "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def _place(f: Finding, cell: bool = False) -> str:
    if not f.file:
        return ""
    return code(f"{short(f.file)}:{f.line}" if f.line else short(f.file), cell)


def _code(f: Finding) -> str:
    return f.code if f.code == f.name else f"{f.code} {f.name}"


def _why(report: Report) -> str:
    if report.error is not None:
        return bounded(report.error.message, _LINE)
    at = (f.code for f in report.findings if not f.suppressed and at_gate(f.severity, report.gate))
    return ", ".join(dict.fromkeys(at))


def _summary(report: Report) -> str:
    parts = measured(report)
    if not report.end_to_end and report.error is None and not report.foreign:
        parts.append("tapes as wholes not checked")
    return ", ".join([*parts, *severities(report)])


def _counted(reports: Sequence[Report]) -> str:
    return tally(reports) if reports else "no script was checked"
