"""Processes that hold one framework each, and measurements that need fresh processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

HERE = Path(__file__).resolve().parent
FRAMEWORKS = ("engine", "warp")


def environment(framework: str, cache: str) -> dict[str, str]:
    """The environment of a worker: which framework, and a kernel cache of its own."""
    path = os.pathsep.join([str(HERE), str(HERE.parent)])
    return {
        **os.environ,
        "BENCH_FRAMEWORK": framework,
        "ENGINE_CACHE_DIR": cache,
        "WARP_CACHE_PATH": cache,
        "PYTHONPATH": path,
    }


class Peer:
    """A worker process for one framework, with an empty kernel cache. A context manager."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self._cache = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py")],
            env=environment(framework, self._cache.name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def settle(self, number: int) -> None:
        """Keeps its main thread on one core, by number, where the system can; others stay free."""
        if hasattr(os, "sched_setaffinity"):
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(self._process.pid, {cores[number % len(cores)]})

    def ask(self, command: dict[str, Any]) -> Any:
        """Sends a command and waits for its answer. Raises RuntimeError where the worker died."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the worker has no pipes")
        stdin.write(json.dumps(command) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.framework} died at {command}")
        return json.loads(line)

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._cache.cleanup()


def _probe(framework: str, cache: str) -> float:
    done = subprocess.run(
        [sys.executable, str(HERE / "compile_probe.py")],
        env=environment(framework, cache),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout)


def compile_times(frameworks: tuple[str, ...], rounds: int) -> dict[str, dict[str, float]]:
    """Seconds from first launch to first gradient of a 3-kernel module, cold and warm."""
    times: dict[str, dict[str, list[float]]] = {f: {"cold": [], "warm": []} for f in frameworks}
    for _ in range(rounds):
        for framework in frameworks:
            with tempfile.TemporaryDirectory() as cache:
                for state in ("cold", "warm"):
                    times[framework][state].append(_probe(framework, cache))
    return {f: {state: median(t) for state, t in by.items()} for f, by in times.items()}
