"""Measures `adtool check` of tapes of up to 10,000 launches, and writes benchmarks/LONG_TAPES.md.

    python -m benchmarks.long_tapes                  some minutes
    python -m benchmarks.long_tapes --steps 1000

Each row is the whole command in a process of its own: the script with its capture, the checks of
all launches, the check of the tape as a whole, the report. Kernels have been compiled before.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import describe

HERE = Path(__file__).resolve().parent
LAYOUTS = {
    "arrays": "arrays of its own each step",
    "rows": "rows of one array",
    "turns": "two arrays that take turns",
}
STEPS = (125, 1000, 10_000)


@dataclass(frozen=True)
class Measured:
    """One check. seconds: wall time; plain: of the script alone. cpu: processor time.

    load: average. peak: MiB of the largest process.
    """

    steps: int
    layout: str
    plain: float
    seconds: float
    cpu: float
    load: float
    peak: int
    pairs: int
    whole: str


def _timed(command: list[str]) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return time.perf_counter() - start, done.stdout


def measure(steps: int, layout: str) -> Measured:
    """Runs the script alone, and the check of it. Raises where the check does not pass."""
    script = [str(HERE / "rollout.py")]
    arguments = [str(steps), layout]
    plain, _ = _timed([sys.executable, *script, *arguments])
    check = [sys.executable, "-m", "adtool", "check", "--format", "json", *script, "--", *arguments]
    # The largest process of those that ended, so each row asks a process of its own.
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        before = own.ru_utime + own.ru_stime
        seconds, text = _timed(check)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime - before
        report = json.loads(text)
        pairs = sum(len(x["pairs"]) for x in report["launches"])
        row = (seconds, cpu, os.getloadavg()[0], used.ru_maxrss >> 10, pairs,
               report["end_to_end"][0]["verdict"])  # fmt: skip
        os.write(writer, json.dumps(row).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        row = json.load(pipe)
    os.waitpid(child, 0)
    return Measured(steps, layout, plain, *row)


def page(rows: list[Measured]) -> str:
    """The table."""
    machine = ", ".join(f"{k}: {v}" for k, v in describe().items())
    out = [
        "# Checks of long tapes", "", f"{machine}.", "",
        "Measured by `python -m benchmarks.long_tapes`: `adtool check` of a roll-out of 64 "
        "particles, with one launch and one set of controls a step. The time covers the whole "
        "check (capture, checks of launches, end to end, report), in its own process. *Memory* is "
        "the peak of the larger one of its two processes. *Load* is the number of processes that "
        "wanted a core meanwhile. If it is larger than the number of cores, read the processor "
        "time rather than the time by the clock.", "",
        "| launches | arrays | script alone | check | processor time | of it each launch | load "
        "| memory | pairs | as a whole |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for r in rows:
        out.append(
            f"| {r.steps + 1:,} | {LAYOUTS[r.layout]} | {r.plain:.1f} s | {r.seconds:.1f} s "
            f"| {r.cpu:.1f} s | {r.cpu / r.steps * 1e3:.1f} ms | {r.load:.1f} "
            f"| {r.peak} MiB | {r.pairs:,} | {r.whole} |"
        )
    return "\n".join(out) + "\n"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, action="append", help="launches (default: several)")
    options = parser.parse_args()
    measure(20, "arrays")  # compiles
    rows = [measure(s, layout) for s in options.steps or STEPS for layout in LAYOUTS]
    text = page(rows)
    print(text)
    if not options.steps:
        (HERE / "LONG_TAPES.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
