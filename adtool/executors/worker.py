"""A worker process, which does the tasks of another adtool until that ends.

They share a folder: `N.task` and `N.out`, `N.err`, `N.result`. The numbers of tasks come by
standard input, a line each. What the worker says goes through a pipe: `at STATUS` while it has a
task, and `done` when the result is there. Where standard input ends, nobody waits any more.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from adtool import codec, interrupts, parents, tasks
from adtool.executors.base import Desk, performed
from adtool.status import Status

_PAUSE = 0.2  # seconds between two words on how far a task is


def main(folder: str, pipe: str, watched: str) -> None:
    """Works. folder: the shared one. pipe: a descriptor to talk to. watched: 1 if anybody looks."""
    parents.die_with_parent()
    interrupts.install(quiet=True)
    interrupts.unblock()
    # Below the shared folder, so that nothing is left of a worker that is killed.
    tempfile.tempdir = folder
    numbers: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(numbers,), daemon=True).start()
    talk = _Talk(int(pipe), watched == "1")
    with suppress(BrokenPipeError):
        while (number := numbers.get()) is not None:
            _work(Path(folder), number, talk)
            talk.say("done")
    # At once: nothing here is worth waiting for, and the thread sits in a read.
    os._exit(0)


def _work(folder: Path, number: int, talk: _Talk) -> None:
    stem = str(folder / str(number))
    with open(f"{stem}.task", encoding="ascii") as file:
        task = tasks.read(file.read())
    with open(f"{stem}.out", "wb") as out, open(f"{stem}.err", "wb") as err:
        result = performed(task, Desk(talk.at if talk.watched else None, (out, err)))
    with open(f"{stem}.part", "w", encoding="ascii") as file:
        file.write(codec.dumps(result))
    os.replace(f"{stem}.part", f"{stem}.result")


def _listen(numbers: queue.SimpleQueue[int | None]) -> None:
    """Passes on what comes by standard input. At its end, the task at hand is interrupted."""
    for line in sys.stdin:
        numbers.put(int(line))
    numbers.put(None)
    os.kill(os.getpid(), signal.SIGTERM)


class _Talk:
    """The worker's end of the pipe."""

    def __init__(self, pipe: int, watched: bool) -> None:
        self.watched = watched
        self._pipe = pipe
        self._last = 0.0

    def at(self, status: Status) -> None:
        """How far a task is. Not each time: the reader may have others to mind."""
        now = time.monotonic()
        if now - self._last >= _PAUSE:
            self._last = now
            self.say("at " + codec.dumps(status))

    def say(self, line: str) -> None:
        """Writes a line, whole."""
        data = line.encode("ascii") + b"\n"
        while data:
            data = data[os.write(self._pipe, data) :]
