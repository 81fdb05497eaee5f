"""A report's findings and its verdict, as plain text for messages."""

from __future__ import annotations

import io

from adtool.render.text import make_console, print_failure, print_report
from adtool.report import Report

_WIDTH = 100


def verdict_text(report: Report) -> str:
    """What `adtool check --quiet` prints: no colours, and no line end at its end."""
    out = io.StringIO()
    console = make_console(out, True, width=_WIDTH)
    print_report(report, console, quiet=True)
    if report.error is not None:
        print_failure(report.error, console)
    return out.getvalue().strip("\n")
