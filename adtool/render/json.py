"""The report as JSON on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from adtool.codec import dumps
from adtool.report import SCHEMA, Report, to_json


def print_report(report: Report, stream: TextIO) -> None:
    """Writes the report as one strict JSON object and a line's end."""
    stream.write(to_json(report) + "\n")


def print_runs(reports: Sequence[Report], stream: TextIO) -> None:
    """Writes the reports of several scripts as one object: `runs` has one for each."""
    data = {
        "schema": SCHEMA,
        "tool": reports[0].tool,
        "ok": all(r.ok for r in reports),
        "exit_code": max(r.exit_code for r in reports),
        "runs": reports,
    }
    stream.write(dumps(data, indent=2) + "\n")
