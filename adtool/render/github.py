"""Findings as GitHub workflow commands, shown beside the lines of a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adtool.consequences import Told, arranged, headline
from adtool.counts import more
from adtool.places import shortened
from adtool.render import uris
from adtool.render.characters import bounded
from adtool.report import Problem, Report, Severity
from engine.characters import spelled  # a line here is a command: `::` in it is data
from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.render.formats import Setting

SHOWN = 10  # annotations of each kind that GitHub takes from a step
_MESSAGE = 4000  # characters
_LEVEL = {"error": "error", "warning": "warning", "note": "notice"}


@dataclass(frozen=True, slots=True)
class _Note:
    """One annotation. Lines and columns as in `Finding`."""

    severity: Severity
    title: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


def render(reports: Sequence[Report], setting: Setting) -> str:
    """A command a line: of each severity the first ten, or nine and how many are left out.

    What stopped a run comes first, then findings as each report has them, the worst first.
    Files are named relative to the root of the repository.
    """
    notes: list[_Note] = []
    for report in reports:
        notes += _failure(report, setting)
    for report in reports:
        whole, idle = arranged(report.findings)
        notes += [_finding(told) for told in whole] + [_finding(Told(f)) for f in idle]
    lines = []
    for severity in ("error", "warning", "note"):
        alike = [n for n in notes if n.severity == severity]
        shown = alike if len(alike) <= SHOWN else alike[: SHOWN - 1]
        lines += [_command(n, setting) for n in shown]
        if left := len(alike) - len(shown):
            lines.append(_command(_left_out(severity, left), setting))
    return "".join(f"{line}\n" for line in lines)


def _failure(report: Report, setting: Setting) -> list[_Note]:
    if report.error is None:
        return []
    which = f"{report.script}: " if setting.several else ""
    help = f"\n{report.error.help}" if report.error.help else ""
    message = f"{which}{report.error.message}{help}"
    out = [_Note("error", "adtool: not checked", message)]
    return out + [_problem(p) for p in report.error.problems]


def _problem(p: Problem) -> _Note:
    title = f"adtool {p.code}" if p.code else "adtool"
    message = "\n".join(x for x in (p.message, p.help, *p.notes) if x)
    return _Note(
        p.severity, title, message, p.file, p.line, p.column, p.end_line, p.end_column
    )  # fmt: skip


def _finding(told: Told) -> _Note:
    f = told.finding
    title = f"adtool {f.code}" + (f" {f.name}" if f.name != f.code else "")
    more = [f"because of it: {headline(c, f)}" for c in told.consequences]
    message = "\n".join(x for x in (f.message, f.help, *f.notes, *more) if x)
    return _Note(
        f.severity, title, message, f.file, f.line, f.column, f.end_line, f.end_column
    )  # fmt: skip


def _left_out(severity: Severity, count: int) -> _Note:
    message = f"{more(count, severity)} of adtool without annotation: see the report"
    return _Note(severity, "adtool", message)


def _command(note: _Note, setting: Setting) -> str:
    given: dict[str, str] = {}
    message = bounded(spelled(shortened(note.message, setting.root)), _MESSAGE)
    if note.file is not None:
        below = uris.relative(note.file, setting.root)
        if below is None:  # a file outside of the repository is none to GitHub
            place = f"{note.file}:{note.line}" if note.line else note.file
            message += f"\nat {spelled(place)}"
        else:
            given["file"] = below
            given |= _region(note)
    given["title"] = note.title
    values = ",".join(f"{k}={_property(v)}" for k, v in given.items())
    return f"::{_LEVEL[note.severity]} {values}::{_data(message)}"


def _region(note: _Note) -> dict[str, str]:
    if not note.line:
        return {}
    last = max(note.line, note.end_line or note.line)
    out = {"line": str(note.line), "endLine": str(last)}
    if last == note.line and note.column:  # columns are those of one line
        out["col"] = str(note.column)
        if note.end_column and note.end_column > note.column:
            out["endColumn"] = str(note.end_column)
    return out


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    # A name that cannot be printed names no file: it stays harmless, that is all.
    return _data(spelled(text)).replace(":", "%3A").replace(",", "%2C")
