"""A progress bar on standard error while launches are checked."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from adtool import status

_DELAY = 1.0  # seconds of checking before the bar appears


class CheckProgress:
    """Shows the child's status, once checking takes longer than a second, on a terminal."""

    def __init__(self, console: Console, delay: float = _DELAY) -> None:
        self._console = console
        self._delay = delay
        self._begun: float | None = None
        self._bar: Progress | None = None

    def __enter__(self) -> CheckProgress:
        return self

    def __call__(self, now: status.Status) -> None:
        """Takes the next status."""
        if now.phase != status.CHECK or not self._console.is_terminal:
            return
        if self._begun is None:
            self._begun = time.monotonic()
        if time.monotonic() - self._begun < self._delay:
            return
        values: dict[str, Any] = {
            "completed": now.done,
            "total": max(1, now.total),
            "tape": now.tape + 1,
            "tapes": now.tapes,
            "kernel": "as a whole" if now.launch < 0 else now.kernel,
        }
        if self._bar is None:
            self._bar = Progress(
                TextColumn("checking tape {task.fields[tape]} of {task.fields[tapes]}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[kernel]}", markup=False),
                console=self._console,
                transient=True,
            )
            self._bar.add_task("", **values)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], **values)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            sys.stderr.flush()
