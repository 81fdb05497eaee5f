"""Measures what watching a program costs, and writes benchmarks/TRACKING.md.

    python -m benchmarks.tracking            all rows, some minutes
    python -m benchmarks.tracking --rounds 3

Each row is one program, run in turn without and with what is measured, in one process: medians of
several rounds. A ratio compares times of one round, and the median of ratios is shown.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import engine as wp
from benchmarks.machine import describe
from benchmarks.table import table
from benchmarks.tracking_kernels import advance, advance_in_place, forces, kick, total
from engine.autograd import Witness

HERE = Path(__file__).resolve().parent


def floats(n: int) -> Any:
    return wp.array(np.linspace(0.1, 1.0, n), dtype=float, requires_grad=True)


def zeros(n: int) -> Any:
    return wp.zeros(n, dtype=float, requires_grad=True)


@dataclass(frozen=True)
class Program:
    """What is run. start: makes the arrays; steps: launches; then the loss, and backward."""

    title: str
    n: int
    launches: int
    start: Callable[[int, int], list[Any]]
    step: Callable[[int, list[Any]], None]


def arrays(n: int, steps: int) -> list[Any]:
    return [floats(n), floats(n)]


def new_arrays(k: int, s: list[Any]) -> None:
    x, v = zeros(s[0].size), zeros(s[0].size)
    wp.launch(advance, x.size, [s[0], s[1]], [x, v])
    s[:2] = x, v


def rows(n: int, steps: int) -> list[Any]:
    made = [wp.zeros((steps + 1, n), dtype=float, requires_grad=True) for _ in "xv"]
    for a in made:
        a[0].assign(np.linspace(0.1, 1.0, n).astype(np.float32))
    return [made[0][0], made[1][0], *made]


def next_row(k: int, s: list[Any]) -> None:
    x, v = s[2][k + 1], s[3][k + 1]
    wp.launch(advance, x.size, [s[0], s[1]], [x, v])
    s[:2] = x, v


def in_place(k: int, s: list[Any]) -> None:
    wp.launch(advance_in_place, s[0].size, [s[0], s[1]])


def with_scratch(n: int, steps: int) -> list[Any]:
    return [floats(n), floats(n), zeros(n)]


def overwritten(k: int, s: list[Any]) -> None:
    if k % 2 == 0:
        wp.launch(forces, s[0].size, [s[0], s[1], s[2]])
        return
    x, v = zeros(s[0].size), zeros(s[0].size)
    wp.launch(kick, x.size, [s[0], s[1], s[2]], [x, v])
    s[:2] = x, v


def programs(quick: bool = False) -> list[Program]:
    """quick: small enough for a test."""
    long, large = (20, 1_000) if quick else (1_000, 1_000_000)
    return [
        Program("roll-out, an array a step", 64, long, arrays, new_arrays),
        Program("roll-out, a row of one array a step", 64, long, rows, next_row),
        Program("state in place", 64, long, arrays, in_place),
        Program("one force array for all steps", 64, long, with_scratch, overwritten),
        Program("large, an array a step", large, 6, arrays, new_arrays),
        Program("large, state in place", large, 6, arrays, in_place),
        Program("large, one force array for all steps", large, 6, with_scratch, overwritten),
    ]


def once(p: Program) -> tuple[float, float]:
    """Seconds of recording and of the backward pass."""
    s, loss = p.start(p.n, p.launches), zeros(1)
    gc.collect()
    begin = time.perf_counter()
    with wp.Tape() as tape:
        for k in range(p.launches):
            p.step(k, s)
        wp.launch(total, p.n, [s[0]], [loss])
    middle = time.perf_counter()
    tape.backward(loss)
    return middle - begin, time.perf_counter() - middle


def watched(p: Program, witness: bool) -> tuple[float, float]:
    with wp.capturing(watcher=Witness() if witness else None):
        return once(p)


def tracking(p: Program, rounds: int) -> list[str]:
    """A row: forward and backward, alone, with a capture, and with the witness."""
    once(p), watched(p, False), watched(p, True)
    found = []
    for _ in range(rounds):
        found.append((once(p), watched(p, False), watched(p, True)))
    cells = []
    for way in range(3):
        forward, backward = (median(x) * 1e3 for x in zip(*(f[way] for f in found), strict=True))
        cells.append(f"{forward:.3g} + {backward:.3g} ms")
    forward = median(w[0] / f[0] for f, _, w in found)
    whole = median(sum(w) / sum(f) for f, _, w in found)
    return [p.title, f"{p.launches:,} x {p.n:,}", *cells, f"{forward:.2f}", f"{whole:.2f}"]


@contextmanager
def verifying() -> Iterator[None]:
    wp.config.verify_autograd_array_access = True
    try:
        yield
    finally:
        wp.config.verify_autograd_array_access = False


def taped(a: Any, out: Any, count: int) -> float:
    """Seconds of a launch on a tape, of which nothing is overwritten."""
    tape = wp.Tape()
    gc.collect()
    with tape:
        begin = time.perf_counter()
        for k in range(count):
            wp.launch(forces, out[0].size, [a, a, out[k]])
        seconds = time.perf_counter() - begin
    return seconds / count


def flag(n: int, count: int, rounds: int) -> list[str]:
    """A row: a launch on a tape with and without the check of accesses."""
    a, out = floats(n), [zeros(n) for _ in range(count)]
    ratios, times = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it has nothing to say here
        taped(a, out, count)
        for _ in range(rounds):
            plain = taped(a, out, count)
            with verifying():
                checked = taped(a, out, count)
            times.append((plain, checked))
            ratios.append(checked / plain)
    before, after = (median(x) * 1e6 for x in zip(*times, strict=True))
    return [f"{n:,}", f"{before:.3g} us", f"{after:.3g} us", f"{100 * (median(ratios) - 1):+.1f} %"]


def views(n: int, count: int, rounds: int) -> list[str]:
    """A row: a launch on a tape that reads an array of which a NumPy view is alive."""
    a, out = floats(n), [zeros(n) for _ in range(count)]
    taped(a, out, count)
    ratios, times = [], []
    for _ in range(rounds):
        b = floats(n)
        plain = taped(b, out, count)
        view = a.numpy()
        seen = taped(a, out, count)
        assert view.size == n
        del view
        times.append((plain, seen))
        ratios.append(seen / plain)
    before, after = (median(x) * 1e6 for x in zip(*times, strict=True))
    size = f"{n * 4 / 1e6:.3g} MB"
    return [size, f"{before:.4g} us", f"{after:.4g} us", f"{median(ratios):.2f}"]


def page(rounds: int, quick: bool = False) -> str:
    """All tables."""
    machine = ", ".join(f"{k}: {v}" for k, v in describe().items() if k != "warp-lang")
    launches, large = (20, 1_000) if quick else (1_000, 4_000_000)
    tracked = [tracking(p, rounds) for p in programs(quick)]
    flags = [flag(n, launches if n < 1000 else 10, 3 * rounds)
             for n in ((64,) if quick else (64, 1_000_000))]  # fmt: skip
    lent = [views(large, 5, 3 * rounds)]
    return f"""# What watching costs

{machine}.

Measured by `python -m benchmarks.tracking`: medians of {rounds} rounds ({3 * rounds} for the last
two tables). In each round, the variants of a program take turns in one process. The machine is
shared and noisy: times of two runs of this page differ by more than a half, ratios by less.

## `adtool check`: overwritten arrays, broken paths, stale gradients

These tables show the cost that `engine.capturing(watcher=engine.autograd.Witness())` adds to a
program that records launches (forward) and runs backward. In each sum, the first time is forward
and the second backward. *Capture* copies arrays that launches read, for the checks of launches.
*Witness* also looks for faults between launches. Ratios compare the program with the witness to the
program alone; the target is at most 3. With tiny launches, the table measures Python, and the cost
is linear in the number of launches. If a value is lost, the adjoint of its launch runs twice more,
once for each kernel and place. In a program of few large launches, that is most of the time of the
backward pass.

{
        table(
            [
                "program",
                "launches x floats",
                "alone",
                "with capture",
                "with witness",
                "ratio, forward",
                "ratio, both",
            ],
            tracked,
        )
    }

## `config.verify_autograd_array_access`

A launch on a tape reads two arrays and writes one. The target is at most 10 %.

{table(["floats", "without", "with", "added"], flags)}

## A NumPy view that is alive

A launch on a tape, outside of `adtool`, reads an array while the program holds a NumPy view of it.
The engine copies nothing for the view.

{table(["array", "no view", "view", "ratio"], lent)}
"""


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    text = page(options.rounds)
    print(text)
    (HERE / "TRACKING.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
