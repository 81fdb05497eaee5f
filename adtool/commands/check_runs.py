"""The runs of `adtool check`: one for each target, and a report of all."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from adtool.assemble import build_report
from adtool.commands.running import run
from adtool.exits import Exit
from adtool.job import TRACES, CheckOptions, Job, Target
from adtool.report import Report, Severity
from adtool.reruns import settled
from adtool.strays import suspects
from adtool.suppressions import Choice
from adtool.writing import spare_sources, write_file


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


@dataclass(frozen=True, slots=True)
class CheckRuns:
    """How targets are run and judged. known: names of the command's options.

    plot: a file for the plot of remainders, empty for none.
    """

    options: CheckOptions
    timeout: float
    style: Style
    gate: Severity
    choice: Choice
    exit_zero: bool
    known: tuple[str, ...]
    plot: str = ""

    def run(self, targets: Sequence[Target]) -> int:
        """Runs them one after the other, reports, and gives the exit code.

        Raises ToolError where the report cannot be written to its file.
        """
        if self.style.output:
            spare_sources(Path(self.style.output))
        written = io.StringIO()
        reports = []
        for number, target in enumerate(targets, 1):
            if len(targets) > 1:
                self._say_target(target, number, len(targets), written)
            report = self._one(target)
            reports.append(report)
            if not self.style.json:
                self._print(report, written)
            if report.error is not None and report.error.kind == "interrupted":
                break
        self._finish(reports, written, len(targets))
        code = max(r.exit_code for r in reports)
        return code if len(reports) == len(targets) else int(Exit.FAILURE)

    def _one(self, target: Target) -> Report:
        job = Job(target, self.options, suspects=suspects(target, self.known), traces=TRACES)
        to_stderr = self.style.json and not self.style.output
        start = time.monotonic()
        session = run(
            job, self.timeout, stdout_to_stderr=to_stderr, no_color=self.style.no_color,
            quiet=self.style.quiet,
        )  # fmt: skip
        from adtool.last import remember  # and with it the engine, which has come meanwhile

        session = settled(session, job, start + self.timeout if self.timeout > 0 else None)
        report = build_report(session, self.gate, self.choice, self.exit_zero)
        remember(session, report)
        if self.plot and report.error is None:
            from adtool.figures.remainders import save_remainders

            save_remainders(report.taylor, self.plot)
        return report

    def _console(self, stream: TextIO) -> Any:
        from adtool.render.text import make_console

        if isinstance(stream, io.StringIO):
            return make_console(stream, True, width=_WIDTH)
        return make_console(stream, self.style.no_color)

    def _say_target(self, target: Target, number: int, count: int, written: io.StringIO) -> None:
        stream = sys.stderr if self.style.json else sys.stdout
        line = f"{number} of {count}: {target.name}"
        print(line, file=stream, flush=True)
        if self.style.output:
            print(line, file=written)

    def _print(self, report: Report, written: io.StringIO) -> None:
        from adtool.render import text

        to: Any = written if self.style.output else sys.stdout
        text.print_report(report, self._console(to), self.style.verbose, self.style.quiet)
        to.flush()
        if report.error is not None:
            text.print_failure(report.error, self._console(sys.stderr))
            if self.style.output:
                text.print_failure(report.error, self._console(written))

    def _finish(self, reports: Sequence[Report], written: io.StringIO, count: int) -> None:
        from adtool.render import json, text

        to: Any = written if self.style.output else sys.stdout
        if self.style.json:
            if count > 1:
                json.print_runs(reports, to)
            else:
                json.print_report(reports[0], to)
            to.flush()
            for report in reports:
                if report.error is not None:
                    text.print_failure(report.error, self._console(sys.stderr))
        elif count > 1:
            text.print_runs(reports, self._console(to))
        if self.style.output:
            write_file(written.getvalue().encode("utf-8", "backslashreplace"),
                       Path(self.style.output))  # fmt: skip
            if not self.style.quiet:
                for report in reports:
                    text.print_summary(report, self._console(sys.stdout))
                print(f"report written to {self.style.output}", flush=True)


_WIDTH = 100  # columns of a report in a file
