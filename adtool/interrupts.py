"""Handles signals that end the tool: one line is printed and nothing is left behind.

No handler here raises. An exception that arises amid an import, a clean-up or a callback is
swallowed there, leaves things half done, or is printed by Python itself. So a signal is noted where
the tool waits (`listening`), and while something is done that must be whole (`holding`). Anywhere
else it ends the process in its handler: what was left to `undo` is done, one line is said, and no
other code runs.

It is there before all else, so it imports next to nothing.
"""

# ruff: noqa: SIM105  (`contextlib` takes longer than all that is here)

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False  # `typing` itself takes longer than all of this
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

_NUMBERS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_STATUS = 2  # `Exit.FAILURE`
_SAME = 1.0  # seconds in which further signals are one request with one that is being followed
_POLITE = 0.3  # seconds that programs which were started for a moment get
_PAUSE = 0.002


class _State:
    """What this process is doing, as handlers must know it."""

    def __init__(self) -> None:
        self.owner = 0  # the process that the handlers are of; 0: they are not there
        self.quiet = False
        self.ears: list[listening] = []
        self.holds = 0
        self.held = 0  # a signal that came meanwhile
        self.followed = -1e9  # when one that was noted was last followed
        self.ends: dict[object, Callable[[], object]] = {}  # of processes
        self.undone: dict[object, Callable[[], object]] = {}  # of all else
        self.ending = False
        self.undid = False
        self.pipe = (-1, -1)


_state = _State()


def install(quiet: bool = False) -> None:
    """Takes the signals that this process was not started to ignore (`nohup`, `&`).

    quiet: it ends without a word, as one that another process will speak of.
    """
    _state.owner, _state.quiet = os.getpid(), quiet
    _take()


def over() -> None:
    """All is done and said: what comes now is too late to change it."""
    if _state.owner == os.getpid():
        for number in _NUMBERS:
            if signal.getsignal(number) is _hear:
                signal.signal(number, signal.SIG_IGN)


def undo(key: object, do: Callable[[], object]) -> None:
    """What an end of the process must do, until `settled`: the last of these comes first.

    `do` runs in a handler, amid anything. What it raises is not told.
    """
    _state.undone[key] = do


def undo_first(key: object, do: Callable[[], object]) -> None:
    """The same for what ends processes: before all else, so that nobody writes any more."""
    _state.ends[key] = do


def settled(key: object) -> None:
    """Nothing is to be undone any more. No error where there was nothing."""
    _state.ends.pop(key, None)
    _state.undone.pop(key, None)


class holding:
    """A signal waits for the end of the block, which must be short: a file and its name."""

    def __enter__(self) -> None:
        _state.holds += 1

    def __exit__(self, *about: object) -> None:
        _state.holds -= 1
        if not _state.holds and _state.held and not _state.ears:
            number, _state.held = _state.held, 0
            _decide(number)


class starting(holding):
    """The same while a process of ours starts, which finds the signals blocked.

    Python itself, and what it imports before there is a handler, prints a traceback for one. The
    process takes them by `install` and `unblock`.
    """

    def __enter__(self) -> None:
        super().__enter__()
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, _NUMBERS)

    def __exit__(self, *about: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
        super().__exit__()


def unblock() -> None:
    """Lets signals in that `starting` keeps out."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _NUMBERS)


class listening:
    """Signals are noted while the block waits for something, and looks for them in between.

    Where the process has not called `install` (tests, programs that use the tool as a library),
    its handlers are there for the block alone; in other threads than the first nothing is heard.
    A signal that nobody looked at ends the process after the block, as everywhere else.
    """

    def __init__(self) -> None:
        self._came: list[int] = []
        self._seen = False
        self._old: dict[int, Any] = {}

    def __enter__(self) -> listening:
        if _state.pipe[0] < 0:
            pipe = os.pipe()
            os.set_blocking(pipe[0], False)
            os.set_blocking(pipe[1], False)
            _state.pipe = pipe
        _state.ears.append(self)
        try:
            self._old = _take()
        except ValueError:  # not the main thread: the caller minds signals
            pass
        return self

    def __exit__(self, *about: object) -> None:
        if _state.owner != os.getpid():
            for number, handler in self._old.items():
                signal.signal(number, handler)
        _state.ears.remove(self)
        self.rest()
        if self._came and not self._seen:
            if _state.owner == os.getpid():
                _decide(self._came[0])
            elif self._old:
                os.kill(os.getpid(), self._came[0])

    @property
    def heard(self) -> int:
        """The first signal that came since the block began; 0 for none. It is to be followed."""
        if not self._came:
            return 0
        self._seen = True
        _state.followed = time.monotonic()
        return self._came[0]

    @property
    def again(self) -> bool:
        """Whether more than one came: the user is in a hurry."""
        return len(self._came) > 1

    @property
    def descriptor(self) -> int:
        """Can be read from once a signal came, until `rest`: to be waited for with other things."""
        return _state.pipe[0]

    def rest(self) -> None:
        """From here on, `descriptor` waits for the next one."""
        try:
            while os.read(_state.pipe[0], 512):
                pass
        except BlockingIOError:
            pass

    def note(self, number: int) -> None:
        """Takes down a signal."""
        self._came.append(number)
        try:
            os.write(_state.pipe[1], b"x")
        except OSError:  # full: it can be read from
            pass


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that leads a group, and all of the group, at once."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass
    _wait_for([process.pid], 1.0)


def _take() -> dict[int, Any]:
    """Puts the handler in place. Returns those that were there, where it was another."""
    old: dict[int, Any] = {}
    for number in _NUMBERS:
        before = signal.getsignal(number)
        if before is not signal.SIG_IGN and before is not _hear:
            old[number] = signal.signal(number, _hear)
    return old


def _hear(number: int, frame: FrameType | None) -> None:
    ears, owner = _state.ears, _state.owner
    if owner not in (0, os.getpid()):  # a fork: it is none of the tool
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    elif _state.ending:
        if _state.undid:  # all that is left is to say so, and nobody may be reading
            os._exit(_STATUS)
    elif ears:
        ears[-1].note(number)
    elif _state.holds:
        _state.held = _state.held or number
    else:
        _decide(number)


def _decide(number: int) -> None:
    """Ends the process, unless it is about to end for an earlier signal of the same request."""
    if time.monotonic() - _state.followed > _SAME:
        _end(number)


def _end(number: int) -> None:
    _state.ending = True
    for do in (*reversed(_state.ends.values()), _end_helpers, *reversed(_state.undone.values())):
        _try(do)
    _state.undid = True
    if not _state.quiet:
        for stream in (sys.stdout, sys.stderr):
            _try(stream.flush)  # what was printed is whole, or not there
        text = f"error: interrupted by {signal.Signals(number).name}\n"
        _try(lambda: os.write(2, text.encode()))
    os._exit(_STATUS)


def _try(do: Callable[[], object]) -> None:
    try:
        do()
    except BaseException:
        pass


def _end_helpers() -> None:
    """Ends programs that were started for a moment (git, dot, a compiler) and what they started.

    Elsewhere than on Linux nothing tells of them: they end by themselves, as nobody reads what they
    write.
    """
    found = _children(os.getpid())
    for pid in found:  # which becomes longer
        found += _children(pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in found:
            try:
                os.kill(pid, number)
            except OSError:
                pass
        if found:
            _wait_for(found, _POLITE)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        pass
    return found


def _wait_for(pids: list[int], seconds: float) -> None:
    """Waits until processes are gone, as long as that."""
    end = time.monotonic() + seconds
    left = list(pids)
    while left and time.monotonic() < end:
        left = [pid for pid in left if _runs(pid)]
        if left:
            time.sleep(_PAUSE)


def _runs(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:  # not ours to wait for, or waited for already
        try:
            os.kill(pid, 0)
        except OSError:
            return False
        return True
