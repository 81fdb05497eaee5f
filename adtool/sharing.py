"""Shares checks of long programs and of many kernels among forked processes.

There is one more than processors. Each takes the next kernel from a queue, and checks all its
launches. The process that was there first also checks the tapes as wholes, meanwhile; then it
gathers what all have found. Whose checks a process does not come to the end of, it makes itself.
What is found does not depend on how many there are.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import mmap
import os
import pickle
import signal
import struct
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import field
from time import monotonic, sleep
from typing import IO, Any, NoReturn

import engine
from adtool import parents
from engine.autograd import DividedCheck, Found, LaunchResult
from engine.classes import dataclass

MOST = 8  # processes
# Launches, or kernels, that are worth a second process.
LEAST, KERNELS = 300, 8
_SOON = 0.2  # seconds after which what was found is handed on
LARGEST = 64 << 20  # bytes of a launch's arrays, beyond which its own threads are of more use
_SLOT = struct.Struct("<qqqq")  # launches begun; tape, number and kernel of the last one
_TOKEN = struct.Struct("<i")
_LENGTH = struct.Struct("<q")
_PIPE = 1000  # tokens that surely fit into a pipe
# Where they have threads that run all the time, a forked process may wait for one for ever.
_THREADED = ("jax", "jaxlib", "torch", "cupy", "paddle", "tensorflow")

Tell = Callable[[int, int, int, str], None]


def usual_processes() -> int:
    """How many share a check: one more than there are processors.

    A process has all launches of a kernel, or all tapes as wholes, and these take unequal times:
    the system divides the processors among the processes that are not done.
    """
    processors = engine.config.num_threads or engine.processors()
    return min(processors + 1, MOST) if processors > 1 else 1


def can_fork() -> bool:
    """Whether this process can be forked, and its fork will not wait for a thread for ever."""
    return (
        hasattr(os, "fork")
        and threading.active_count() == 1
        and not any(name in sys.modules for name in _THREADED)
    )


@dataclass
class _Worker:
    """A forked process. found: by the number of the kernel; whole: those that are at their end."""

    pid: int
    file: IO[bytes]
    read: int = 0
    ended: bool = False
    found: dict[int, list[Found]] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)

    def look(self) -> None:
        """Takes what it has found since the last look."""
        if not self.ended:
            try:
                pid, _ = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it
                pid = self.pid if not _runs(self.pid) else 0
            self.ended = pid == self.pid
        size = os.fstat(self.file.fileno()).st_size
        while size - self.read > _LENGTH.size:
            head = os.pread(self.file.fileno(), _LENGTH.size, self.read)
            (length,) = _LENGTH.unpack(head)
            end = self.read + _LENGTH.size + length
            if end > size:
                return
            # Written by a fork of this process, to a file that has no name.
            number, found, whole = pickle.loads(
                os.pread(self.file.fileno(), length, self.read + _LENGTH.size)
            )
            self.found.setdefault(number, []).extend(found)
            if whole:
                self.whole.add(number)
            self.read = end


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


class Shared:
    """The checks of launches, shared among processes. To be closed."""

    def __init__(self, check: DividedCheck, processes: int, tell: Tell) -> None:
        """tell: see `wait`. Of so many processes as many are forked as can be."""
        self._check, self._tell = check, tell
        self._kernels = check.kernels()
        self._found: dict[int, list[Found]] = {}
        self._whole: set[int] = set()
        self._workers: list[_Worker] = []
        self._threads = engine.config.num_threads
        self._heard: Any = None
        self._page = mmap.mmap(-1, _SLOT.size * processes)
        self._queue = -1
        if processes > 1:
            with contextlib.suppress(Exception):  # a target may have changed what this needs
                self._share(processes)

    def _share(self, processes: int) -> None:
        queue, end = os.pipe()
        os.set_blocking(queue, False)
        tokens = range(min(len(self._kernels), _PIPE))
        os.write(end, b"".join(map(_TOKEN.pack, tokens)))
        os.close(end)
        self._queue = queue
        gc.freeze()
        # The target's own handler is for its own children.
        self._heard = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # The processors are taken: more threads would only stand in each other's way.
        engine.config.num_threads = max(1, engine.processors() // processes)
        for slot in range(1, processes):
            self._workers.append(self._forked(slot))

    @property
    def forked(self) -> bool:
        """Whether others take part."""
        return bool(self._workers)

    def _forked(self, slot: int) -> _Worker:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        parent = os.getpid()
        try:
            pid = os.fork()
        except Exception:
            file.close()
            raise
        if not pid:
            self._work(slot, file, parent)
        return _Worker(pid, file)

    def _work(self, slot: int, file: IO[bytes], parent: int) -> NoReturn:
        """What a forked process does."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that forked it decides
            faulthandler.disable()  # and tells of what it cannot do either
            parents.die_with_parent()
            for number in self._tokens() if os.getppid() == parent else ():
                since: list[Found] = []
                last = monotonic()
                for found in self._made(number, slot):
                    since.append(found)
                    if monotonic() - last > _SOON:
                        _write(file, (number, since, False))
                        since, last = [], monotonic()
                _write(file, (number, since, True))
        finally:
            os._exit(0)

    def _tokens(self) -> Iterator[int]:
        """Numbers of kernels, each for one process."""
        while self._queue >= 0:
            try:
                token = os.read(self._queue, _TOKEN.size)
            except BlockingIOError:
                return
            if not token:
                return
            yield _TOKEN.unpack(token)[0]

    def _made(self, number: int, slot: int) -> Iterator[Found]:
        done = self._slot(slot)[0]

        def tell(tape: int, launch: int, kernel: str) -> None:
            nonlocal done
            done += 1
            _SLOT.pack_into(self._page, slot * _SLOT.size, done, tape, launch, number)
            if not slot:
                self._tell(tape, launch, self.begun, kernel)

        return self._check.launches(self._kernels[number], tell)

    def _make(self, number: int) -> None:
        """Checks the launches of a kernel in this process."""
        known = self._found[number] = []
        for found in self._made(number, 0):
            known.append(found)  # at once: what comes next may be interrupted
        self._whole.add(number)

    @property
    def begun(self) -> int:
        """How many checks of launches were begun."""
        return sum(self._slot(n)[0] for n in range(len(self._page) // _SLOT.size))

    def _slot(self, number: int) -> tuple[int, ...]:
        return _SLOT.unpack_from(self._page, number * _SLOT.size)

    def wait(self) -> None:
        """Takes part until all is checked.

        The place of each check is told: numbers of its tape and of its launch, how many were begun,
        and the name of the kernel.
        """
        for number in self._tokens():
            self._make(number)
        while any(not w.ended for w in self._workers):
            for slot, w in enumerate(self._workers, 1):
                w.look()
                if not w.ended:
                    _, tape, launch, kernel = self._slot(slot)
                    self._tell(tape, launch, self.begun, self._kernels[kernel])
            sleep(0.005)
        self._gather()
        for number in range(len(self._kernels)):
            if number not in self._whole:
                self._make(number)

    def _gather(self) -> None:
        for w in self._workers:
            w.look()
            for number, found in w.found.items():
                if number not in self._whole:
                    self._found[number] = found
            self._whole |= w.whole

    def found(self) -> dict[int, list[LaunchResult]]:
        """What was found by now, by the number of the tape."""
        self._gather()
        out: dict[int, list[LaunchResult]] = defaultdict(list)
        for launches in self._found.values():
            for tape, result in launches:
                out[tape].append(result)
        return out

    def close(self) -> None:
        """Ends the processes."""
        engine.config.num_threads = self._threads
        for w in self._workers:
            if not w.ended:
                with contextlib.suppress(OSError):
                    os.kill(w.pid, signal.SIGKILL)
                    os.waitpid(w.pid, 0)
            w.file.close()
        if self._queue >= 0:
            os.close(self._queue)
            self._queue = -1
        if self._heard is not None:
            signal.signal(signal.SIGCHLD, self._heard)
        self._page.close()


def _write(file: IO[bytes], found: tuple[int, list[Found], bool]) -> None:
    text = pickle.dumps(found)
    file.write(_LENGTH.pack(len(text)) + text)
    file.flush()
