"""Runs `adtool check` for each target and combines the reports."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adtool.commands.check_output import CheckOutput, Style
from adtool.executors import executor
from adtool.executors.base import NOT_RUN, Finished, Printed, Watch
from adtool.exits import ToolError
from adtool.report import Failure, Report, runs_exit_code
from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.tasks.check_script import Checked, CheckScript


@dataclass(frozen=True, slots=True)
class CheckRuns:
    """How targets are run. jobs: how many at once, 0 for one a processor.

    executor: what runs them; empty for processes, or for this process where one is enough.
    fail_fast: none counts after the first that fails. plot: a file for the plot of remainders,
    empty for none. notes: what is to be said of the choice of targets, where there was one.
    """

    style: Style
    plot: str = ""
    jobs: int = 0
    executor: str = ""
    fail_fast: bool = False
    notes: tuple[str, ...] = ()

    def run(self, tasks: Sequence[CheckScript]) -> int:
        """Runs them, reports, and gives the exit code. Raises ToolError as `reports`."""
        return runs_exit_code(self.reports(tasks))

    def reports(self, tasks: Sequence[CheckScript]) -> list[Report]:
        """Runs them, reports, and gives the reports, in the order of the tasks.

        Raises ToolError where the report cannot be written to its file, or nothing can be run.
        """
        output = CheckOutput(self.style, len(tasks), self.notes)
        if len(tasks) == 1 and tasks[0].job.target.capture and (self.jobs or self.executor):
            return self._in_parts(tasks[0], output)
        one = len(tasks) <= 1 or self.jobs == 1
        name = self.executor or ("serial" if one else "processes")
        live = name == "serial"  # what targets print is seen as they print it
        if len(tasks) == 1:
            tasks = [replace(t, job=replace(t.job, processes=self.jobs)) for t in tasks]
        ends = _failed if self.fail_fast else None
        reports: list[Report] = []
        over = False
        with watching(live, self.style.quiet, self.style.no_color) as watch:
            runs: Any = executor(name, self.jobs).run(tasks, ends=ends, watch=watch)
            try:
                for number, task in enumerate(tasks, 1):
                    if live and not over:
                        output.begin(task.job.target, number)
                    finished: Finished = next(runs)
                    result: Checked = finished.result
                    reports.append(result.report)
                    if not finished.begun:
                        output.leave_out(result.report)
                        continue
                    over = task.interrupted(result) or (self.fail_fast and not result.report.ok)
                    if not live:
                        output.begin(task.job.target, number)
                    if finished.printed is not None:
                        self._copy(finished.printed)
                    output.add(result.report)
                    self._keep(task, result)
            finally:
                runs.close()
        if len(tasks) > 1:
            from adtool.remarks import checked_together

            checked_together(reports)
        output.finish()
        return reports

    def _in_parts(self, task: CheckScript, output: CheckOutput) -> list[Report]:
        """Checks one capture by the executor that was asked for."""
        from adtool.commands.check_parts import check_in_parts

        name = self.executor or ("serial" if self.jobs == 1 else "processes")
        output.begin(task.job.target, 1)
        with watching(False, self.style.quiet, self.style.no_color) as watch:
            try:
                report = check_in_parts(task, name, self.jobs, watch)
            except ToolError as error:
                failure = Failure(error.kind, error.message, error.help)
                report = task.failed(failure).report
        output.add(report)
        output.finish()
        return [report]

    def _keep(self, task: CheckScript, result: Checked) -> None:
        from adtool.keeping import keeping
        from adtool.last import remember
        from adtool.session import Session

        job = task.job
        if not task.keep:  # else it has
            session = Session(job.target, job.options, (), traces=result.traces)
            with keeping() as keep:
                remember(session, result.report, keep)
        if self.plot and result.report.error is None:
            from adtool.figures.remainders import save_remainders

            save_remainders(result.report.taylor, self.plot)

    def _copy(self, printed: Printed) -> None:
        """Passes on what a target printed while others ran."""
        streams = [sys.stderr if self.style.data_on_stdout else sys.stdout, sys.stderr]
        for stream in streams:
            stream.flush()
        out, err = (getattr(s, "buffer", None) for s in streams)
        if out is not None and err is not None:
            printed.copy(out, err)


@contextmanager
def watching(live: bool, quiet: bool, no_color: bool) -> Iterator[Watch | None]:
    """Lines on a terminal for what workers do, or one where what they print is seen live."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from adtool.render.progress import LinePerWorker, OneLine
    from adtool.render.text import make_console

    console = make_console(sys.stderr, no_color)
    with OneLine(console) if live else LinePerWorker(console) as watch:
        yield watch


def _failed(result: Checked) -> Failure | None:
    """Why nothing is run after a target that failed."""
    report = result.report
    if report.ok:
        return None
    return Failure(NOT_RUN, f"not run: `{report.script}` failed before (--fail-fast)")
