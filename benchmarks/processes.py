"""Rows whose samples are processes: cold and warm starts, and memory that launches take."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measuring import Plan, spread
from benchmarks.peers import ROOT, Failure, Peer, environment, placeless
from benchmarks.scripts import SCRIPTS, script
from benchmarks.targets import OURS

RECORDED = 200_000  # launches whose memory is measured
STATES = ("cold", "warm")


def process_row(name: str, title: str, note: str, **more: Any) -> dict[str, Any]:
    """A row of the group of starts, without passes yet."""
    return {
        "name": name, "title": title, "group": "starts", "size": 1, "note": note, "unit": "s",
        "passes": [], "cannot": [], "failed": {}, **more,
    }  # fmt: skip


def _once(command: list[str], own: Mapping[str, str], limit: float) -> tuple[float, float]:
    """Seconds of a whole process, and those that it printed. Raises Failure."""
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, env=own, cwd=ROOT, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        raise Failure(f"no end in {limit:g} s") from None
    wall = time.perf_counter() - start
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Failure(placeless(said[-1])[:200])
    return wall, float(done.stdout.strip().splitlines()[-1].split()[0])


class Starts:
    """Scripts in fresh processes, with an empty cache (cold) and then with that one (warm)."""

    def __init__(self, names: list[str], plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.failed: dict[str, str] = {}
        self.names = names

    def commands(self, gradient: bool) -> dict[str, list[str]]:
        """What is run for each framework."""
        found = {}
        for name in self.names:
            path = self.folder / f"one_{name}.py"
            path.write_text(script(name), encoding="utf-8")
            found[name] = [sys.executable, str(path), *["gradient"] * gradient]
        return found

    def probes(self) -> dict[str, list[str]]:
        """The same for a module of three kernels, forward and backward."""
        probe = [sys.executable, "-m", "benchmarks.compile_probe"]
        return {n: probe for n in self.names if n in (OURS, "warp")}

    def run(self, commands: Mapping[str, list[str]], rounds: int) -> dict[Any, Any]:
        """Samples of whole processes and of what they printed, by state and framework."""
        empty: dict[str, list[float]] = {n: [] for n in commands}
        found = {(s, w): {n: list(t) for n, t in empty.items()}
                 for s in STATES for w in ("whole", "first")}  # fmt: skip
        code = str(self.folder / "bytecode")  # once written, imports are as they are for a user
        for turn in range(rounds + 1):
            for name, command in commands.items():
                if name in self.failed:
                    continue
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
                    own = environment(name, cache) | {"PYTHONPYCACHEPREFIX": code}
                    own.pop("PYTHONDONTWRITEBYTECODE", None)
                    try:
                        for state in STATES:
                            wall, first = _once(command, own, self.plan.limit)
                            if turn:  # the first round writes byte code
                                found[state, "whole"][name].append(wall)
                                found[state, "first"][name].append(first)
                    except (Failure, ValueError, IndexError) as e:
                        self.failed[name] = str(e)
        return found


def process_passes(found: Mapping[Any, Any], what: str) -> list[dict[str, Any]]:
    """Both states as the passes of a row. what: "whole" or "first"."""
    return [
        {
            "pass": state,
            "times": {n: spread(t) for n, t in found[state, what].items() if t},
            "gaps": {},
        }
        for state in STATES
    ]


def starts(names: list[str], plan: Plan, rounds: int) -> list[dict[str, Any]]:
    """Rows of a script with one kernel, with a gradient of it, and of a module of three kernels."""
    able = [n for n in SCRIPTS if n in names]
    rows = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for gradient in (False, True):
            own = [n for n in able if not (gradient and n == "numba")]
            measured = Starts(own, plan, Path(folder))
            found = measured.run(measured.commands(gradient), rounds)
            end = ", with a gradient" if gradient else ""
            key = "_gradient" * gradient
            for what, note in (
                ("whole", "whole processes, imports included"),
                ("first", "from the first launch to its result, imports not counted"),
            ):
                title = f"a script of one kernel{end}: " + (
                    "from start to end" if what == "whole" else "its first launch"
                )
                name = ("start" if what == "whole" else "first") + key
                rows.append(process_row(name, title, note, failed=dict(measured.failed)))
                rows[-1]["passes"] = process_passes(found, what)
                rows[-1]["cannot"] = ["numba"] * (gradient and "numba" in names)
        three = Starts([n for n in able if n in (OURS, "warp")], plan, Path(folder))
        found = three.run(three.probes(), rounds)
        title, note = "a module of three kernels, forward and backward", "imports not counted"
        rows.append(process_row("module", title, note, failed=dict(three.failed)))
        rows[-1]["passes"] = process_passes(found, "first")
    return rows


def memory(names: list[str], plan: Plan, count: int = RECORDED) -> dict[str, Any]:
    """Bytes that a recorded launch takes, by what a process grows while many are recorded."""
    note = f"{count:,} launches of two arrays, recorded on one tape; nothing has to be stored"
    title = "memory of a recorded launch"
    row = process_row("memory", title, note, unit="B", size=count, group="launches")
    times: dict[str, Any] = {}
    for name in (OURS, "warp"):
        if name not in names:
            continue
        try:
            with Peer(name) as peer:
                times[name] = spread(peer.ask({"grow": count}, plan.limit))
        except Failure as e:
            row["failed"][name] = str(e)
    if times:
        row["passes"] = [{"pass": "record", "times": times, "gaps": {}}]
    return row


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
