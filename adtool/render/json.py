"""The report as JSON on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from adtool import __version__
from adtool.codec import dumps
from adtool.report import SCHEMA, Report, runs_exit_code, to_json


def print_report(report: Report, stream: TextIO) -> None:
    """Writes the report as one strict JSON object and a line's end."""
    stream.write(to_json(report) + "\n")


def print_runs(reports: Sequence[Report], stream: TextIO, notes: Sequence[str] = ()) -> None:
    """Writes the reports of several scripts as one object: `runs` has one for each.

    notes: what is to be said of the choice of scripts.
    """
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "tool": f"adtool {__version__}",
        "ok": all(r.ok for r in reports),
        "exit_code": runs_exit_code(reports),
        "runs": reports,
    }
    if notes:
        data["notes"] = notes
    stream.write(dumps(data, indent=2) + "\n")
