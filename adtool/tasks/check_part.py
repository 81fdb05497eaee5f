"""Task: checks a part of a capture."""

from __future__ import annotations

from typing import ClassVar

from adtool.executors.base import INTERRUPTED, Desk
from adtool.exits import ToolError
from adtool.job import Job
from adtool.report import Failure
from adtool.session import run_session
from engine.autograd import TapeResult
from engine.classes import dataclass


@dataclass(frozen=True, slots=True)
class PartChecked:
    """What a part's check found. kernels, recorded: of the whole capture."""

    tapes: tuple[TapeResult, ...]
    kernels: tuple[str, ...] = ()
    recorded: tuple[int, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class CheckPart:
    """timeout: seconds for the part, 0 for none."""

    kind: ClassVar[str] = "check_part"
    result: ClassVar[type] = PartChecked

    job: Job
    timeout: float

    @property
    def name(self) -> str:
        """The capture, and which part of it."""
        part = self.job.part
        if part is None:
            return self.job.target.name
        if part.verdicts is not None:
            return f"{self.job.target.name}, tape {part.first} as a whole"
        if part.launches is not None:
            first, end = part.launches
            return f"{self.job.target.name}, tape {part.first}, launches {first} to {end - 1}"
        return f"{self.job.target.name}, tapes {part.first} to {part.end - 1}"

    def run(self, desk: Desk) -> PartChecked:
        """Checks it in a child of this process."""
        try:
            session = run_session(
                self.job, timeout=self.timeout, watch=desk.say, printed=desk.printed
            )
        except ToolError as error:
            return self.failed(Failure(error.kind, error.message, error.help))
        return PartChecked(session.tapes, session.kernels, session.recorded, session.failure)

    def failed(self, failure: Failure) -> PartChecked:
        """Of a part that was not checked, or whose check came to nothing."""
        return PartChecked((), failure=failure)

    def interrupted(self, result: PartChecked) -> bool:
        """Whether an interrupt ended it."""
        return result.failure is not None and result.failure.kind == INTERRUPTED
