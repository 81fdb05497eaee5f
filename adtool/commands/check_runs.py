"""The runs of `adtool check`: one for each target, and a report of all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from adtool.assemble import build_report
from adtool.commands.check_output import CheckOutput, Style
from adtool.commands.running import run
from adtool.exits import Exit
from adtool.job import TRACES, CheckOptions, Job, Target
from adtool.keeping import keeping
from adtool.report import Report, Severity
from adtool.reruns import settled
from adtool.strays import suspects
from adtool.suppressions import Choice


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
        output = CheckOutput(self.style, len(targets))
        reports = []
        for number, target in enumerate(targets, 1):
            output.begin(target, number)
            report = self._one(target)
            reports.append(report)
            output.add(report)
            if report.error is not None and report.error.kind == "interrupted":
                break
        output.finish()
        code = max(r.exit_code for r in reports)
        return code if len(reports) == len(targets) else int(Exit.FAILURE)

    def _one(self, target: Target) -> Report:
        start = time.monotonic()
        with keeping() as keep:
            job = Job(
                target, self.options, suspects=suspects(target, self.known), traces=TRACES,
                keep=keep,
            )  # fmt: skip
            session = run(
                job, self.timeout, stdout_to_stderr=self.style.data_on_stdout,
                no_color=self.style.no_color, quiet=self.style.quiet,
            )  # fmt: skip
            from adtool.last import remember  # and with it the engine, which has come meanwhile

            session = settled(session, job, start + self.timeout if self.timeout > 0 else None)
            report = build_report(session, self.gate, self.choice, self.exit_zero)
            remember(session, report, keep)
        if self.plot and report.error is None:
            from adtool.figures.remainders import save_remainders

            save_remainders(report.taylor, self.plot)
        return report
