"""What parent and child tell each other: the job, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adtool.captures.head import Written
from adtool.matrices import LaunchPictures
from adtool.report import Duration, Finding, Problem
from engine.autograd import Moved, TapeResult

Kind = Literal[
    "done", "raised", "exited", "target", "engine", "environment", "internal", "interrupted"
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the target ended, and the checks of its tapes.

    kind: `done` (a normal end, all tapes checked), `raised` (an exception), `exited`
    (sys.exit with a status), `target` (it could not be started), `engine` (the engine
    refused something), `environment` (the system did), `internal` (a bug of the tool),
    `interrupted`. kernels: the names
    of all kernels on the tapes, also of those that the options leave out. recorded: how many
    launches each tape has. processes: how many the target started. strayed: words among the
    target's arguments that are options of the tool, and that the target does not seem to use.
    script_seconds: wall time of the target itself. moved: what its inputs' being moved did.
    written: of a capture, where that was asked for. found: the finding that it was reduced to.
    pictures: Jacobians of launches, where they were asked for.
    """

    kind: Kind
    message: str = ""
    help: str = ""
    detail: str = ""
    problems: tuple[Problem, ...] = ()
    tapes: tuple[TapeResult, ...] = ()
    kernels: tuple[str, ...] = ()
    recorded: tuple[int, ...] = ()
    processes: int = 0
    durations: tuple[Duration, ...] = ()
    strayed: tuple[str, ...] = ()
    script_seconds: float = 0.0
    moved: Moved | None = None
    written: Written | None = None
    found: Finding | None = None
    pictures: tuple[LaunchPictures, ...] = ()
