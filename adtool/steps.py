"""Runs of a target with its inputs moved, each in a fork of a child that has loaded what it needs.

Five runs of a short script take less than one start of Python with the tool. Each begins where the
first would, has a process to itself, and ends as a child of the tool does, by writing its outcome.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

from adtool import codec, files, parents
from adtool.job import Moving
from adtool.outcome import Outcome, Settled
from adtool.program_modules import Restart
from engine.autograd import (
    STEPS,
    Broken,
    Moved,
    Mover,
    Sought,
    decided,
    judged,
    repeats,
)

_PAUSE = 0.01  # seconds between two looks, where the system has no descriptors of processes


def next_step(moving: Moving, folder: Path) -> Mover | Settled:
    """In a fork of this process, what moves the inputs of its run; here, what all runs say.

    Raises OSError where the system lets no process run, and Restart where a fork asks for it.
    """
    sought = codec.loads(Sought, moving.sought)
    course = settling(sought)
    step = next(course)
    while True:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            parents.die_with_parent()
            parents.require(parent)
            return Mover(sought.tape, step, sought.late)
        _wait(pid, moving.seconds)
        if (folder / files.AGAIN).exists():
            raise Restart((folder / files.AGAIN).read_text())
        try:
            step = course.send(_result(folder))
        except StopIteration as end:
            found: Settled = end.value
            return found


def settling(sought: Sought) -> Generator[float, Moved | None, Settled]:
    """Asks for the runs that are needed, step by step, and returns what they say.

    Nothing where one gave nothing, or as soon as they say that there is nothing to be found.
    """
    runs: dict[float, Moved] = {}
    for step in STEPS:
        moved = yield step
        if moved is None:
            return Settled()
        runs[step] = moved
        if moved.threads or (step == 0.0 and not repeats(sought, moved)):
            return Settled(other=True)
        if decided(sought, runs):
            return Settled()
    found = judged(sought, runs)
    return Settled(broken=found) if isinstance(found, Broken) else Settled(function=found)


def _result(folder: Path) -> Moved | None:
    """What a fork has found, if it came so far. Takes its outcome away."""
    path = folder / files.RESULT
    try:
        outcome = codec.loads(Outcome, files.text(path))
        path.unlink()
    except (OSError, UnicodeDecodeError, codec.CodecError):
        return None
    return outcome.moved


def _wait(pid: int, seconds: float) -> None:
    """Waits for a fork, and ends it where it takes longer. It is gone then, come what may."""
    end = time.monotonic() + seconds
    try:
        with suppress(OSError, AttributeError):  # no such call: it is looked for below
            handle = os.pidfd_open(pid)
            try:
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                poll.poll(1000 * seconds)
            finally:
                os.close(handle)
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                raise TimeoutError
            time.sleep(_PAUSE)
    except TimeoutError:
        _end(pid)
    except BaseException:
        _end(pid)
        raise


def _end(pid: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
