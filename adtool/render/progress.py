"""A progress bar on standard error while launches are checked."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from adtool import interrupts, status
from adtool.counts import counted
from engine.characters import line

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
            "kernel": "as a whole" if now.launch < 0 else line(now.kernel),
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
            interrupts.undo(self, _show_cursor)
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
            interrupts.settled(self)
            sys.stderr.flush()


class OneLine:
    """The progress of one task at a time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: CheckProgress | None = None

    def __enter__(self) -> OneLine:
        return self

    def begin(self, worker: int, name: str) -> None:
        """The next task."""
        self._shown = CheckProgress(self._console)

    def at(self, worker: int, status: status.Status) -> None:
        """How far it is."""
        if self._shown is not None:
            self._shown(status)

    def end(self, worker: int) -> None:
        """It is done."""
        self.hide()

    def hide(self) -> None:
        """Something else is printed now."""
        if self._shown is not None:
            self._shown.__exit__(None, None, None)
            self._shown = None

    def __exit__(self, *about: object) -> None:
        self.hide()


class LinePerWorker:
    """A line for each worker that has a task, on a terminal. It goes where something is printed."""

    def __init__(self, console: Console, delay: float = _DELAY) -> None:
        self._console = console
        self._delay = delay
        self._begun = time.monotonic()
        self._rows: dict[int, dict[str, Any]] = {}
        self._tasks: dict[int, TaskID] = {}
        self._lines: Progress | None = None

    def __enter__(self) -> LinePerWorker:
        return self

    def begin(self, worker: int, name: str) -> None:
        """A worker has a task now."""
        self._rows[worker] = {"name": line(name), "what": "runs", "completed": 0, "total": None}
        self._show(worker)

    def at(self, worker: int, status: status.Status) -> None:
        """How far it is with it."""
        if worker in self._rows:
            self._rows[worker] |= _told(status)
            self._show(worker)

    def end(self, worker: int) -> None:
        """It is done with it."""
        self._rows.pop(worker, None)
        task = self._tasks.pop(worker, None)
        if task is not None and self._lines is not None:
            self._lines.remove_task(task)

    def hide(self) -> None:
        """Something else is printed now; the next word of a worker brings the lines back."""
        if self._lines is not None:
            self._lines.stop()
            interrupts.settled(self)
        self._lines = None
        self._tasks.clear()

    def _show(self, worker: int) -> None:
        if not self._console.is_terminal or time.monotonic() - self._begun < self._delay:
            return
        if self._lines is None:
            self._lines = Progress(
                TextColumn("worker {task.fields[worker]}"),
                TextColumn("{task.fields[name]}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[what]}", markup=False),
                console=self._console,
                transient=True,
            )
            interrupts.undo(self, _show_cursor)
            self._lines.start()
        for seat, row in sorted(self._rows.items()):
            if seat not in self._tasks:
                self._tasks[seat] = self._lines.add_task("", worker=seat + 1, **row)
        self._lines.update(self._tasks[worker], **self._rows[worker])

    def __exit__(self, *about: object) -> None:
        self.hide()
        sys.stderr.flush()


def _show_cursor() -> None:
    """Puts back what a bar has changed, and begins a line."""
    os.write(2, b"\x1b[?25h\r\x1b[K")


def _told(now: status.Status) -> dict[str, Any]:
    if now.phase != status.CHECK:
        return {"what": counted(now.launches, "launch"), "completed": 0, "total": None}
    what = "as a whole" if now.launch < 0 else line(now.kernel)
    return {"what": f"{now.done}/{now.total} {what}", "completed": now.done,
            "total": max(1, now.total)}  # fmt: skip
