"""Measures executors: the time to check 1, 10 and 100 captures, beside one process.

    python -m benchmarks.executors [--jobs N] [--counts 1 10 100] [--with-ray]

Prints the table of EXECUTORS.md. Every capture is of the same program of one launch, compiled;
with --scripts the program itself is run and checked.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from adtool.executors import executor
from adtool.job import CheckOptions, Job, Target
from adtool.tasks.check_script import CheckScript
from benchmarks.machine import describe

SCRIPT = """
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

x = wp.ones(64, dtype=float, requires_grad=True)
y = wp.zeros(64, dtype=float, requires_grad=True)
with wp.Tape():
    wp.launch(square, dim=64, inputs=[x], outputs=[y])
"""


def seconds(name: str, jobs: int, tasks: list[CheckScript]) -> tuple[float, float]:
    """Wall time until all results are there, and until workers are gone, too."""
    start = time.perf_counter()
    done = 0.0
    for finished in executor(name, jobs).run(tasks):
        assert finished.result.report.ok
        done = time.perf_counter() - start
    return done, time.perf_counter() - start


def captured(script: Path) -> str:
    """A capture of a script, beside it."""
    path = script.with_suffix(".adt")
    command = [sys.executable, "-m", "adtool", "capture", "--out", str(path), str(script)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return str(path)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--with-ray", action="store_true")
    parser.add_argument("--scripts", action="store_true")
    given = parser.parse_args()
    names = ["serial", "processes"] + ["ray"] * given.with_ray
    about = describe()
    print(f"{about['cpu']}, {about['cores']} processors, Python {about['python']}; "
          f"{given.jobs} workers; load before: {os.getloadavg()[0]:.1f}\n")  # fmt: skip
    what = "script" if given.scripts else "capture"
    print(f"| {what}s | executor | seconds | and to end | a {what} | of serial |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        path.write_text(SCRIPT, encoding="utf-8")
        target = Target(str(path))
        if not given.scripts:
            target = Target(captured(path), capture=True)
        task = CheckScript(Job(target, CheckOptions()), 600.0)
        seconds("serial", 1, [task])  # compiles
        for count in given.counts:
            base = 0.0
            for name in names:
                done, end = seconds(name, given.jobs, [task] * count)
                base = base or done
                print(f"| {count} | {name} | {done:.1f} | {end:.1f} | {done / count:.2f} | "
                      f"{done / base:.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
