"""The report as text in a file: without colours, and with the errors that ended runs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adtool import __version__
from adtool.counts import counted
from adtool.render.text import make_console, print_failure, print_report, print_runs
from adtool.report import Report
from engine.characters import clean

if TYPE_CHECKING:
    from adtool.render.formats import Setting

_WIDTH = 100  # columns


def render(reports: Sequence[Report], setting: Setting) -> str:
    """The reports one below the other, and a line for each of several at the end."""
    stream = io.StringIO()
    console = make_console(stream, True, width=_WIDTH)
    of = counted(setting.count, "script") if setting.several else clean(str(reports[0].script))
    stream.write(f"adtool {__version__}, report of {of}\n")
    for note in setting.notes:
        stream.write(f"note: {note}\n")
    for number, report in enumerate(reports, 1):
        if setting.several:
            stream.write(f"{number} of {setting.count}: {clean(str(report.script))}\n")
        print_report(report, console, setting.verbose, setting.quiet, setting.offers)
        if report.error is not None:
            print_failure(report.error, console)
    if setting.several:
        print_runs(reports, console)
    return stream.getvalue()
