"""The report as JSON on standard output."""

from __future__ import annotations

from typing import TextIO

from adtool.report import Report, to_json


def print_report(report: Report, stream: TextIO) -> None:
    """Writes the report as one strict JSON object and a line's end."""
    stream.write(to_json(report) + "\n")
