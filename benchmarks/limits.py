"""The limits of the machine, measured in the same run as the figures.

Copies of memory by one core and by all, and multiplications with additions in registers.
"""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


def cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Machine:
    """Copies and arithmetic, compiled. Raises ImportError where they do not compile."""

    def __init__(self) -> None:
        from benchmarks.frameworks.by_hand import build

        # One rounding for a product and a sum: kernels may not, but it is the machine's peak.
        os.environ["BENCH_CXXFLAGS"] = "-ffp-contract=fast"
        try:
            self.library = build(HERE / "limits.cpp")
        finally:
            del os.environ["BENCH_CXXFLAGS"]
        self.library.arithmetic.restype = ctypes.c_int64
        self.arrays: tuple[Any, Any] | None = None

    def copies(self, size: int, threads: int, repeat: int) -> list[float]:
        """Seconds of copies of that many float32 values, the faster way of two."""
        if self.arrays is None or self.arrays[0].size != size:
            self.arrays = np.ones(size, np.float32), np.zeros(size, np.float32)
        n, count = ctypes.c_int64(size), ctypes.c_int64(threads)
        given = [ctypes.c_void_p(a.ctypes.data) for a in self.arrays]
        found: dict[str, list[float]] = {}
        for name in ("copy", "copy_loop"):
            function = getattr(self.library, name)
            times = []
            for _ in range(repeat):
                start = time.perf_counter()
                function(n, *given, count)
                times.append(time.perf_counter() - start)
            found[name] = times
        return min(found.values(), key=median)

    def arithmetic(self, threads: int) -> float:
        """Operations a second, of several tries the best."""
        out = np.zeros(threads, np.float32)
        best = 0.0
        for _ in range(15):
            start = time.perf_counter()
            done = self.library.arithmetic(
                ctypes.c_int64(2_000_000), ctypes.c_int64(threads), ctypes.c_void_p(out.ctypes.data)
            )
            best = max(best, done * threads / (time.perf_counter() - start))
        return best

    def describe(self) -> dict[str, float]:
        """Bytes moved a second (read and written) and operations a second."""
        size, found = 10_000_000, {}
        for name, threads in (("one core", 1), ("all cores", cores())):
            self.copies(size, threads, 2)
            seconds = min(self.copies(size, threads, 9))
            found[f"copy, {name}"] = 8.0 * size / seconds
            found[f"arithmetic, {name}"] = self.arithmetic(threads)
        return found
