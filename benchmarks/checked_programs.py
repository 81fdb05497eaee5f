"""Measures `adtool check --alias warp` of whole programs, and writes benchmarks/CHECKS.md.

    python -m benchmarks.checked_programs                     Newton's differentiable examples
    python -m benchmarks.checked_programs MODULE [ARGUMENT ...]

A program runs by itself, with the engine under Warp's name, and then under the check: once each to
compile, then three times each in turn. Medians of the clock are given, of whole processes. Needs
the package that the programs are of (`newton`).
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe

HERE = Path(__file__).resolve().parent
NEWTON = [
    [f"newton.examples.diffsim.example_diffsim_{name}", "--viewer", "null", "--num-frames", "2"]
    for name in ("spring_cage", "ball", "drone", "cloth", "soft_body")
]
ROUNDS = 3
ALONE = (
    "import runpy, sys, engine.alias; engine.alias.install('warp'); sys.argv = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


@dataclass(frozen=True)
class Measured:
    """One program. plain, checked: seconds by itself and under the check. said: the last line."""

    name: str
    plain: float
    checked: float
    launches: int
    said: str


def measure(program: list[str]) -> Measured:
    """Runs a program, given by its module's name and its arguments, both ways."""
    name, *arguments = program
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise SystemExit(f"{name} is not installed")
    command = [found.origin, *arguments]
    plain = [sys.executable, "-c", ALONE, *command]
    check = [sys.executable, "-m", "adtool", "check", "--alias", "warp", "--format", "json"]
    times: dict[bool, list[float]] = {False: [], True: []}
    report: dict[str, Any] = {}
    for n in range(ROUNDS + 1):
        for checked, words in ((False, plain), (True, [*check, *command])):
            began = time.perf_counter()
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if n:
                times[checked].append(time.perf_counter() - began)
            if checked:
                report = json.loads(done.stdout[done.stdout.index("{") :])
            elif done.returncode:
                raise SystemExit(f"{name} does not run: {done.stderr[-500:]}")
    codes = sorted({f["code"] for f in report["findings"] if f["severity"] != "note"})
    alone, under = (statistics.median(times[k]) for k in (False, True))
    said = ", ".join(codes) or "passes"
    return Measured(name.rpartition(".")[2], alone, under, len(report["launches"]), said)


def page(rows: list[Measured]) -> str:
    """The rows as a page."""
    machine = ", ".join(f"{k}: {v}" for k, v in describe().items())
    out = [
        "# Checks of whole programs", "", f"{machine}.", "",
        "Measured by `python -m benchmarks.checked_programs`: medians of three runs of whole "
        "processes, which take turns, with kernels already compiled.", "",
        "| program | launches on tapes | alone | `adtool check --alias warp` | ratio | verdict |",
        "|---|---|---|---|---|---|",
        *(
            f"| `{r.name}` | {r.launches:,} | {r.plain:.1f} s | {r.checked:.1f} s "
            f"| {r.checked / r.plain:.1f} | {r.said} |"
            for r in rows
        ),
    ]  # fmt: skip
    return "\n".join(out) + "\n"


def main() -> int:
    """Command line."""
    given = [sys.argv[1:]] if sys.argv[1:] else NEWTON
    text = page([measure(p) for p in given])
    print(text)
    if given is NEWTON:
        (HERE / "CHECKS.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
