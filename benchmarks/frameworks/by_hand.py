"""Loops written by hand in C++, compiled with the flags of the engine's own kernels."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.case import Ready
from benchmarks.data import Springs, edges, random_springs, springs, values
from benchmarks.frameworks import Rows
from engine.compile.cpu.toolchain import find_toolchain

HERE = Path(__file__).resolve().parent


def build(source: Path) -> ctypes.CDLL:
    """Compiles a C++ file and loads it. Raises ImportError where there is no OpenMP or compiler.

    With the vector functions of the C library where there are any, else without. What else
    is to be tried is in $BENCH_CXXFLAGS.
    """
    toolchain = find_toolchain()
    folder = tempfile.mkdtemp(dir=os.environ.get("ENGINE_CACHE_DIR"))
    out = Path(folder) / f"{source.stem}.so"
    more = shlex.split(os.environ.get("BENCH_CXXFLAGS", ""))
    common = [*toolchain.command, "-O3", *toolchain.flags, "-fopenmp", *more]
    failed = ""
    for vector in (["-DBENCH_VECTOR_MATH=1"], ["-DBENCH_VECTOR_MATH=0"]):
        library = ["-lmvec"] if vector[0].endswith("1") else []
        command = [*common, *vector, str(source), "-o", str(out), *library, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.returncode:
            return ctypes.CDLL(str(out))
        failed = done.stderr[-300:]
    raise ImportError(f"{source.name} does not compile: {failed}")


class Loops:
    """The compiled file; arrays are given as they are."""

    def __init__(self) -> None:
        self.library = build(HERE / "by_hand.cpp")

    def call(self, name: str, *given: Any) -> Any:
        """A function of no arguments that calls one of the library."""
        function = getattr(self.library, name)
        function.restype = None
        kept = [self._argument(a) for a in given]
        return lambda: function(*kept)

    @staticmethod
    def _argument(a: Any) -> Any:
        if isinstance(a, np.ndarray):
            pointer = ctypes.c_void_p(a.ctypes.data)
            pointer.array = a  # type: ignore[attr-defined]  # keeps it alive
            return pointer
        return ctypes.c_float(a) if isinstance(a, float) else ctypes.c_int64(a)

    def ready(self, name: str, head: list[Any], out: Any, back: list[Any], wrt: list[Any]) -> Ready:
        """A forward function (`head`, then the result) and its backward one."""
        forward = self.call(name, *head, out)
        backward = self.call(f"{name}_back", *back)
        forward()
        outputs = [out.copy()]
        backward()
        return Ready(forward, backward, outputs, [a.copy() for a in wrt])


def _zeros(*arrays: Any) -> list[Any]:
    return [np.zeros_like(a) for a in arrays]


def rows() -> Rows:
    """What was written by hand."""
    loops = Loops()

    def saxpy(n: int) -> Ready:
        x, y, ones = values(n), values(n, 2), np.ones(n, np.float32)
        z, gx, gy = _zeros(x, x, x)
        return loops.ready("saxpy", [n, 2.5, x, y], z, [n, 2.5, ones, gx, gy], [gx, gy])

    def elementwise(n: int) -> Ready:
        x, ones = values(n), np.ones(n, np.float32)
        y, gx = _zeros(x, x)
        return loops.ready("elementwise", [n, x], y, [n, x, ones, gx], [gx])

    def nbody(n: int) -> Ready:
        x, mass, ones = values(3 * n), values(n, 2) + np.float32(1.5), np.ones(3 * n, np.float32)
        a, gx, gm = _zeros(x, x, mass)
        room = np.zeros(6 * n, np.float32)
        back = [n, x, mass, ones, room, gx, gm]
        return loops.ready("nbody", [n, x, mass, room], a, back, [gx, gm])

    def stencil(n: int) -> Ready:
        side = round(n**0.5)
        u, ones = values(side * side), np.ones(side * side, np.float32)
        out, gu = _zeros(u, u)
        return loops.ready("stencil", [side, side, u], out, [side, side, ones, gu], [gu])

    def scatter(n: int, drawn: Springs = springs) -> Ready:
        particles, first, second = drawn(n)
        x, seed = values(3 * particles), values(3 * particles, 4)
        force, gx = _zeros(x, x)
        back = [n, x, first, second, seed, gx]
        return loops.ready("springs", [n, x, first, second], force, back, [gx])

    def loop(n: int) -> Ready:
        x, ones = values(n), np.ones(n, np.float32)
        y, gx = _zeros(x, x)
        return loops.ready("loop", [n, 16, x], y, [n, 16, x, ones, gx], [gx])

    def cross(n: int) -> Ready:
        a, b = edges(n)
        o, ga, gb = _zeros(a, a, b)
        return loops.ready("cross", [n, a, b], o, [n, a, b, values(3 * n, 5), ga, gb], [ga, gb])

    def total(n: int) -> Ready:
        x, one = values(n), np.ones(1, np.float32)
        out, gx = _zeros(one, x)
        return loops.ready("total", [n, x], out, [n, x, one, gx], [gx])

    return {
        "saxpy": saxpy, "elementwise": elementwise, "nbody": nbody, "stencil": stencil,
        "springs": scatter, "random_springs": partial(scatter, drawn=random_springs),
        "loop": loop, "cross": cross, "sum": total,
    }  # fmt: skip
