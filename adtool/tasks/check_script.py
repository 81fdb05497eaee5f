"""Task: runs a script or module and checks its recording."""

from __future__ import annotations

import time
from dataclasses import field, replace
from typing import ClassVar

from adtool.accuracy.entries import Expected
from adtool.as_run import Ahead, compared
from adtool.executors.base import INTERRUPTED, Desk
from adtool.exits import ToolError
from adtool.job import Job, Keep
from adtool.keeping import keeping
from adtool.overlay import told
from adtool.report import Failure, Report, Severity
from adtool.reruns import has_input, is_compared
from adtool.session import Session, run_session
from adtool.starter import Starter
from adtool.status import Status
from adtool.suppressions import Choice
from engine.classes import dataclass


@dataclass(frozen=True, slots=True)
class Checked:
    """The report of a target. traces: JSON of `adtool.traces.Traces`, where there are any."""

    report: Report
    traces: str = ""


@dataclass(frozen=True, slots=True)
class CheckScript:
    """timeout: seconds for the target and its checks together, 0 for none. stdout_to_stderr:
    standard output is not for what the target prints. keep: whether this becomes the last run.
    accuracy, expected: see `Session`.
    silent: what the target prints is nothing, and so is what it reads.
    """

    kind: ClassVar[str] = "check_script"
    result: ClassVar[type] = Checked

    job: Job
    timeout: float
    gate: Severity = "error"
    choice: Choice = field(default_factory=Choice)
    exit_zero: bool = False
    stdout_to_stderr: bool = False
    keep: bool = False
    accuracy: float | None = None
    expected: Expected | None = None
    silent: bool = False

    @property
    def name(self) -> str:
        """The target, as the user named it."""
        return self.job.target.name

    def run(self, desk: Desk) -> Checked:
        """Runs the target in a child of this process, and again where that tells more."""
        if not self.keep:
            return self._run(desk, None)
        with keeping() as keep:
            return self._run(desk, keep)

    def _run(self, desk: Desk, keep: Keep | None) -> Checked:
        start = time.monotonic()
        # A script that came from standard input has left nothing there.
        input_ = not self.silent and self.job.target.text is None and has_input()
        deadline = start + self.timeout if self.timeout > 0 else None
        with Starter() as starter, Ahead(self.job, starter, not input_) as ahead:

            def watch(status: Status) -> None:
                ahead.look(status)
                if desk.say is not None:
                    desk.say(status)

            try:
                session = run_session(
                    replace(self.job, keep=keep), timeout=self.timeout,
                    stdout_to_stderr=self.stdout_to_stderr, watch=watch, printed=desk.printed,
                    silent=self.silent, starter=starter,
                )  # fmt: skip
            except ToolError as error:  # a report all the same
                return self.failed(Failure(error.kind, error.message, error.help))
            from adtool.reruns import settled

            session = settled(session, self.job, deadline, starter)
            if is_compared(session, self.job, deadline, input_):
                session = compared(session, self.job, keep, deadline, starter, ahead)
        report = self.report(session)
        if keep is not None:
            from adtool.last import remember

            remember(session, report, keep)
        return Checked(report, session.traces)

    def failed(self, failure: Failure) -> Checked:
        """The report of a target that was not run, or whose run came to nothing."""
        return Checked(self.report(Session(self.job.target, self.job.options, (), failure=failure)))

    def interrupted(self, result: Checked) -> bool:
        """Whether an interrupt ended it."""
        return result.report.error is not None and result.report.error.kind == INTERRUPTED

    def report(self, session: Session) -> Report:
        """The report of a session of this target."""
        from adtool.assemble import build_report

        session = replace(session, accuracy=self.accuracy, expected=self.expected)
        with told(self.job.overlay):
            return build_report(session, self.gate, self.choice, self.exit_zero)
