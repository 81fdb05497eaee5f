"""Measures what an unwatched run adds to `adtool check`, and writes benchmarks/UNWATCHED.md.

    python -m benchmarks.unwatched_runs            the samples
    python -m benchmarks.unwatched_runs SCRIPT ... prints, writes nothing

A script is checked with `--no-as-run`, `--as-run`, and as it is by default: once each to compile,
then three times each in turn. Medians of the clock are given, of whole processes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.machine import describe

HERE = Path(__file__).resolve().parent
SAMPLES = sorted(p for p in HERE.parent.glob("samples/*.py") if not p.name.startswith("broken"))
ROUNDS = 3
WAYS: tuple[list[str], ...] = (["--no-as-run"], ["--as-run"], [])


def measure(script: Path) -> str:
    """The row of one script. Ends the program where a check does not pass."""
    times: list[list[float]] = [[] for _ in WAYS]
    launches = 0
    for n in range(ROUNDS + 1):
        for k, way in enumerate(WAYS):
            words = [sys.executable, "-m", "adtool", "check", "--format", "json", *way, str(script)]
            began = time.perf_counter()
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if n:
                times[k].append(time.perf_counter() - began)
            if done.returncode:
                raise SystemExit(f"{script.name} does not pass: {done.stdout[-500:]}")
            launches = len(json.loads(done.stdout[done.stdout.index("{") :])["launches"])
    without, with_it, default = map(statistics.median, times)
    return (
        f"| `{script.name}` | {launches:,} | {without:.2f} s | {with_it:.2f} s | {default:.2f} s "
        f"| {with_it / without:.2f} |"
    )


def page(rows: list[str]) -> str:
    """The rows as a page."""
    machine = ", ".join(f"{k}: {v}" for k, v in describe().items())
    out = [
        "# What an unwatched run adds to a check", "", f"{machine}.", "",
        "Measured by `python -m benchmarks.unwatched_runs`: medians of three runs of whole "
        "processes, which take turns, with kernels and the launcher already compiled. By default, "
        "adtool runs a script a second time if the script takes less than 5 s and compiled code "
        "takes over some of its launches (more than 200 operations).", "",
        "| script | launches on tapes | `--no-as-run` | `--as-run` | default | ratio |",
        "|---|---|---|---|---|---|", *rows,
    ]  # fmt: skip
    return "\n".join(out) + "\n"


def main() -> int:
    """Command line."""
    given = [Path(p) for p in sys.argv[1:]]
    text = page([measure(p) for p in given or SAMPLES])
    print(text)
    if not given:
        (HERE / "UNWATCHED.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
