"""A process that holds one framework and times what it is told to, one JSON line at a time.

Commands, each answered by one JSON line:

    {"load": true}                           imports the framework
    {"make": case, "size": n}                makes the arrays, compiles, sums up the results
    {"pace": pass, "seconds": s}             how often a call fits into that time
    {"time": pass, "repeat": k, "inner": m}  k samples, each the mean of m calls
    {"copy": n, "repeat": k, "cores": c}     copies of n float32 values (no cores: by NumPy; on a
                                             GPU: in its memory)
    {"limits": true}                         what the machine can do (`c++` alone)
    {"threads": n}                           for launches of `engine`
    {"peak": true}                           bytes of the process so far
    {"grow": n}                              bytes that each of n recorded launches takes
    {"drop": true}                           lets go of the arrays

A command that fails is answered by {"error": message}. A pass is "forward" or "backward". What
frameworks print goes to standard error.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

from benchmarks.case import Ready
from benchmarks.cases import case_named
from benchmarks.frameworks import Rows, load, version, waiter
from benchmarks.place import ON_GPU

# Seconds: what is shorter is called several times in a row. To wait for a GPU takes a while.
SAMPLE = 1e-2 if ON_GPU else 1e-3


def ended(result: object) -> None:
    """On the CPU a call has ended when it returns."""


def timed(
    call: Callable[[], Any], repeat: int, inner: int, wait: Callable[[Any], object] = ended
) -> list[float]:
    """Seconds of one call, `repeat` times; each is the mean of `inner` calls in a row.

    wait: what a sample ends with; it is given the last result.
    """
    times = []
    found: Any = None
    wait(found)
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(inner):
            found = call()
        wait(found)
        times.append((time.perf_counter() - start) / inner)
    return times


def summary(arrays: list[Any]) -> list[list[float]]:
    """Sum and sum of magnitudes of each array in float64, to compare frameworks."""
    read = (a.numpy() if hasattr(a, "numpy") else a for a in arrays)
    values = [np.asarray(a, dtype=np.float64) for a in read]
    return [[float(v.sum()), float(np.abs(v).sum())] for v in values]


class Worker:
    """Answers commands; holds the arrays of one case at a time."""

    def __init__(self) -> None:
        self.name = os.environ["BENCH_FRAMEWORK"]
        self._rows: Rows | None = None
        self._machine: Any = None
        self.ready: Ready | None = None
        self.inner = 1
        self.wait: Callable[[Any], object] = ended

    @property
    def rows(self) -> Rows:
        """What the framework can do; it is imported when this is first asked."""
        if self._rows is None:
            self._rows = load(self.name)
            if ON_GPU:
                self.wait = waiter(self.name)
        return self._rows

    @property
    def machine(self) -> Any:
        """What measures copies and arithmetic."""
        if self._machine is None:
            from benchmarks.limits import Machine

            self._machine = Machine()
        return self._machine

    def drop(self) -> None:
        """Lets go of the arrays."""
        self.ready = None
        gc.collect()

    def make(self, name: str, size: int) -> dict[str, Any]:
        """Makes a case, compiles it, and sums up its results after one call of each pass."""
        self.drop()
        if name not in self.rows:
            return {"cannot": True, "passes": []}
        self.inner = case_named(name).inner
        ready = self.rows[name](size)
        outputs = summary(ready.outputs)
        if ready.backward is not None:
            ready.backward()
        self.ready = ready
        return {
            "outputs": outputs,
            "gradients": summary(ready.gradients),
            "passes": ["forward"] + ["backward"] * (ready.backward is not None),
        }

    def call(self, which: str) -> Callable[[], Any]:
        """The pass of the case at hand."""
        if self.ready is None:
            raise RuntimeError("no case was made")
        call = self.ready.forward if which == "forward" else self.ready.backward
        if call is None:
            raise RuntimeError(f"the case has no {which} pass")
        return call

    def pace(self, which: str, seconds: float) -> dict[str, Any]:
        """Warms up, and says how many samples of how many calls fill that time."""
        call = self.call(which)
        once = min(timed(call, 1 if self.inner == 1 else 2, self.inner, self.wait))
        if once < SAMPLE:
            once = min(timed(call, 2, self.inner, self.wait))
        inner = max(self.inner, min(1000, math.ceil(SAMPLE / max(once, 1e-9))))
        return {"inner": inner, "repeat": max(1, int(seconds / (once * inner))), "once": once}

    def grow(self, count: int) -> list[float]:
        """Bytes that recorded launches take, each; several times."""
        from benchmarks.processes import resident

        record = self.rows["launches"](count).forward
        tapes, found = [], []
        for _ in range(3):
            gc.collect()
            before = resident()
            tapes.append(record())
            gc.collect()
            found.append((resident() - before) / count)
        if not any(found):
            raise RuntimeError("the system does not say how much memory a process has")
        return found

    def answer(self, command: dict[str, Any]) -> Any:
        """Carries out one command."""
        if "load" in command:
            return {"rows": sorted(self.rows), "version": version(self.name)}
        if "make" in command:
            return self.make(command["make"], command["size"])
        if "pace" in command:
            return self.pace(command["pace"], command["seconds"])
        if "copy" in command:
            size, repeat = command["copy"], command["repeat"]
            if ON_GPU:
                from benchmarks.frameworks.with_cupy import copies

                return copies(size, repeat)
            if command.get("cores"):
                return self.machine.copies(size, command["cores"], repeat)
            source = np.ones(size, dtype=np.float32)
            target = np.zeros_like(source)
            return timed(lambda: np.copyto(target, source), repeat, 1)
        if "limits" in command:
            return self.machine.describe()
        if "threads" in command:
            importlib.import_module("engine").config.num_threads = command["threads"]
            return None
        if "peak" in command:
            # Of the process so far; kilobytes, but on macOS bytes.
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            return peak * (1 if sys.platform == "darwin" else 1024)
        if "grow" in command:
            return self.grow(command["grow"])
        if "drop" in command:
            return self.drop()
        inner = command.get("inner") or self.inner
        return timed(self.call(command["time"]), command["repeat"], inner, self.wait)


def main(commands: TextIO, answers: TextIO) -> None:
    """Answers until the commands end."""
    worker = Worker()
    for line in commands:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as e:  # whatever a framework raises is a row of its own
            worker.drop()
            answer = {"error": f"{type(e).__name__}: {str(e).strip()[:300]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main(sys.stdin, own)
