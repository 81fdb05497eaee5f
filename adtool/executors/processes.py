"""Executor with processes of this machine: each does one task at a time on a share of the cores."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from adtool import codec, interrupts, paths, status, tasks
from adtool.executors.base import (
    ATTEMPTS,
    INTERRUPTED,
    Ends,
    Finished,
    Printed,
    Task,
    Unwatched,
    Watch,
    left_out,
    lost,
    not_begun,
)
from adtool.exits import ToolError, because
from adtool.report import Failure
from adtool.session import private_folder
from engine.classes import dataclass

THREADS = "ENGINE_NUM_THREADS"

_BOOT = f"""import sys
root, *args = sys.argv[1:]
{paths.OWN_FIRST}
from adtool.executors.worker import main
main(*args)
"""

_PAUSE = 0.02
_POLL = 0.5  # seconds after which a silent pool is looked at
_GRACE = 6.0  # seconds that interrupted workers get: their targets have two to clean up
_HURRY = 1.0  # seconds that they get where the user asks twice
_PIECE = 1 << 16  # bytes read at once


def make(jobs: int, root: str) -> Processes:
    """The executor. jobs: workers at most, 0 for one a processor."""
    import engine

    cores = engine.processors()
    return Processes(jobs or cores, cores, root)


def environment(jobs: int, cores: int) -> dict[str, str]:
    """The environment of one of `jobs` workers, whose launches share the cores.

    What the user chose stays. The number of threads of launches changes no result.
    """
    if os.environ.get(THREADS, "").strip():
        return dict(os.environ)
    return {**os.environ, THREADS: str(max(1, cores // jobs))}


@dataclass(frozen=True, slots=True)
class Processes:
    """jobs: workers at most. cores: those that all share. root: where adtool is imported from."""

    jobs: int
    cores: int
    root: str

    def run(
        self, tasks: Sequence[Task], *, ends: Ends | None = None, watch: Watch | None = None
    ) -> Iterator[Finished]:
        """See `Executor.run`. Results that come early wait for those before them."""
        count = min(self.jobs, len(tasks))
        with private_folder() as folder:
            pool = _Pool(self, tasks, count, folder, ends, watch)
            interrupts.undo_first(pool, pool.kill)
            try:
                for number in range(len(tasks)):
                    yield pool.result(number)
                    pool.forget(number)
            finally:
                pool.close()
                interrupts.settled(pool)


class _Worker:
    """A process, and what it has in hand."""

    def __init__(self, seat: int, process: subprocess.Popen[bytes], pipe: int) -> None:
        self.seat = seat
        self.process = process
        self.pipe = pipe
        self.task: int | None = None
        self._heard = b""

    def hear(self) -> list[str] | None:
        """The lines that it has said since; None where it is gone."""
        piece = os.read(self.pipe, _PIECE)
        if not piece:
            return None
        *lines, self._heard = (self._heard + piece).split(b"\n")
        return [x.decode("ascii", "replace") for x in lines]

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def bury(self) -> str:
        """Waits for its end, which has come or is near. Says how it ended."""
        os.close(self.pipe)
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()
        code = self.process.wait()
        if code >= 0:
            return f"exit code {code}"
        with suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
        return f"killed by signal {-code}"


class _Pool:
    """The workers of one run, and what they have done so far."""

    def __init__(
        self, made: Processes, given: Sequence[Task], count: int, folder: Path,
        ends: Ends | None, watch: Watch | None,
    ) -> None:  # fmt: skip
        self._made = made
        self._tasks = given
        self._folder = folder
        self._ends = ends
        self._watch = watch or Unwatched()
        self._watched = watch is not None
        self._count = count
        self._waiting = list(range(len(given)))[::-1]
        self._tries = [0] * len(given)
        self._done: dict[int, Finished] = {}
        self._workers: dict[int, _Worker] = {}
        self._heeded = False  # whether the selector waits for signals, too
        self._selector = selectors.DefaultSelector()
        self._end = len(given)  # tasks from here on do not count: one before them ended the run
        self._why: Failure | None = None
        self._stopped: Failure | None = None  # what tasks that were not begun say

    def result(self, number: int) -> Finished:
        """Waits for the result of a task, while all go on."""
        with interrupts.listening() as ear:
            self._heed(ear)
            while number not in self._done:
                if number >= self._end and self._why is not None:
                    return left_out(self._tasks[number], self._why)
                if self._stopped is not None and number in self._waiting:
                    return left_out(self._tasks[number], self._stopped)
                self._turn(_POLL)
                if ear.heard:
                    self._interrupt(ear)
            self._watch.hide()
        return self._done[number]

    def forget(self, number: int) -> None:
        """Frees what a result takes up."""
        self._done.pop(number, None)
        for kind in ("task", "out", "err", "result"):
            with suppress(OSError):
                (self._folder / f"{number}.{kind}").unlink()

    def close(self) -> None:
        """Ends all workers."""
        for worker in self._workers.values():
            worker.signal(signal.SIGTERM)
        self._drain(time.monotonic() + _GRACE)

    def kill(self) -> None:
        """Ends all workers in the middle of anything, so that each ends its target."""
        deadline = time.monotonic() + _HURRY
        running = [w.process for w in self._workers.values()]
        while running and time.monotonic() < deadline:
            running = [p for p in running if p.poll() is None]
            for process in running:
                process.terminate()  # the second one says that there is no time
            time.sleep(_PAUSE)
        for process in running:
            process.kill()

    def _heed(self, ear: interrupts.listening) -> None:
        if not self._heeded:
            self._heeded = True
            self._selector.register(ear.descriptor, selectors.EVENT_READ, None)

    def _turn(self, wait: float) -> None:
        """Gives out tasks, then takes what workers say."""
        if self._stopped is None:
            for seat in range(self._count):
                idle = self._workers.get(seat)
                if (idle is None or idle.task is None) and self._next() is not None:
                    self._give(idle or self._start(seat))
        for key, _ in self._selector.select(wait):
            worker: _Worker | None = key.data  # None: a signal, which `result` looks for
            if worker is not None and self._workers.get(worker.seat) is worker:
                self._heard(worker)

    def _next(self) -> int | None:
        while self._waiting and self._waiting[-1] >= self._end:
            self._waiting.pop()
        return self._waiting[-1] if self._waiting else None

    def _start(self, seat: int) -> _Worker:
        ours, theirs = os.pipe()
        made = self._made
        args = [made.root, str(self._folder), str(theirs), str(int(self._watched))]
        try:
            with interrupts.starting():
                process = subprocess.Popen(
                    [sys.executable, "-c", _BOOT, *args],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(theirs,),
                    env=environment(self._count, made.cores),
                    start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on
                )
                worker = self._workers[seat] = _Worker(seat, process, ours)
        except OSError as error:
            os.close(ours)
            raise ToolError(f"a worker cannot be started: {because(error)}", "use --jobs 1",
                            "environment") from None  # fmt: skip
        finally:
            os.close(theirs)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        return worker

    def _give(self, worker: _Worker) -> None:
        number = self._waiting.pop()
        self._tries[number] += 1
        try:
            (self._folder / f"{number}.task").write_text(
                tasks.written(self._tasks[number]), "ascii"
            )
        except OSError as error:
            raise ToolError(f"a task cannot be written: {because(error)}",
                            "set TMPDIR to a writable folder with free space",
                            "environment") from None  # fmt: skip
        worker.task = number
        self._watch.begin(worker.seat, self._tasks[number].name)
        assert worker.process.stdin is not None
        with suppress(BrokenPipeError):  # it is gone: its pipe will say so
            worker.process.stdin.write(b"%d\n" % number)
            worker.process.stdin.flush()

    def _heard(self, worker: _Worker) -> None:
        lines = worker.hear()
        if lines is None:
            self._lost(worker)
            return
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "at":
                with suppress(codec.CodecError):
                    self._watch.at(worker.seat, codec.loads(status.Status, rest))
            elif worker.task is not None:
                self._finish(worker, worker.task)

    def _finish(self, worker: _Worker, number: int) -> None:
        task, path = self._tasks[number], self._folder / str(number)
        worker.task = None
        self._watch.end(worker.seat)
        if number >= self._end:
            return
        result: object
        try:
            result = codec.loads(task.result, path.with_suffix(".result").read_text("ascii"))
        except (OSError, UnicodeDecodeError, codec.CodecError) as error:
            result = task.failed(Failure("internal", f"a worker's result cannot be read: {error}"))
        if task.interrupted(result) and self._stopped is None and self._again(number):
            return  # something interrupted the worker, and not the user
        self._keep(number, result)

    def _keep(self, number: int, result: object) -> None:
        out, err = (self._folder / f"{number}.{kind}" for kind in ("out", "err"))
        self._done[number] = Finished(self._tasks[number], result, printed=Printed(out, err))
        why = self._ends(result) if self._ends is not None else None
        if why is None:
            return
        self._end, self._why = number + 1, why
        for worker in self._workers.values():
            if worker.task is not None and worker.task >= self._end:
                worker.signal(signal.SIGTERM)

    def _again(self, number: int) -> bool:
        if self._tries[number] >= ATTEMPTS:
            return False
        self._waiting.append(number)
        return True

    def _lost(self, worker: _Worker) -> None:
        """A worker is gone. Another one takes its place, and its task."""
        self._selector.unregister(worker.pipe)
        del self._workers[worker.seat]
        how, number = worker.bury(), worker.task
        if number is None:
            return
        self._watch.end(worker.seat)
        if number >= self._end:
            return
        if self._stopped is not None:
            self._keep(number, self._cut_off(number))
        elif not self._again(number):
            self._keep(number, lost(self._tasks[number], how))

    def _cut_off(self, number: int) -> object:
        task = self._tasks[number]
        return task.failed(Failure(INTERRUPTED, f"interrupted while `{task.name}` was running"))

    def _interrupt(self, ear: interrupts.listening) -> None:
        """Begins nothing more, and has running tasks give what they have."""
        ear.rest()
        for worker in self._workers.values():
            worker.signal(ear.heard if worker.task is not None else signal.SIGTERM)
        self._drain(time.monotonic() + _GRACE, ear)

    def _drain(self, deadline: float, ear: interrupts.listening | None = None) -> None:
        """Takes what running tasks still give, until a time; then ends all workers.

        ear: where another signal comes by it, the user is in a hurry.
        """
        self._stopped = self._stopped or not_begun()
        hurried = False
        while self._workers and (left := deadline - time.monotonic()) > 0:
            if ear is not None and ear.again and not hurried:
                hurried, deadline = True, min(deadline, time.monotonic() + _HURRY)
                ear.rest()
                for worker in self._workers.values():
                    worker.signal(signal.SIGTERM)  # its second, too
                continue
            for worker in self._workers.values():
                if worker.task is None and worker.process.stdin is not None:
                    with suppress(OSError):
                        worker.process.stdin.close()  # it ends at once
            self._turn(min(left, _POLL))
        for worker in list(self._workers.values()):
            worker.signal(signal.SIGKILL)
            self._lost(worker)
