"""A process that holds one framework and times what it is told to, one JSON line at a time.

Commands: {"make": case, "size": n}, {"time": "forward" | "backward", "repeat": k},
{"copy": n, "repeat": k}, {"threads": n} (`engine` alone), {"peak": true}. Each is answered by one
JSON line. What frameworks print goes to standard error.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

from cases import CASES, Case, Ready


def load(kernels: str) -> tuple[Any, Any]:
    """The framework's module and a module of kernels written for it."""
    wp = importlib.import_module(os.environ["BENCH_FRAMEWORK"])
    if wp.__name__ == "warp":
        wp.config.quiet = True
        wp.config.kernel_cache_dir = os.environ["WARP_CACHE_PATH"]
        wp.init()
    importlib.import_module(f"{wp.__name__}.autograd")
    return wp, importlib.import_module(kernels)


def timed(call: Callable[[], Any], repeat: int, inner: int) -> list[float]:
    """Seconds of one call, `repeat` times; each is the mean of `inner` calls in a row."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(inner):
            call()
        times.append((time.perf_counter() - start) / inner)
    return times


def summary(arrays: list[Any]) -> list[list[float]]:
    """Sum and sum of magnitudes of each array in float64, to compare two frameworks."""
    values = [np.asarray(a.numpy(), dtype=np.float64) for a in arrays]
    return [[float(v.sum()), float(np.abs(v).sum())] for v in values]


def _case(name: str) -> Case:
    """The case of that name; those with other frameworks are loaded where they are asked for."""
    for c in CASES:
        if c.name == name:
            return c
    from interop_cases import INTEROP

    return next(c for c in INTEROP if c.name == name)


class Worker:
    """Answers commands; holds the arrays of one case at a time."""

    def __init__(self) -> None:
        self.wp, self.kernels = load("kernels")
        self.ready: Ready | None = None
        self.inner = 1

    def make(self, name: str, size: int) -> dict[str, Any]:
        """Makes a case, compiles it, and sums up its results after one call of each pass."""
        self.ready = None
        gc.collect()
        case = _case(name)
        ready = case.make(self.wp, self.kernels, size)
        self.inner = case.inner
        outputs = summary(ready.outputs)
        if ready.backward is not None:
            ready.backward()
        self.ready = ready
        return {
            "outputs": outputs,
            "gradients": summary(ready.gradients),
            "backward": ready.backward is not None,
        }

    def time(self, which: str, repeat: int) -> list[float]:
        """Seconds of one pass of the case at hand."""
        if self.ready is None:
            raise RuntimeError("no case was made")
        call = self.ready.forward if which == "forward" else self.ready.backward
        if call is None:
            raise RuntimeError(f"the case has no {which} pass")
        return timed(call, repeat, self.inner)

    def answer(self, command: dict[str, Any]) -> Any:
        """Carries out one command."""
        if "make" in command:
            return self.make(command["make"], command["size"])
        if "threads" in command:
            self.wp.config.num_threads = command["threads"]
            return None
        if "peak" in command:
            # Of the process so far; kilobytes, but on macOS bytes.
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            return peak * (1 if sys.platform == "darwin" else 1024)
        if "copy" in command:
            source = np.ones(command["copy"], dtype=np.float32)
            target = np.zeros_like(source)
            return timed(lambda: np.copyto(target, source), command["repeat"], 1)
        return self.time(command["time"], command["repeat"])


def main(commands: TextIO, answers: TextIO) -> None:
    """Answers until the commands end."""
    worker = Worker()
    for line in commands:
        answers.write(json.dumps(worker.answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main(sys.stdin, own)
