"""What `adtool check` writes, and where to: as its reports come, and when all are there."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from adtool.job import Target
from adtool.report import Report
from adtool.writing import spare_sources, write_file

_WIDTH = 100  # columns of a report in a file


@dataclass(frozen=True, slots=True)
class Style:
    """How reports are written. output: a file's name, empty for standard output."""

    format: str
    output: str = ""
    verbose: bool = False
    quiet: bool = False
    no_color: bool = False

    @property
    def json(self) -> bool:
        """Whether reports are data."""
        return self.format == "json"

    @property
    def data_on_stdout(self) -> bool:
        """Whether standard output is for a reader that takes nothing else there."""
        return self.json and not self.output


class CheckOutput:
    """The reports of one call. To be told of each target in their order, then to finish.

    notes: what is to be said of the choice of targets, where there was one; what is written has
    the form of several reports then, however many there are.
    Raises ToolError where what is asked for cannot be written.
    """

    def __init__(self, style: Style, count: int, notes: Sequence[str] = ()) -> None:
        self.style = style
        self._notes = tuple(notes)
        self._several = count != 1 or bool(notes)
        self._count = count
        self._reports: list[Report] = []
        self._left: set[int] = set()  # places of those that were not begun
        self._written = io.StringIO()
        if style.output:
            spare_sources(Path(style.output))
        for note in notes:
            self._say(f"note: {note}")

    def begin(self, target: Target, number: int) -> None:
        """Says which target comes now, of several. number: from 1."""
        if self._several:
            self._say(f"{number} of {self._count}: {target.name}")

    def _say(self, line: str) -> None:
        stream = sys.stderr if self.style.json else sys.stdout
        print(line, file=stream, flush=True)
        if self.style.output:
            print(line, file=self._written)

    def add(self, report: Report) -> None:
        """Takes the report of the target that was begun last."""
        self._reports.append(report)
        if not self.style.json:
            self._print(report)

    def leave_out(self, report: Report) -> None:
        """Takes the report of a target that was not begun: it is named among all, no more."""
        self._left.add(len(self._reports))
        self._reports.append(report)

    def finish(self) -> None:
        """Writes what needs all reports. Some may be missing, after an interrupt."""
        from adtool.render import json, text

        reports = self._reports
        to: Any = self._written if self.style.output else sys.stdout
        if self.style.json:
            if self._several:
                json.print_runs(reports, to, self._notes)
            else:
                json.print_report(reports[0], to)
            to.flush()
            for number, report in enumerate(reports):
                if report.error is not None and number not in self._left:
                    text.print_failure(report.error, self._console(sys.stderr))
        elif self._several and reports:
            text.print_runs(reports, self._console(to))
        if self.style.output:
            write_file(self._written.getvalue().encode("utf-8", "backslashreplace"),
                       Path(self.style.output))  # fmt: skip
            if not self.style.quiet:
                for number, report in enumerate(reports):
                    if number not in self._left:
                        text.print_summary(report, self._console(sys.stdout))
                print(f"report written to {self.style.output}", flush=True)

    def _print(self, report: Report) -> None:
        from adtool.render import text

        to: Any = self._written if self.style.output else sys.stdout
        text.print_report(report, self._console(to), self.style.verbose, self.style.quiet)
        to.flush()
        if report.error is not None:
            text.print_failure(report.error, self._console(sys.stderr))
            if self.style.output:
                text.print_failure(report.error, self._console(self._written))

    def _console(self, stream: TextIO) -> Any:
        from adtool.render.text import make_console

        if isinstance(stream, io.StringIO):
            return make_console(stream, True, width=_WIDTH)
        return make_console(stream, self.style.no_color)
