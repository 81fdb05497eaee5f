"""Start-up times: what a user waits for before anything happens."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import engine": ["-c", "import engine"],
    "adtool --help": ["-m", "adtool", "--help"],
    "import warp": ["-c", "import warp"],
}
HEAVY = ("matplotlib", "graphviz", "rich.table", "cupy", "torch", "jax")
CHECK = f"import sys, engine; print([m for m in {HEAVY!r} if m in sys.modules])"


def startup_times(rounds: int) -> dict[str, float]:
    """Median seconds of each command in a fresh process; the commands take turns.

    Raises RuntimeError where `import engine` loads a package that it should not.
    """
    loaded = subprocess.run(
        [sys.executable, "-c", CHECK], cwd=ROOT, check=True, capture_output=True, text=True
    )
    if loaded.stdout.strip() != "[]":
        raise RuntimeError(f"import engine loads {loaded.stdout.strip()}")
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
            )
            times[name].append(time.perf_counter() - start)
    return {name: median(t) for name, t in times.items()}
