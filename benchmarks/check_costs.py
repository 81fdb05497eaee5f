"""Measures what `adtool check` adds to a program's time, and writes benchmarks/CHECK_COSTS.md.

    python -m benchmarks.check_costs                    samples and tests/programs; writes the page
    python -m benchmarks.check_costs SCRIPT ...         these alone; prints, writes nothing
    python -m benchmarks.check_costs --rounds 5 --data FILE    also writes the figures as JSON
    python -m benchmarks.check_costs --again FILE       measures the slowest of such figures again
    python -m benchmarks.check_costs --cpu              judges by CPU seconds, on a machine in use

Each program runs plainly and under `adtool check`: once each to compile kernels, then several times
each in turn, and the slowest more often, since a machine is not quiet all the time. Given are the
least wall times of whole processes, and the least CPU times (user and system, of the process and of
all that it started). Programs whose framework is not installed are named and left out; of the
others, the time of `import torch` (or `jax`) is taken off both.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from benchmarks.checked_programs import ALONE
from benchmarks.machine import describe, package

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FOLDERS = ("samples", "samples/interop", "tests/programs/right", "tests/programs/broken",
           "tests/programs/reported")  # fmt: skip
FRAMEWORKS = ("torch", "jax", "paddle", "warp", "cupy", "numba")
REASONS = HERE / "check_costs_reasons.json"
TIMES, SECONDS = 2.0, 0.5  # the target: at most so many times the plain run, and so much more
SLOWEST = 10
ROUNDS = 3
MORE = 20  # rounds of the slowest


@dataclass(frozen=True)
class Time:
    """Seconds of a process with all that it started: by the clock, and of processors."""

    wall: float
    cpu: float

    def least(self, other: Time) -> Time:
        """The less of each."""
        return Time(min(self.wall, other.wall), min(self.cpu, other.cpu))

    def without(self, other: Time) -> Time:
        """What is left of it."""
        return Time(max(0.0, self.wall - other.wall), max(0.0, self.cpu - other.cpu))


@dataclass(frozen=True)
class Cost:
    """A program's cost: by itself and under the check, without the import of its frameworks."""

    name: str
    plain: Time
    check: Time
    imports: Time

    def least(self, other: Cost) -> Cost:
        """The less of each."""
        return replace(
            self, plain=self.plain.least(other.plain), check=self.check.least(other.check)
        )

    def over(self, clock: str) -> float:
        """Seconds that the check takes beyond the target. clock: "wall" or "cpu"."""
        plain, check = getattr(self.plain, clock), getattr(self.check, clock)
        return float(check - (TIMES * plain + SECONDS))


def once(arguments: list[str], folder: Path) -> Time:
    """Runs Python with these arguments. What the program's exit status says is not looked at."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": paths()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Time(time.perf_counter() - began, used.ru_utime + used.ru_stime)


def paths() -> str:
    """The path of modules with this project first."""
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def least(arguments: list[list[str]], folder: Path, rounds: int) -> list[Time]:
    """The least time of each command; they take turns, after one round that is not counted."""
    for one in arguments:
        once(one, folder)
    found = [Time(float("inf"), float("inf"))] * len(arguments)
    for _ in range(rounds):
        found = [a.least(once(one, folder)) for a, one in zip(found, arguments, strict=True)]
    return found


def imported(program: Path) -> set[str]:
    """Frameworks that a program imports anywhere."""
    if aliased(program):
        return set()
    names = set()
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {a.name.partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names & set(FRAMEWORKS)


def aliased(program: Path) -> bool:
    """Whether a program imports the engine as Warp."""
    return program.resolve().parent.name == "reported"


def options(program: Path) -> list[str]:
    """Options that the check of a program is given by its comments (`# expect: args=...`)."""
    if aliased(program):
        return ["--alias", "warp"]
    lines = program.read_text(encoding="utf-8").splitlines()
    mark = "# expect: args="
    return [w for line in lines if line.startswith(mark) for w in line[len(mark) :].split()]


class Imports:
    """Seconds that the import of frameworks takes, beside an empty process."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.known: dict[str, Time] = {}

    def of(self, names: set[str]) -> Time:
        """Of these together."""
        if not names:
            return Time(0.0, 0.0)
        # Most frameworks import NumPy, which the engine imports, too.
        text = f"import numpy, {', '.join(sorted(names))}"
        if text not in self.known:
            empty, full = least([["-c", "import numpy"], ["-c", text]], ROOT, self.rounds)
            self.known[text] = full.without(empty)
        return self.known[text]


def measure(program: Path, imports: Imports, rounds: int) -> Cost:
    """Measures one program."""
    path = program.resolve()
    plainly = ["-c", ALONE, str(path)] if aliased(path) else [str(path)]
    check = ["-m", "adtool", "check", *options(path), str(path)]
    plain, checked = least([plainly, check], path.parent, rounds)
    own = imports.of(imported(path))
    return Cost(path.stem, plain.without(own), checked.without(own), own)


def slowest(costs: list[Cost], clock: str) -> list[Cost]:
    """Those that are furthest beyond the target, or nearest to it."""
    return sorted(costs, key=lambda c: -c.over(clock))[:SLOWEST]


def read(path: Path) -> list[Cost]:
    """Figures that `--data` has written."""
    return [
        Cost(c["name"], *(Time(**c[field]) for field in ("plain", "check", "imports")))
        for c in json.loads(path.read_text(encoding="utf-8"))
    ]


def page(costs: list[Cost], missing: list[str], clock: str) -> str:
    """The costs as a page; slowest first are named with their reasons."""
    said = {"wall": "by the clock", "cpu": "of processors"}[clock]
    machine = ", ".join(f"{k}: {v}" for k, v in describe().items() if k != "warp-lang")
    frameworks = ", ".join(f"{n}: {package(n)}" for n in ("torch", "jax"))
    reasons = json.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}
    met = sum(c.over(clock) <= 0 for c in costs)
    out = [
        "# What a check adds to a program", "", f"{machine}, {frameworks}.", "",
        "Measured by `python -m benchmarks.check_costs`: least seconds of whole processes in "
        f"{ROUNDS} rounds, and in {MORE} more for the slowest {SLOWEST}, with kernels compiled "
        "before. *plain* is `python PROGRAM`, *check* is `adtool check PROGRAM`; "
        "the import of PyTorch and JAX (*import*) is taken off both. The target is that a check "
        f"takes at most {TIMES:g} times the plain run and {SECONDS:g} s, judged by seconds {said}: "
        f"{met} of {len(costs)} programs meet it.", "",
        f"## The slowest {SLOWEST}", "",
        "Those that are furthest beyond the target, or nearest to it.", "",
        "| program | plain | check | beyond the target | reason |", "|---|---|---|---|---|",
        *(
            f"| `{c.name}` | {getattr(c.plain, clock):.2f} s | {getattr(c.check, clock):.2f} s "
            f"| {c.over(clock):+.2f} s | {reasons.get(c.name, '')} |"
            for c in slowest(costs, clock)
        ), "",
        "## All programs", "",
        "| program | import | plain | check | plain, CPU | check, CPU | target |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| `{c.name}` | {f'{c.imports.wall:.2f} s' if c.imports.wall else ''} "
            f"| {c.plain.wall:.2f} s | {c.check.wall:.2f} s "
            f"| {c.plain.cpu:.2f} s | {c.check.cpu:.2f} s "
            f"| {'met' if c.over(clock) <= 0 else 'missed'} |"
            for c in costs
        ),
    ]  # fmt: skip
    if missing:
        out += ["", f"Not measured, since a framework is not installed: {', '.join(missing)}."]
    return "\n".join(out) + "\n"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check_costs")
    parser.add_argument("programs", nargs="*", type=Path, metavar="SCRIPT")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each ({ROUNDS})")
    parser.add_argument("--data", type=Path, help="write the figures into this file as JSON")
    parser.add_argument("--again", type=Path, help="figures of --data: measure the slowest alone")
    parser.add_argument("--cpu", action="store_true", help="judge by CPU seconds")
    given = parser.parse_args()
    programs = given.programs or [p for f in FOLDERS for p in sorted((ROOT / f).glob("*.py"))]
    imports, clock = Imports(given.rounds), "cpu" if given.cpu else "wall"
    there = [p for p in programs if all(find_spec(name) is not None for name in imported(p))]
    missing = [f"`{p.stem}`" for p in programs if p not in there]
    costs: dict[str, Cost] = {}

    def add(cost: Cost) -> None:
        known = costs.get(cost.name)
        c = costs[cost.name] = cost if known is None else known.least(cost)
        print(
            f"{c.name:<45} plain {c.plain.wall:6.2f} s, check {c.check.wall:6.2f} s; CPU "
            f"{c.plain.cpu:6.2f} s, {c.check.cpu:6.2f} s", file=sys.stderr, flush=True,
        )  # fmt: skip
        if given.data:
            figures = [asdict(c) for c in costs.values()]
            given.data.write_text(json.dumps(figures, indent=1), encoding="utf-8")

    if given.again:
        costs = {c.name: c for c in read(given.again)}
    else:
        for program in there:
            add(measure(program, imports, given.rounds))
    by_name = {p.stem: p for p in there}
    if not given.programs:
        for c in slowest(list(costs.values()), clock):
            add(measure(by_name[c.name], imports, MORE))
    text = page(list(costs.values()), missing, clock)
    print(text)
    if not given.programs:
        (HERE / "CHECK_COSTS.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
