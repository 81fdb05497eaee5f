"""Starts the runs of one target, by a server that forks them (`adtool.fork_server`)."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from adtool import interrupts, paths
from adtool.exits import ToolError, because

# The tool is imported without the program's folders, of which some may be in PYTHONPATH, and with
# no search for garbage, of which there is none. A run that begins anew, with a choice for
# `ProgramModules`, has a process to itself from the start.
_BOOT = f"""import _signal
_signal.signal(_signal.SIGINT, _signal.SIG_DFL)
import gc, sys
started = tuple(sys.modules)
gc.disable()
root, folder, *choice = sys.argv[1:]
{paths.OWN_FIRST}
from adtool.child import main
if not choice:
    from adtool.fork_server import next_run
    folder = next_run(*map(int, folder.split(",")))
main(folder, path, given, started, choice)
"""
_CANNOT = "the process of the script cannot be started"


class Run:
    """A process that runs a target: what there is of `subprocess.Popen`."""

    def __init__(self, server: subprocess.Popen[bytes], pipe: int) -> None:
        self._server, self._pipe = server, pipe
        self._text = b""
        self._pid = 0
        self.returncode: int | None = None
        os.set_blocking(pipe, False)
        interrupts.undo_first(self, self.kill)

    @property
    def _group(self) -> int:
        """The process that leads its group: the server, before the run is there."""
        self._read()
        return self._pid or self._server.pid

    def signal(self, number: int) -> None:
        """Sends a signal to it and to all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, number)

    def kill(self) -> None:
        """Ends it with all that it started, at once, in a handler of signals."""
        for group in {self._group, self._server.pid}:
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)

    def wait(self, limit: float | None = None, other: int = -1) -> int:
        """The exit status, as soon as there is one.

        limit: in seconds. other: a descriptor; where it can be read from, the wait is over, too.
        Raises TimeoutExpired where there is none by then, and ToolError where it did not start.
        """
        end = None if limit is None else time.monotonic() + limit
        while self.returncode is None:
            poll = select.poll()
            poll.register(self._pipe, select.POLLIN)
            if other >= 0:
                poll.register(other, select.POLLIN)
            left = None if end is None else max(0.0, end - time.monotonic())
            found = poll.poll(None if left is None else 1000 * min(left, 1e6))
            self._read()
            over = (left is not None and not found) or any(d == other for d, _ in found)
            if over and self.returncode is None:
                raise subprocess.TimeoutExpired("adtool", limit or 0.0)
        return self.returncode

    def _read(self) -> None:
        """Takes what the server said. Raises ToolError where the run could not be started."""
        with contextlib.suppress(BlockingIOError):
            while self.returncode is None:
                said = os.read(self._pipe, 1 << 10)
                self._text += said
                lines = self._text.split(b"\n")[:-1]
                if lines and lines[0].startswith(b"!"):
                    error = OSError(int(lines[0][1:]), os.strerror(int(lines[0][1:])))
                    self.returncode = 0
                    raise ToolError(f"{_CANNOT}: {because(error)}", "", "environment")
                if lines:
                    self._pid = int(lines[0])
                if len(lines) > 1:
                    self.returncode = int(lines[1])
                elif not said:  # the server is gone, and with it the run
                    self.returncode = self._server.wait()

    def stop(self) -> None:
        """Ends it with all that it started, and waits until it is gone."""
        self.signal(signal.SIGKILL)
        self.wait()

    def end(self) -> None:
        """Ends it, unless it has come to its end. It is not spoken of any more."""
        if self.returncode is None:
            self.stop()
        interrupts.settled(self)
        os.close(self._pipe)


def _is_open(descriptor: int) -> bool:
    """Whether a descriptor is open, and not the null device in the place of a closed stream."""
    try:
        return descriptor > 2 or os.get_inheritable(descriptor)
    except OSError:
        return False


class Starter:
    """Starts runs of a target, each in a process with a session of its own. To be closed."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def __enter__(self) -> Starter:
        return self

    def __exit__(self, *about: object) -> None:
        if self._control is not None:
            self._control.close()
        if self._server is not None:
            self._server.wait()
            interrupts.settled(self)

    def run(self, folder: Path, streams: Sequence[int]) -> Run:
        """Starts the job that is in a folder.

        streams: descriptors for standard input, output and error; one may be closed. Raises
        OSError.
        """
        if self._server is None:
            self._start()
        assert self._server is not None and self._control is not None
        given = {number: d for number, d in enumerate(streams) if _is_open(d)}
        pipe, end = os.pipe()
        try:
            run = Run(self._server, pipe)
            request = "".join(map(str, given)).encode() + b" " + os.fsencode(folder)
            with contextlib.suppress(BrokenPipeError):  # it is gone: the run knows
                socket.send_fds(self._control, [request], [end, *given.values()])
        finally:
            os.close(end)
        return run

    def _start(self) -> None:
        self._server, self._control = _early.pop() if _early else _started()
        process = self._server
        interrupts.undo_first(self, lambda: interrupts.end_group(process))


def start_early() -> None:
    """Starts a server for the first `Starter`, which loads the tool while the command is read."""
    with contextlib.suppress(OSError):  # then it is started when it is asked for, and told
        _early.append(_started())


def end_early() -> None:
    """Ends it, where nothing has asked for it."""
    while _early:
        server, control = _early.pop()
        control.close()
        server.kill()
        server.wait()


_early: list[tuple[subprocess.Popen[bytes], socket.socket]] = []


def _started() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A server, and what requests are sent through. Raises OSError."""
    control, other = socket.socketpair()
    with other, interrupts.holding():
        process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, paths.ROOT, f"{other.fileno()},{os.getpid()}"],
            start_new_session=True,
            pass_fds=[other.fileno()],
        )
    return process, control
