"""Executor with a Ray cluster (extra `ray`): the one of $RAY_ADDRESS, or one on this machine.

A task needs the folder that adtool was started in, under the same name, on each machine of the
cluster, with the same packages. What programs print comes back with the results, up to `KEPT` bytes
of each stream.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from adtool import codec, interrupts, status, tasks
from adtool.executors import remote
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
from adtool.executors.processes import THREADS
from adtool.exits import ToolError
from adtool.report import Failure
from adtool.session import private_folder
from engine.classes import dataclass

KEPT = 8 << 20
_POLL = 0.5  # seconds between two looks at how far workers are
_GRACE = 6.0  # seconds that interrupted tasks get


def _ray() -> Any:
    import ray

    return ray


def make(jobs: int, root: str) -> Ray:
    """The executor. jobs: tasks at once, 0 for one a processor of the cluster.

    Raises ToolError where Ray is not installed.
    """
    try:
        _ray()
    except ImportError:
        raise ToolError("the executor `ray` needs Ray, which is not installed",
                        "pip install ray", "environment") from None  # fmt: skip
    return Ray(jobs, root)


@dataclass(frozen=True, slots=True)
class Ray:
    """jobs: tasks at once, 0 for one a processor. root: where adtool lies on each machine."""

    jobs: int
    root: str

    def run(
        self, tasks: Sequence[Task], *, ends: Ends | None = None, watch: Watch | None = None
    ) -> Iterator[Finished]:
        """See `Executor.run`. A cluster that the process is connected to already stays so.

        Raises ToolError where the cluster cannot be reached.
        """
        ray = _ray()
        own = not ray.is_initialized()
        if own:
            interrupts.undo_first(self, ray.shutdown)
            _connect(self.jobs)
        try:
            with private_folder() as folder:
                jobs = self.jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))
                cluster = _Cluster(self.root, tasks, jobs, folder, ends, watch)
                try:
                    for number in range(len(tasks)):
                        yield cluster.result(number)
                        cluster.forget(number)
                finally:
                    cluster.close()
        finally:
            if own:
                ray.shutdown()
                interrupts.settled(self)


def _connect(jobs: int) -> None:
    ray = _ray()
    address = os.environ.get("RAY_ADDRESS", "").strip()
    # Ray would warn at each start of what a future version does by itself.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not address:
        quiet |= {"include_dashboard": False, "num_cpus": jobs or None}
    try:
        ray.init(address=address or "local", **quiet)
    except Exception as error:  # of several kinds, by what fails
        said = (str(error).strip() or repr(error)).splitlines()[0]
        raise ToolError(
            f"no Ray cluster can be reached: {said}",
            "set RAY_ADDRESS to a cluster, or unset it to start one on this machine", "environment",
        ) from None  # fmt: skip


class _Cluster:
    """The tasks of one run, and what the cluster has done of them."""

    def __init__(
        self, root: str, given: Sequence[Task], jobs: int, folder: Path,
        ends: Ends | None, watch: Watch | None,
    ) -> None:  # fmt: skip
        ray = _ray()
        self._tasks = given
        self._folder = folder
        self._ends = ends
        self._watch = watch or Unwatched()
        self._board: Any = None if watch is None else remote.board()
        self._looked = 0.0
        self._seats = list(range(jobs))[::-1]
        self._next = 0
        self._end = len(given)
        self._why: Failure | None = None
        self._stopped: Failure | None = None
        self._done: dict[int, Finished] = {}
        self._running: dict[Any, tuple[int, int]] = {}  # what Ray gave: the task and its seat
        threads = os.environ.get(THREADS, "").strip() or "1"
        self._place = ray.put((root, os.getcwd(), threads, KEPT))
        self._run = remote.runner(ATTEMPTS - 1)

    def result(self, number: int) -> Finished:
        """Waits for the result of a task, while all go on."""
        with interrupts.listening() as ear:
            while number not in self._done:
                if number >= self._end and self._why is not None:
                    return left_out(self._tasks[number], self._why)
                if self._stopped is not None and number >= self._next:
                    return left_out(self._tasks[number], self._stopped)
                self._turn(_POLL)
                if ear.heard:
                    self._interrupt(ear)
            self._watch.hide()
        return self._done[number]

    def forget(self, number: int) -> None:
        """Frees what a result takes up."""
        self._done.pop(number, None)
        for kind in ("out", "err"):
            with suppress(OSError):
                (self._folder / f"{number}.{kind}").unlink()

    def close(self) -> None:
        """Ends what runs."""
        ray = _ray()
        for reference in self._running:
            with suppress(Exception):  # gone already, or the cluster is
                ray.cancel(reference)
        self._wait_for_all()

    def _turn(self, wait: float) -> None:
        ray = _ray()
        while self._stopped is None and self._seats and self._next < self._end:
            number, seat = self._next, self._seats.pop()
            self._next += 1
            self._watch.begin(seat, self._tasks[number].name)
            text = tasks.written(self._tasks[number])
            reference = self._run.remote(self._place, text, number, self._board)
            self._running[reference] = (number, seat)
        if not self._running:
            return
        ready, _ = ray.wait(list(self._running), num_returns=1, timeout=wait)
        for reference in ready:
            number, seat = self._running.pop(reference)
            self._watch.end(seat)
            self._seats.append(seat)
            if number < self._end:
                self._take(reference, number)
        self._look()

    def _look(self) -> None:
        """Tells how far tasks are."""
        ray = _ray()
        if self._board is None or time.monotonic() - self._looked < _POLL:
            return
        self._looked = time.monotonic()
        with suppress(Exception):  # the board is for looking at only, and may be lost
            said = ray.get(self._board.read.remote(), timeout=1.0)
            for number, seat in self._running.values():
                if number in said:
                    self._watch.at(seat, codec.loads(status.Status, said[number]))

    def _take(self, reference: Any, number: int) -> None:
        ray = _ray()
        task = self._tasks[number]
        cut = (0, 0)
        result: Any
        try:
            text, streams, cut = ray.get(reference)
            result = codec.loads(task.result, text)
            for kind, data in zip(("out", "err"), streams, strict=True):
                (self._folder / f"{number}.{kind}").write_bytes(data)
        except (ray.exceptions.TaskCancelledError, ray.exceptions.WorkerCrashedError,
                ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError,
                ray.exceptions.OutOfMemoryError) as error:  # fmt: skip
            if self._stopped is not None:
                words = f"interrupted while `{task.name}` was running"
                result = task.failed(Failure(INTERRUPTED, words))
            else:
                result = lost(task, type(error).__name__)
        except ray.exceptions.RayError as error:
            words = str(getattr(error, "cause", None) or error).strip()
            result = task.failed(
                Failure("environment", "a worker of the cluster cannot do this: "
                        + (words.splitlines() or ["?"])[-1],
                        "each machine needs this folder and the same packages")
            )  # fmt: skip
        except (OSError, codec.CodecError) as error:
            result = task.failed(Failure("internal", f"a worker's result cannot be read: {error}"))
        printed = Printed(self._folder / f"{number}.out", self._folder / f"{number}.err", cut)
        self._done[number] = Finished(task, result, printed=printed)
        why = None if self._ends is None else self._ends(result)
        if why is not None:
            self._end, self._why = number + 1, why
            self._cancel(number + 1)

    def _cancel(self, first: int = 0) -> None:
        ray = _ray()
        for reference, (number, _) in self._running.items():
            if number >= first:
                with suppress(Exception):
                    ray.cancel(reference)

    def _interrupt(self, ear: interrupts.listening) -> None:
        if self._stopped is None:
            self._stopped = not_begun()
            self._cancel()
            self._wait_for_all(ear)

    def _wait_for_all(self, ear: interrupts.listening | None = None) -> None:
        """Gives interrupted tasks a while. What is left then, the end of the cluster ends."""
        self._stopped = self._stopped or not_begun()
        deadline = time.monotonic() + _GRACE
        while self._running and time.monotonic() < deadline and not (ear and ear.again):
            self._turn(_POLL)
        for number, _ in self._running.values():
            task = self._tasks[number]
            words = f"interrupted while `{task.name}` was running"
            self._done[number] = Finished(task, task.failed(Failure(INTERRUPTED, words)))
        self._running.clear()
