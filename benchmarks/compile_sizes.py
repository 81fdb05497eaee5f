"""Measures how long large kernels take to compile, forward and adjoint.

    python -m benchmarks.compile_sizes     a few minutes; writes COMPILE.md

Each program is compiled in a fresh process with an empty kernel cache: the time of its first
launch, and of the first gradient after it. Imports are not counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import describe
from benchmarks.table import seconds, table

HERE = Path(__file__).resolve().parent
HEAD = "import engine as wp\n\n\n"
KERNEL = """@wp.kernel
def program(x: wp.array(dtype={t}), n: int, y: wp.array(dtype={t})):
    i = wp.tid()
    v = x[i]
{body}
    y[i] = v
"""
LIMIT = 5.0  # seconds


def kernel(lines: list[str], t: str = "float", before: str = "") -> str:
    """A module with a kernel of these lines, which change `v`."""
    body = "\n".join(f"    {line}" for line in lines)
    return HEAD + before + KERNEL.format(t=t, body=body)


def waves(count: int) -> list[str]:
    """Statements that each need the one before."""
    return [f"v = wp.sin(v * {1.0 + k / count:.4f}) + {0.001 * k:.4f}" for k in range(count)]


def choice(ways: int = 60, count: int = 100) -> str:
    """A chain of `elif`, then straight code."""
    chain = []
    for k in range(ways):
        chain += [f"{'elif' if k else 'if'} n == {k}:", f"    v = v * {1.0 + 0.01 * k:.2f}"]
    return kernel([*chain, *waves(count)])


def calls(depth: int = 11) -> str:
    """Functions that each call the one before twice: 2**depth calls of the first one."""
    made = ["@wp.func\ndef f0(v: float):\n    return wp.sin(v)\n"]
    for k in range(1, depth + 1):
        inner = f"f{k - 1}(v) * 0.5 + f{k - 1}(v * 0.5)"
        made.append(f"@wp.func\ndef f{k}(v: float):\n    return {inner}\n")
    return kernel([f"v = f{depth}(v)"], before="\n\n".join(made) + "\n\n")


def straight(count: int = 300) -> str:
    """Straight code on numbers."""
    return kernel(waves(count))


def vectors(count: int = 300) -> str:
    """Straight code on vectors."""
    lines = [
        f"v = wp.cross(v, wp.vec3(1.0, {0.001 * k:.3f}, 0.5)) * 0.5 + v"
        if k % 2
        else f"v = v * wp.sin(wp.dot(v, v) + {0.001 * k:.3f})"
        for k in range(count)
    ]
    return kernel(lines, "wp.vec3")


def looped(count: int = 300) -> str:
    """The same as a loop's body, whose number of iterations is known when it runs."""
    return kernel(["for _k in range(n):", *(f"    {line}" for line in waves(count))])


PROGRAMS: dict[str, tuple[str, Callable[..., str]]] = {
    "choice": ("60 branches of `elif`, then 100 statements", choice),
    "calls": ("calls 11 deep, two in each function", calls),
    "straight": ("300 statements in a row", straight),
    "vectors": ("300 statements on `vec3`", vectors),
    "looped": ("300 statements in a dynamic loop", looped),
}


def processor() -> float:
    """Seconds that the processor spent on this process and on compilers that it ran."""
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def first_runs(path: Path) -> tuple[float, float, float]:
    """Seconds of the first launch of a module's kernel, and of the first gradient after it.

    Then the processor's seconds for both.
    """
    import numpy as np

    import engine as wp

    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    t = wp.vec3 if "dtype=wp.vec3" in path.read_text(encoding="utf-8") else float
    shape = (4, 3) if t is wp.vec3 else (4,)
    x, y = (wp.array(np.full(shape, 0.3), dtype=t, requires_grad=True) for _ in range(2))
    start, busy = time.perf_counter(), processor()
    wp.launch(module.program, dim=4, inputs=[x, 2], outputs=[y])
    middle = time.perf_counter()
    with wp.Tape() as tape:
        wp.launch(module.program, dim=4, inputs=[x, 2], outputs=[y])
    tape.backward(grads={y: np.ones(shape, np.float32)})
    end, busy = time.perf_counter(), processor() - busy
    if x.grad is None or not np.all(np.isfinite(x.grad.numpy())):
        raise RuntimeError("the gradient is not finite")
    return middle - start, end - middle, busy


def measure(text: str, rounds: int) -> tuple[float, ...]:
    """Medians of `first_runs`, each in a fresh process with an empty cache."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.py"
            path.write_text(text, encoding="utf-8")
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.compile_sizes", "--one", str(path)],
                env={**os.environ, "PYTHONPATH": str(HERE.parent),
                     "ENGINE_CACHE_DIR": str(Path(folder) / "kernels")},
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            found.append(json.loads(done.stdout.splitlines()[-1]))
    return tuple(median(column) for column in zip(*found, strict=True))


def page(rows: list[tuple[str, tuple[float, ...]]], machine: dict[str, Any], rounds: int) -> str:
    """The measurements as a markdown page."""
    shown = [[title, *map(seconds, (f, a, f + a, cpu))] for title, (f, a, cpu) in rows]
    slow = [title for title, (f, a, _) in rows if f + a >= LIMIT]
    verdict = f"over {LIMIT:g} s: {'; '.join(slow)}" if slow else f"all are under {LIMIT:g} s"
    load = os.getloadavg()[1] / (os.cpu_count() or 1)
    parts = [
        "# Compile time of large kernels",
        ", ".join(f"{key}: {value}" for key, value in machine.items()) + ".",
        f"Measured by `python -m benchmarks.compile_sizes`: medians of {rounds} fresh processes "
        "with an empty kernel cache. *Forward* is the first launch; *adjoint* is a launch on a "
        "tape and its backward pass after that; *CPU* is user and system time of both, compilers "
        f"included. *Together* is by the clock: {verdict}. Load for each core in the last five "
        f"minutes: {load:.1f}.",
        table(["kernel", "forward", "adjoint", "together", "CPU"], shown),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--one", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(first_runs(Path(options.one))))
        return 0
    rows = []
    for name, (title, write) in PROGRAMS.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows.append((title, measure(write(), options.rounds)))
    text = page(rows, describe(), options.rounds)
    print(text)
    (HERE / "COMPILE.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
