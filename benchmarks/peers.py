"""Processes that hold one framework each."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.place import VARIABLE

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 180.0  # seconds that a command may take


class Failure(RuntimeError):
    """A command failed, took too long, or ended the worker."""


def environment(framework: str, cache: str) -> dict[str, str]:
    """The environment of a worker: which framework, and kernel caches of its own.

    Threads of OpenMP sleep between calls: they would take the cores from who comes next.
    """
    return {
        **os.environ,
        "BENCH_FRAMEWORK": framework,
        "ENGINE_CACHE_DIR": cache,
        "WARP_CACHE_PATH": cache,
        "NUMBA_CACHE_DIR": cache,
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PLATFORMS": "cpu" if os.environ.get(VARIABLE, "cpu") == "cpu" else "cuda",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TI_OFFLINE_CACHE_FILE_PATH": cache,
        "TI_ENABLE_TORCH": "0",
        "ENABLE_TAICHI_HEADER_PRINT": "False",
        "OMP_WAIT_POLICY": "passive",
        "PYTHONPATH": str(ROOT),
    }


def placeless(text: str) -> str:
    """A message without the folders of files, which are those of this machine."""
    return re.sub(r"(/[^\s/:'\"]+)+/", "", text)


class Peer:
    """A worker process for one framework, with an empty kernel cache. A context manager.

    It is started at its first command, and again after it died; the cache stays.
    """

    def __init__(self, framework: str, quiet: bool = False) -> None:
        self.framework = framework
        self.quiet = quiet
        self._cache = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener: threading.Thread | None = None

    def _start(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.worker"],
                env=environment(self.framework, self._cache.name),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if self.quiet else None,
                text=True,
            )
            self._lines = queue.SimpleQueue()
            self._listener = threading.Thread(
                target=self._listen, args=(self._process, self._lines), daemon=True
            )
            self._listener.start()
        return self._process

    @staticmethod
    def _listen(process: subprocess.Popen[str], lines: queue.SimpleQueue[str]) -> None:
        if process.stdout is not None:
            with process.stdout as answers:
                for line in answers:
                    lines.put(line)
        lines.put("")

    def settle(self, number: int) -> None:
        """Keeps its main thread on one core, by number, where the system can; others stay free."""
        if hasattr(os, "sched_setaffinity"):
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(self._start().pid, {cores[number % len(cores)]})

    def ask(self, command: dict[str, Any], limit: float = LIMIT) -> Any:
        """Sends a command and waits for its answer. Raises Failure, and ends a silent worker."""
        process = self._start()
        if process.stdin is None:
            raise Failure("the worker has no pipes")
        try:
            process.stdin.write(json.dumps(command) + "\n")
            process.stdin.flush()
            line = self._lines.get(timeout=limit)
        except (OSError, queue.Empty) as e:
            self.close(at_once=True)
            why = f"no answer in {limit:g} s" if isinstance(e, queue.Empty) else "died"
            raise Failure(f"{self.framework} at {command}: {why}") from None
        if not line:
            self.close(at_once=True)
            raise Failure(f"{self.framework} died at {command}")
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            raise Failure(placeless(answer["error"]))
        return answer

    def close(self, at_once: bool = False) -> None:
        """Ends the worker; the next command starts another one."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            try:
                process.stdin.close()
            except OSError:
                at_once = True
        try:
            process.wait(timeout=0.0 if at_once else 30.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._listener is not None:
            self._listener.join(timeout=10.0)

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(at_once=kind is not None)
        self._cache.cleanup()
