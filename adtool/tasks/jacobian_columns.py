"""Task: evaluates some columns of the Jacobians of a capture's launch."""

from __future__ import annotations

from typing import ClassVar

from adtool.executors.base import INTERRUPTED, Desk
from adtool.exits import ToolError
from adtool.job import Job
from adtool.report import Failure
from adtool.session import run_session
from engine.classes import dataclass


@dataclass(frozen=True, slots=True)
class ColumnsFound:
    """derivatives: JSON of them, see `Job`."""

    derivatives: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class JacobianColumns:
    """timeout: seconds for the share, 0 for none."""

    kind: ClassVar[str] = "jacobian_columns"
    result: ClassVar[type] = ColumnsFound

    job: Job
    timeout: float

    @property
    def name(self) -> str:
        """The capture, and which share of its columns."""
        mine = self.job.columns
        return self.job.target.name + (f", share {mine.number + 1} of {mine.count}" if mine else "")

    def run(self, desk: Desk) -> ColumnsFound:
        """Evaluates it in a child of this process."""
        try:
            session = run_session(
                self.job, timeout=self.timeout, watch=desk.say, printed=desk.printed
            )
        except ToolError as error:
            return self.failed(Failure(error.kind, error.message, error.help))
        return ColumnsFound(session.derivatives, session.failure)

    def failed(self, failure: Failure) -> ColumnsFound:
        """Of a share that came to nothing."""
        return ColumnsFound("", failure)

    def interrupted(self, result: ColumnsFound) -> bool:
        """Whether an interrupt ended it."""
        return result.failure is not None and result.failure.kind == INTERRUPTED
