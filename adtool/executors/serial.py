"""Executor in this process: one task after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adtool.executors.base import (
    Desk,
    Ends,
    Finished,
    Task,
    Unwatched,
    Watch,
    left_out,
    not_begun,
    performed,
)
from adtool.report import Failure
from engine.classes import dataclass


def make(jobs: int, root: str) -> Serial:
    """The executor; neither matters to it."""
    del jobs, root
    return Serial()


@dataclass(frozen=True, slots=True)
class Serial:
    """Needs no worker."""

    def run(
        self, tasks: Sequence[Task], *, ends: Ends | None = None, watch: Watch | None = None
    ) -> Iterator[Finished]:
        """See `Executor.run`. A task begins when its result is asked for."""
        seen = watch or Unwatched()
        over: Failure | None = None
        for task in tasks:
            if over is not None:
                yield left_out(task, over)
                continue
            seen.begin(0, task.name)
            try:
                result = performed(task, Desk(None if watch is None else lambda s: seen.at(0, s)))
            finally:
                seen.end(0)
            if task.interrupted(result):
                over = not_begun()
            elif ends is not None:
                over = ends(result)
            yield Finished(task, result)
