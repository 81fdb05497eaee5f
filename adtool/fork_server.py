"""Starts the runs of a target as forks of one process, which has loaded the tool and nothing else.

Python with the tool takes longer to start than most scripts take to run, and a check may run its
script several times. The runs are children of the server and not of each other, so a target that
waits for its children sees its own alone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from typing import NoReturn

from adtool import parents

_PAUSE = 10  # milliseconds between two looks, where the system has no descriptors of processes


def next_run(control: int, parent: int) -> str:
    """Serves requests until the tool ends; in each fork, returns the folder of its job.

    control: a socket. A request is a line with the folder of a job, after `+` where the run prints
    and reads as this process does and `-` where it has nothing to do with that; and a pipe. Into
    that goes a line with the number of the process or `!` and an error's number, and when it has
    ended one with its exit status, as `subprocess` has it. parent: the tool.
    """
    parents.die_with_parent()
    parents.require(parent)
    server = _Server(socket.socket(fileno=control))
    while True:
        folder = server.step()
        if folder is not None:
            return folder


def anew(folder: str, choice: str) -> list[str]:
    """The command that replaces a run by another with one more choice of modules."""
    return [*sys.orig_argv[:4], folder, *sys.orig_argv[5:], choice]


class _Server:
    """Processes that run, by their numbers: the pipe of each, and a descriptor of it."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pipes: dict[int, int] = {}
        self._handles: dict[int, int] = {}

    def step(self) -> str | None:
        """Waits for a request, or for the end of a run. In a fork, returns its folder."""
        poll = select.poll()
        for waited in (self._control.fileno(), *self._handles.values()):
            poll.register(waited, select.POLLIN)
        blind = len(self._handles) < len(self._pipes)
        found = poll.poll(_PAUSE if blind else None)
        self._reap()
        asked = any(waited == self._control.fileno() for waited, _ in found)
        return self._serve() if asked else None

    def _reap(self) -> None:
        for pid in list(self._pipes):
            done, state = os.waitpid(pid, os.WNOHANG)
            if done == pid:
                self._say(self._pipes[pid], str(os.waitstatus_to_exitcode(state)))
                self._forget(pid)

    def _forget(self, pid: int) -> None:
        os.close(self._pipes.pop(pid))
        if pid in self._handles:
            os.close(self._handles.pop(pid))

    def _serve(self) -> str | None:
        request, pipes, _, _ = socket.recv_fds(self._control, 1 << 16, 1)
        if not request:
            self._end()
        os.set_inheritable(pipes[0], False)
        server = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._say(pipes[0], f"!{error.errno}")
            os.close(pipes[0])
            return None
        if pid:
            self._say(pipes[0], str(pid))
            self._pipes[pid] = pipes[0]
            with contextlib.suppress(OSError, AttributeError):  # an old system, or another
                self._handles[pid] = os.pidfd_open(pid)
            return None
        parents.die_with_parent()
        parents.require(server)
        os.setsid()
        os.close(pipes[0])
        for other in list(self._pipes):
            self._forget(other)
        self._control.close()
        if request.startswith(b"-"):
            _hush()
        return os.fsdecode(request[1:-1])

    def _say(self, pipe: int, line: str) -> None:
        with contextlib.suppress(OSError):  # the tool does not want to know any more
            os.write(pipe, f"{line}\n".encode())

    def _end(self) -> NoReturn:
        for pid in self._pipes:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        os._exit(0)


def _hush() -> None:
    """Leads the standard streams to nothing."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    if nothing > 2:
        os.close(nothing)
