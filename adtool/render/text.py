"""The report as text: tables, findings with source lines, a summary."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from adtool.consequences import Told, arranged, headline
from adtool.counts import more
from adtool.fixes.available import Offers, offered
from adtool.places import short, shortened
from adtool.render import links, styles
from adtool.render.counts import measured, severities
from adtool.render.rows import Row, TableData, legend, limits, tables, wholes
from adtool.render.taylor_text import print_taylor
from adtool.render.words import clean, print_table
from adtool.report import Duration, Failure, Finding, Problem, Report, at_gate
from adtool.verdicts import kind, tally, verdict

_HEADS = (
    "launch", "kernel", "input", "output", "checked", "error", "relative\nerror", "AD",
    "reference", "verdict",
)  # fmt: skip
# Where the line is too short for three columns of names, they share one, on two lines; where it
# is too short for that, the names stand above the numbers.
_STACKED = (_HEADS[0], "kernel\n  input -> output", *_HEADS[4:])
_ABOVE = (_HEADS[0], *_HEADS[4:])
_VERDICT = {
    "passed": styles.GOOD, "passed with warnings": styles.WARNED, "failed": styles.BAD,
    "not checked": styles.BAD,
}  # fmt: skip
_FOLLOW = "because of it (-v shows more):"
IDLE = "no action needed (-v shows more):"
_TIE = "\0"  # a space that no line is broken at: inside backquotes


class _Console(Console):
    """Leaves it to the caller what to do where the reader went away; rich would exit with 1.

    links: whether places are links.
    """

    links = False

    def on_broken_pipe(self) -> None:
        raise


def make_console(stream: TextIO, no_color: bool = False, width: int | None = None) -> Console:
    """A console for a stream; NO_COLOR and no_color leave no escape codes at all.

    FORCE_COLOR gives colours to what is no terminal, FORCE_HYPERLINK links.
    """
    environ = os.environ
    plain = no_color or bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
    colorless = plain or environ.get("FORCE_COLOR") in ("0", "false")
    given: dict[str, Any] = {"color_system": None} if colorless else {}
    if width is None and environ.get("COLUMNS", "").strip("0 ") == "" != environ.get("COLUMNS"):
        width = shutil.get_terminal_size().columns or None  # 0 is none
    console = _Console(file=stream, width=width, highlight=False, **given)
    console.links = links.wanted(environ, stream.isatty(), plain)
    return console


def print_report(
    report: Report, console: Console, verbose: bool = False, quiet: bool = False,
    offers: Offers = "all",
) -> None:  # fmt: skip
    """Prints tables, findings and the summary line. quiet: no tables. offers: see `offered`."""
    if not quiet:
        _print_tables(report, console, verbose)
    _print_findings(report.findings, console, verbose)
    for note in report.notes:
        _labelled(console, "note", styles.SEVERITY["note"], note)
        console.print()
    if report.durations:
        _print_durations(report.durations, console)
    if report.error is None or report.launches:
        print_summary(report, console, offers)


def _print_findings(findings: Sequence[Finding], console: Console, verbose: bool) -> None:
    """verbose: all of them whole; else what follows from others, and what is idle, in a line."""
    if verbose:
        for finding in findings:
            _print_suppressed(finding, console) if finding.suppressed else (
                _print_finding(finding, console)
            )
        return
    whole, idle = arranged(findings)
    for told in whole:
        _print_told(told, console)
    if idle:
        _line(console, IDLE, styles.DIM)
        for finding in idle:
            _print_line(finding, console)
        console.print()


def print_runs(reports: Sequence[Report], console: Console) -> None:
    """Prints a line for each of several runs, and one for all."""
    if not reports:
        return
    _line(console, "scripts", styles.HEAD)
    width = max(len(clean(str(r.script))) for r in reports)
    widest = max(len(verdict(r)) for r in reports)
    for report in reports:
        word, style = verdict(report), _VERDICT[kind(report)]
        codes = dict.fromkeys(
            f.code for f in report.findings if not f.suppressed and at_gate(f.severity, report.gate)
        )
        why = ", ".join(codes) if report.error is None else report.error.message
        text = Text.assemble(
            f"{clean(str(report.script)):<{width}}  ", (f"{word:<{widest}}", style),
            f"  {clean(why)}" if why else "",
        )  # fmt: skip
        text.truncate(max(console.width, width + 2 + widest), overflow="ellipsis")
        text.rstrip()
        console.print(text, no_wrap=True, overflow="ignore", crop=False)
    _line(console, tally(reports))


def _print_suppressed(finding: Finding, console: Console) -> None:
    place = f", {short(finding.file)}:{finding.line}" if finding.file else ""
    by = f" (by {finding.suppressed_by}{place})"
    _labelled(console, f"suppressed[{finding.code}]", styles.DIM, finding.message + by)
    console.print()


def _print_durations(durations: Sequence[Duration], console: Console) -> None:
    _line(console, "slowest checks", styles.HEAD)
    for d in durations:
        what = f"launch {d.tape}:{d.launch} {clean(_one_line(d.kernel))}"
        if d.launch < 0:
            what = f"tape {d.tape} as a whole"
        _line(console, f"{d.seconds:8.3f} s  {what}")
    console.print()


def _print_tables(report: Report, console: Console, verbose: bool) -> None:
    shown, left_out = tables(report, verbose)
    for table in shown:
        _print_table(table, console)
    if left_out:
        kinds = more(left_out, "kind of tapes", "kinds of tapes")
        _line(console, f"not shown: {kinds} (--verbose shows all)\n")
    lines = [*wholes(report), *limits(report)]
    for line in lines:
        _wrapped(console, line)
    if lines:
        console.print()
    if marks := legend(shown):
        _wrapped(console, marks, styles.DIM)
        console.print()
    print_taylor(report.taylor, console)


def print_failure(failure: Failure, console: Console) -> None:
    """Prints why the tool could not do its job."""
    _labelled(console, "error", styles.SEVERITY["error"], failure.message, styles.MESSAGE)
    if failure.detail:
        _line(console, failure.detail.rstrip("\n"))
    for problem in failure.problems:
        _print_finding(problem, console)
    if failure.help:
        _labelled(console, "help", styles.HELP, failure.help)


def _print_table(data: TableData, console: Console) -> None:
    heads: tuple[str, ...] = _HEADS
    rows = [_cells(r) for r in data.rows]
    names = len(heads) - 7  # how many columns of names follow the launch
    above: list[str] = []
    if _needed(heads, rows) > console.width:
        heads, rows, names = _STACKED, [_stacked(r) for r in rows], 1
    if _needed(heads, rows) > console.width:
        above = [_named(r) for r in map(_cells, data.rows)]
        heads, rows, names = _ABOVE, [[r[0], *r[2:]] for r in rows], 0
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0, header_style=styles.HEAD
    )
    for i, (head, width) in enumerate(zip(heads, _columns(heads, rows), strict=True)):
        side = "left" if 1 <= i <= names or i == len(heads) - 1 else "right"
        # A terminal too narrow for this breaks lines, not words.
        table.add_column(head, min_width=width, justify=side, no_wrap=True)  # type: ignore[arg-type]
    for row, cells in zip(data.rows, rows, strict=True):
        styled = [Text(c) for c in cells]
        styled[-1].stylize(styles.VERDICT[row.verdict])
        table.add_row(*styled)
    _line(console, data.title, styles.HEAD)
    print_table(table, console, above)
    console.print()


def _cells(row: Row) -> list[str]:
    names = [clean(_one_line(x)) for x in (row.kernel, row.input, row.output)]
    return [
        row.launch, *names, row.checked, row.error, row.relative, row.ad, row.reference,
        row.verdict,
    ]  # fmt: skip


def _one_line(name: str) -> str:
    """A name, which users may have given line breaks."""
    return name.replace("\n", " ")


def _stacked(cells: list[str]) -> list[str]:
    launch, kernel, source, result, *rest = cells
    pair = "" if (source, result) == ("-", "-") else f"\n  {source} -> {result}"
    return [launch, kernel + pair, *rest]


def _named(cells: list[str]) -> str:
    _, kernel, source, result, *_ = cells
    return kernel if (source, result) == ("-", "-") else f"{kernel}: {source} -> {result}"


def _columns(heads: Sequence[str], rows: list[list[str]]) -> list[int]:
    columns = zip(*([list(heads), *rows]), strict=True)
    return [max(len(line) for cell in c for line in cell.split("\n")) for c in columns]


def _needed(heads: Sequence[str], rows: list[list[str]]) -> int:
    return sum(_columns(heads, rows)) + len(heads) - 1


def _print_line(finding: Finding, console: Console, cause: Finding | None = None) -> None:
    """A finding in one line, which is cut where it is too long. cause: what it stands under."""
    text = Text(clean(f"  {headline(finding, cause)}"))
    text.truncate(max(40, console.width), overflow="ellipsis")
    text.stylize(styles.SEVERITY[finding.severity], 2, 2 + len(finding.severity))
    console.print(text, no_wrap=True, overflow="ignore", crop=False)


def _print_told(told: Told, console: Console) -> None:
    _print_finding(told.finding, console, end=not told.consequences)
    if told.consequences:
        _line(console, _FOLLOW, styles.DIM)
        for f in told.consequences:
            _print_line(f, console, told.finding)
        console.print()


def _print_finding(finding: Finding | Problem, console: Console, end: bool = True) -> None:
    """end: an empty line comes after it."""
    label = f"{finding.severity}[{finding.code}]" if finding.code else finding.severity
    style = styles.SEVERITY[finding.severity]
    _labelled(console, label, style, shortened(finding.message), styles.MESSAGE)
    if finding.file:
        place = short(finding.file)
        if finding.line:
            place += f":{finding.line}:{finding.column or 1}"
        _print_place(clean(place), finding.file, console)
        _print_snippet(finding, console)
    if finding.help:
        _labelled(console, "help", styles.HELP, shortened(finding.help))
    for note in finding.notes:
        _labelled(console, "note", styles.NOTE, shortened(note))
    if end:
        console.print()


def _print_place(place: str, file: str, console: Console) -> None:
    if not getattr(console, "links", False) or not os.path.isabs(file):
        shown: Any = Text.assemble(("  --> ", styles.ARROW), place)
    else:  # not by a style: that would be lost where there are no colours
        arrow = Segment("  --> ", console.get_style(styles.ARROW))
        shown = Segments([arrow, Segment(links.linked(place, file)), Segment.line()])
        console.print(shown, crop=False, end="")
        return
    console.print(shown, no_wrap=True, overflow="ignore", crop=False)


def _print_snippet(finding: Finding | Problem, console: Console) -> None:
    from engine.diagnostics import Span, snippet

    if finding.file is None or not finding.line:
        return
    column = finding.column or 1
    end = (finding.end_line or finding.line, finding.end_column or column + 1)
    text = ""
    with suppress(ValueError):  # a name that no file can have
        text = snippet(Span(finding.file, finding.line, column, *end))
    if not text:
        return
    gutter = len(str(finding.line)) + 3
    bodies = [line[gutter:] for line in text.split("\n")]
    start = len(bodies[-1]) - len(bodies[-1].lstrip())
    room = max(20, console.width - gutter)
    offset = 0
    if len(bodies[1]) > room:  # a long line: keep the caret in sight
        offset = max(0, min(start - 10, len(bodies[1]) - room))
    _, source, carets = (body[offset : offset + room] for body in bodies)
    if offset + room < len(bodies[1]):
        source, carets = f"{source[:-1]}\u2026", carets[: room - 1]
    if offset:
        source = f"\u2026{source[1:]}"
    pieces = (("", ""), (source, ""), (carets, styles.SEVERITY[finding.severity]))
    for line, (piece, style) in zip(text.split("\n"), pieces, strict=True):
        shown = Text(line[:gutter] if piece else line[:gutter].rstrip(), styles.GUTTER)
        shown.append(clean(piece), style)
        console.print(shown, no_wrap=True, overflow="ignore", crop=False)


def print_summary(report: Report, console: Console, offers: Offers = "all") -> None:
    """Prints the line with the verdict, and one with the fixes that may be tried."""
    parts = measured(report)
    word, style = verdict(report), _VERDICT[kind(report)]
    # What a verdict says of warnings is not said again beside it.
    counts = severities(report, *(["warning"] if kind(report) == "passed with warnings" else []))
    if hidden := sum(f.suppressed for f in report.findings):
        counts.append(f"{hidden} suppressed")
    if not report.end_to_end and report.error is None and not report.foreign:
        counts.append("tapes as wholes not checked")
    ending = f" ({', '.join(counts)})" if counts else ""
    head = f"{', '.join(parts)} in {report.seconds:.1f} s:"
    gap = " " if len(head) + len(word) + len(ending) < console.width else "\n"
    console.print(
        Text.assemble(head, gap, (word, style), ending),
        no_wrap=True, overflow="ignore", crop=False,
    )  # fmt: skip
    if line := offered(report.findings, offers):
        _line(console, line)


def _labelled(console: Console, label: str, style: str, text: str, rest: str = "") -> None:
    """`label: text`, wrapped with the text's lines after the first indented."""
    width = max(40, console.width)
    first = True
    text = re.sub(r"`[^`]*`", lambda m: _one_line(m[0]), text)
    whole = re.sub(r"`[^`\n]*`", lambda m: m[0].replace(" ", _TIE), clean(text))
    for paragraph in whole.split("\n"):
        lead = f"{label}: " if first else "  "
        lines = textwrap.wrap(
            paragraph, width, initial_indent=lead, subsequent_indent="  ",
            break_long_words=False, break_on_hyphens=False,
        ) or [lead]  # fmt: skip
        for line in lines:
            shown = Text(clean(line.replace(_TIE, " ")), rest)  # a command may begin it now
            if first:
                shown.stylize(style, 0, len(label))
            first = False
            console.print(shown, no_wrap=True, overflow="ignore", crop=False)


def _wrapped(console: Console, text: str, style: str = "") -> None:
    width = max(40, console.width)
    for line in textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False):
        _line(console, line, style)


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(clean(text), style), no_wrap=True, overflow="ignore", crop=False)
