"""The interface of executors.

An executor gives results in the order of the tasks, and the same results as any other. A worker
that is lost in the middle of a task is replaced, and the task begun again; where that happens
`ATTEMPTS` times to one task, its result says so, and the others go on. An interrupt ends what runs;
the results of the rest say that they were not begun.
"""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Protocol

from adtool.exits import ToolError
from adtool.report import Failure
from adtool.status import Status
from engine.classes import dataclass

ATTEMPTS = 3
INTERRUPTED = "interrupted"
NOT_RUN = "not-run"  # kind of the failure of a task that was not to be begun


@dataclass(frozen=True, slots=True)
class Desk:
    """What a task finds where it runs.

    say: takes how far it is, some times a second; None where nobody looks. printed: files for
    what the programs that it starts write to standard output and standard error (they then have
    no standard input); None for those of this process.
    """

    say: Callable[[Status], None] | None = None
    printed: tuple[BinaryIO, BinaryIO] | None = None


class Task(Protocol):
    """A piece of work as data: a frozen dataclass that `adtool.codec` can write and read.

    kind: the name of its module in `adtool/tasks`. result: the dataclass of its results.
    """

    kind: ClassVar[str]
    result: ClassVar[type]

    @property
    def name(self) -> str:
        """What the user calls it."""

    def run(self, desk: Desk) -> Any:
        """Does it. May raise ToolError; must end soon after KeyboardInterrupt."""

    def failed(self, failure: Failure) -> Any:
        """The result of this task where it could not be done."""

    def interrupted(self, result: Any) -> bool:
        """Whether an interrupt ended it before it was done."""


class Watch(Protocol):
    """Is told what workers do, for a user who waits. Workers count from 0."""

    def begin(self, worker: int, name: str) -> None:
        """A worker begins with a task."""

    def at(self, worker: int, status: Status) -> None:
        """How far it is."""

    def end(self, worker: int) -> None:
        """It is done with the task."""

    def hide(self) -> None:
        """Something else is about to be printed."""


class Unwatched:
    """Nobody waits."""

    def begin(self, worker: int, name: str) -> None:
        """Nothing to do."""

    def at(self, worker: int, status: Status) -> None:
        """Nothing to do."""

    def end(self, worker: int) -> None:
        """Nothing to do."""

    def hide(self) -> None:
        """Nothing to do."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A task with its result. begun: whether it was run at all. printed: see `Printed`."""

    task: Task
    result: Any
    begun: bool = True
    printed: Printed | None = None


@dataclass(frozen=True, slots=True)
class Printed:
    """Files with what a task's programs wrote to standard output and standard error.

    They are there until the next result is asked for. cut: bytes that were left out of each.
    """

    out: Path
    err: Path
    cut: tuple[int, int] = (0, 0)

    def copy(self, out: BinaryIO, err: BinaryIO) -> None:
        """Writes them to two streams, piece by piece."""
        for path, to, cut in zip((self.out, self.err), (out, err), self.cut, strict=True):
            last = b"\n"
            if not path.exists():  # its worker was lost
                continue
            with open(path, "rb") as file:
                shutil.copyfileobj(file, to)
                if file.tell():
                    file.seek(-1, 2)
                    last = file.read(1)
            if last != b"\n":  # what follows begins a line of its own
                to.write(b"\n")
            if cut:
                to.write(b"(%d more bytes were printed)\n" % cut)
            to.flush()


# Says why no further task shall begin, from a result; None where they shall.
Ends = Callable[[Any], Failure | None]


class Executor(Protocol):
    """Runs tasks."""

    def run(
        self, tasks: Sequence[Task], *, ends: Ends | None = None, watch: Watch | None = None
    ) -> Iterator[Finished]:
        """One `Finished` for each task, in their order; closing the iterator ends what runs.

        ends: where it gives a failure for the result of a task, none that follows it is begun (or
        counts, if it was), and that failure is the result of each.
        Raises ToolError where nothing can be run at all.
        """


def performed(task: Task, desk: Desk) -> Any:
    """The result of a task, whatever it raises."""
    try:
        return task.run(desk)
    except ToolError as error:
        return task.failed(Failure(error.kind, error.message, error.help))
    except KeyboardInterrupt:
        return task.failed(Failure(INTERRUPTED, f"`{task.name}` was interrupted"))
    except Exception:
        return task.failed(
            Failure("internal", "a bug in adtool", "", traceback.format_exc().rstrip())
        )


def left_out(task: Task, why: Failure) -> Finished:
    """A task that was not begun."""
    return Finished(task, task.failed(why), begun=False)


def not_begun() -> Failure:
    """Of tasks that an interrupt kept from being begun."""
    return Failure(INTERRUPTED, "not run: interrupted before")


def lost(task: Task, how: str) -> Any:
    """The result of a task that no worker could bring to its end. how: what became of the last."""
    return task.failed(
        Failure(
            "worker-lost", f"the worker was lost {ATTEMPTS} times on this script: {how}",
            "the system may have killed it because memory ran out: use fewer workers (--jobs)",
        )
    )  # fmt: skip
