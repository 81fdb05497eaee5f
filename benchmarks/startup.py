"""Start-up times: what a user waits for before anything happens.

Byte code is in place: one round that does not count writes it where it is missing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
KERNEL = """import engine as wp
@wp.kernel
def k(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.sin(1.0)
wp.zeros(3, dtype=wp.vec3)"""
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import engine": ["-c", "import engine"],
    "import engine, decorate a kernel": ["-c", KERNEL],
    "adtool --help": ["-m", "adtool", "--help"],
    "import warp": ["-c", "import warp"],
}
HEAVY = ("matplotlib", "graphviz", "rich.table", "cupy", "torch", "jax")
CHECK = f"import sys, engine; print([m for m in {HEAVY!r} if m in sys.modules])"


def once(arguments: list[str]) -> tuple[float, float]:
    """Seconds that a process took by the clock, and of the processor. Raises RuntimeError."""
    own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=own, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return wall, used.ru_utime + used.ru_stime


def startup_times(rounds: int) -> dict[str, dict[str, float]]:
    """Median seconds of each command in a fresh process (`wall`, `cpu`); they take turns.

    Raises RuntimeError where `import engine` loads a package that it should not.
    """
    loaded = subprocess.run(
        [sys.executable, "-c", CHECK], cwd=ROOT, check=True, capture_output=True, text=True
    )
    if loaded.stdout.strip() != "[]":
        raise RuntimeError(f"import engine loads {loaded.stdout.strip()}")
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for turn in range(rounds + 1):
        for name, arguments in COMMANDS.items():
            found = once(arguments)
            if turn:
                times[name].append(found)
    return {
        name: {"wall": median(w for w, _ in t), "cpu": median(c for _, c in t)}
        for name, t in times.items()
    }
