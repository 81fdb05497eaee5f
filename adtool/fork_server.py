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

from adtool import parents, streams

_PAUSE = 10  # milliseconds between two looks, where the system has no descriptors of processes


def next_run(control: int, parent: int) -> str:
    """Serves requests until the tool ends; in each fork, returns the folder of its job.

    control: a socket. A request is the folder of a job after the numbers of the standard streams
    that the run has; it comes with a pipe and these streams. Into the pipe goes a line with the
    number of the process, or `!` and an error's number, and when the process has ended one with
    its exit status as `subprocess` has it. parent: the tool.
    """
    streams.occupy()
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
        try:
            request, received, _, _ = socket.recv_fds(self._control, 1 << 16, 4)
        except ConnectionError:
            self._end()
        if not request:
            self._end()
        numbers, _, folder = request.partition(b" ")
        pipe, *given = received
        os.set_inheritable(pipe, False)
        server = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._say(pipe, f"!{error.errno}")
            for descriptor in received:
                os.close(descriptor)
            return None
        if pid:
            for stream in given:
                os.close(stream)
            self._say(pipe, str(pid))
            self._pipes[pid] = pipe
            with contextlib.suppress(OSError, AttributeError):  # an old system, or another
                self._handles[pid] = os.pidfd_open(pid)
            # Meanwhile: further runs find loaded what the first one has to load for its kernels.
            import engine.public
            import engine.ready  # noqa: F401

            return None
        parents.die_with_parent()
        parents.require(server)
        os.setsid()
        os.close(pipe)
        for other in list(self._pipes):
            self._forget(other)
        self._control.close()
        streams.exchange(dict(zip(map(int, numbers.decode()), given, strict=True)))
        return os.fsdecode(folder)

    def _say(self, pipe: int, line: str) -> None:
        with contextlib.suppress(OSError):  # the tool does not want to know any more
            os.write(pipe, f"{line}\n".encode())

    def _end(self) -> NoReturn:
        for pid in self._pipes:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        os._exit(0)
