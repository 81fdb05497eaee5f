"""Measures launches on one core and on all of them, and writes benchmarks/CORES.md.

    python -m benchmarks.cores            all rows of kernels, some minutes
    python -m benchmarks.cores --only nbody

One process makes a case; passes on one thread and on as many as there are cores take turns. The
limit of the machine is measured between them: how much more arithmetic that many processes, which
share nothing, do in a given time than one of them alone.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.case import Case
from benchmarks.cases import CASES
from benchmarks.machine import describe
from benchmarks.peers import Peer

HERE = Path(__file__).resolve().parent
PASSES = ("forward", "backward")
# What is arithmetic in the main, and in which passes; the rest waits for memory.
ARITHMETIC = {"elementwise": PASSES, "nbody": PASSES, "loop": PASSES, "maximum": PASSES}


def spin(seconds: float, out: Any = None) -> int:
    """Rounds of arithmetic that a process does in a time."""
    end, rounds, x = time.perf_counter() + seconds, 0, 0.5
    while time.perf_counter() < end:
        for _ in range(1000):
            x = math.sin(x) + 0.5
        rounds += 1
    if out is not None:
        out.put(rounds)
    return rounds


def machine_limit(cores: int, seconds: float = 0.5) -> float:
    """How much more that many processes do at once than one of them alone."""
    alone = spin(seconds)
    found: Any = multiprocessing.Queue()
    spinning = [multiprocessing.Process(target=spin, args=(seconds, found)) for _ in range(cores)]
    for p in spinning:
        p.start()
    together = sum(found.get() for _ in spinning)
    for p in spinning:
        p.join()
    return float(together / alone)


def measure(peer: Peer, case: Case, cores: int, rounds: int) -> dict[str, Any]:
    """Seconds of each pass for each number of threads."""
    made = peer.ask({"make": case.name, "size": case.size})
    row: dict[str, Any] = {}
    for which in PASSES if "backward" in made["passes"] else PASSES[:1]:
        times: dict[int, list[float]] = {1: [], cores: []}
        limits = []
        for _ in range(rounds):
            for count in times:
                peer.ask({"threads": count})
                times[count] += peer.ask({"time": which, "repeat": 3})
            limits.append(machine_limit(cores))
        row[which] = (median(times[1]), median(times[cores]), median(limits))
    return row


def page(rows: list[tuple[Case, dict[str, Any]]], cores: int) -> str:
    """The table."""
    machine = ", ".join(f"{k}: {v}" for k, v in describe().items())
    out = [
        "# Launches on several cores", "", f"{machine}.", "",
        f"Measured by `python -m benchmarks.cores`: medians of one thread and of {cores} "
        "threads, which take turns in one process. *Machine* is the speed-up of the machine "
        "itself: the arithmetic of as many independent processes at once, relative to one "
        "process, measured between the rounds of the row. Results are the same bit for bit.", "",
        f"| what | size | pass | work | 1 thread | {cores} threads | times faster | machine |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for case, row in rows:
        for which, (one, all_, limit) in row.items():
            work = "arithmetic" if which in ARITHMETIC.get(case.name, ()) else "memory"
            out.append(
                f"| {case.title} | {case.size:,} | {which} | {work} | {one * 1e3:.3g} ms "
                f"| {all_ * 1e3:.3g} ms | {one / all_:.2f} | {limit:.2f} |"
            )
    return "\n".join(out) + "\n"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", metavar="NAME", help="rows whose name contains NAME")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    kernels = ("saxpy", "elementwise", "nbody", "stencil", "springs", "loop", "sum", "maximum")
    with Peer("engine") as peer:
        rows = [(c, measure(peer, c, cores, options.rounds)) for c in CASES
                if c.name in kernels and options.only in c.name]  # fmt: skip
    text = page(rows, cores)
    print(text)
    if not options.only:
        (HERE / "CORES.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
