"""Summaries of Jacobians as a table or as JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from adtool import __version__
from adtool.codec import dumps
from adtool.places import short
from adtool.render import styles
from adtool.render.words import clean, print_table
from adtool.report import SCHEMA

if TYPE_CHECKING:
    from adtool.jacobian_report import JacobianReport
    from adtool.session import Session
    from engine.autograd import MatrixSummary


def print_report(report: JacobianReport, plot: str, console: Console) -> None:
    """Prints which launch it is, a row for each matrix, and the largest entries."""
    size = " x ".join(map(str, report.dim))
    threads = "thread" if math.prod(report.dim) == 1 else "threads"
    at = f", called at {short(report.call_file)}:{report.call_line}" if report.call_file else ""
    of = report.pattern or report.kernel
    more = f", the only one of `{of}`"
    if report.launches > 1:
        more = f", one of {report.launches} of `{of}` (choose with --launch)"
    _line(console, f"kernel `{report.kernel}`, {size} {threads}{at}", styles.HEAD)
    why = f", {report.why}" if report.why else ""
    _line(console, f"launch {report.tape}:{report.launch}{more}{why}", styles.DIM)
    for table in _tables(report):
        print_table(table, console)
        console.print()
    unknown = dict.fromkeys(m.unknown for m in report.matrices if m.unknown)
    for reason in unknown:
        _line(console, f"- : no rank and condition, {reason}", styles.DIM)
    if unknown:
        console.print()
    _line(console, "largest entries for each input and output", styles.HEAD)
    for m in report.matrices:
        for (row, col), (_, _, value) in zip(m.names, m.largest, strict=True):
            _line(console, f"  d {row} / d {col} = {value:.7g}")
        if not m.largest:
            _line(console, f"  d {m.output} / d {m.input} is zero everywhere")
    if plot:
        console.print()
        what = f"{report.error} errors" if report.error else "plot"
        _line(console, f"{what} written to {plot}")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(clean(text), style=style), soft_wrap=True)


def _tables(report: JacobianReport) -> list[Table]:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style=styles.HEAD)
    for head in ("input", "output"):
        table.add_column(head, no_wrap=True, min_width=_longest(report, head))
    for head in ("shape", "non-zeros", "rank", "condition"):
        table.add_column(head, justify="right", no_wrap=True)
    for m in report.matrices:
        table.add_row(*(Text(clean(cell)) for cell in _cells(m)))
    if not report.verdicts:
        return [table]
    checks = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style=styles.HEAD)
    for head in ("input", "output"):
        checks.add_column(head, no_wrap=True, min_width=_longest(report, head))
    for head in ("error", "relative\nerror"):
        checks.add_column(head, justify="right", no_wrap=True)
    words = [w for v in report.verdicts for w in (v.verdict, *v.reason.split())]
    checks.add_column("verdict", min_width=max(map(len, words)) + 2)
    for v in report.verdicts:
        verdict = Text(v.verdict, style=styles.VERDICT.get(v.verdict, ""))
        if v.reason:
            verdict.append(f" ({v.reason})", style=styles.DIM)
        error = _error(v.error) + " d" * (v.direction and v.error is not None)
        checks.add_row(Text(v.input), Text(v.output), error, _error(v.rel_error), verdict)
    return [table, checks]


def _longest(report: JacobianReport, side: str) -> int:
    return max((len(clean(getattr(m, side))) for m in report.matrices), default=0)


def _error(size: float | None) -> str:
    return "-" if size is None else f"{size:.3g}"


def _cells(m: MatrixSummary) -> tuple[str, ...]:
    entries = m.shape[0] * m.shape[1]
    share = f" ({m.nonzeros / entries:.2g})" if entries else ""
    bad = f", {m.nonfinite} not finite" if m.nonfinite else ""
    return (
        m.input,
        m.output,
        f"{m.shape[0]} x {m.shape[1]}",
        f"{m.nonzeros}{share}{bad}",
        "-" if m.rank is None else str(m.rank),
        "-" if m.condition is None else f"{m.condition:.3g}",
    )


def print_json(session: Session, plot: str, code: int, stream: TextIO) -> None:
    """Writes the same as one strict JSON object and a line's end."""
    data = {
        "schema": SCHEMA,
        "tool": f"adtool {__version__}",
        "script": session.target.name,
        "ok": code == 0,
        "exit_code": code,
        "jacobian": session.jacobian,
        "plot": plot,
        "error": session.failure,
    }
    stream.write(dumps(data, indent=2) + "\n")
