"""Whole programs on the engine and on Warp: what they leave, and whom float64 is nearer to."""

from __future__ import annotations

import json
import os
import pickle
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
ORDER = ("undecided", "there", "here", "alike", "lost", "filled")  # of marks
TINY = 1e-200
ROUNDING = 1e-5  # of the largest number in an array
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]*\d)")
PASSING = re.compile(r"took|\bms\b|\d s\b|/s\b|seconds|\b[GMk]i?B\b|fps|warp|CUDA|cache", re.I)


class Answer:
    """What one run came to. values: the arrays; lines: the numbers that were printed, by text."""

    def __init__(
        self, values: dict[str, Any], lines: dict[str, Any], facts: dict[str, Any]
    ) -> None:
        self.values = {**values, **{f"printed: {k}": v for k, v in lines.items()}}
        self.seconds: float = facts.get("seconds", 0.0)
        self.cause: str = facts.get("cause", "")


def printed(text: str) -> dict[str, Any]:
    """Numbers of printed lines, under what stands around them; of clocks and sizes, none."""
    found: dict[str, list[float]] = {}
    for line in text.splitlines():
        if not PASSING.search(line) and (numbers := NUMBER.findall(line)):
            found.setdefault(NUMBER.sub("#", line).strip(), []).extend(map(float, numbers))
    return {k: np.array(v) for k, v in found.items()}


def run(side: str, program: Sequence[str], python: str, scratch: Path, seconds: int) -> Answer:
    """Runs a program in a child."""
    answer = scratch / f"{side}.pickle"
    answer.unlink(missing_ok=True)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "MPLBACKEND": "agg",
        "PYTHONHASHSEED": "0",
    }
    command = [python, "-m", "tools.wild.program", side, str(answer), *program]
    try:
        done = subprocess.run(
            command, cwd=scratch, env=env, timeout=seconds, check=False, capture_output=True,
            text=True, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Answer({}, {}, {"cause": f"took more than {seconds} s"})
    if not answer.exists():
        return Answer({}, {}, {"cause": f"ended with {done.returncode}"})
    facts = pickle.loads(answer.read_bytes())
    return Answer(facts.get("values", {}), printed(done.stdout), facts)


def apart(a: Any, b: Any) -> float:
    """How far two arrays are from each other, of the largest number in them; inf: not alike."""
    if not a.size and not b.size:  # Warp gives all of these one dimension
        return 0.0
    if a.shape != b.shape:
        return float("inf")
    x, y = a.astype(np.float64), b.astype(np.float64)
    fine = np.isfinite(x) & np.isfinite(y)
    if not np.array_equal(x[~fine], y[~fine], equal_nan=True):
        return float("inf")
    largest = max(np.abs(x[fine]).max(initial=0.0), np.abs(y[fine]).max(initial=0.0))
    return float(np.abs(x[fine] - y[fine]).max(initial=0.0) / (largest or 1.0))


def off(a: Any, exact: Any) -> float:
    """How far an array is from what float64 gives: root of the mean square, of its largest."""
    if a.shape != exact.shape:
        return float("inf")
    x, y = a.astype(np.float64), exact.astype(np.float64)
    fine = np.isfinite(x) & np.isfinite(y)
    if not np.array_equal(x[~fine], y[~fine], equal_nan=True):
        return float("inf")
    largest = np.abs(y[fine]).max(initial=0.0)
    mean = np.mean((x[fine] - y[fine]) ** 2) if fine.any() else 0.0
    return float(np.sqrt(mean) / (largest or TINY)) if mean else 0.0


def nearer(here: float, there: float) -> str:
    """Who is nearer to float64: within a factor of four, or both within rounding, neither.

    `lost`: what float64 gives is small beside the rounding of both, forces that cancel, say.
    """
    if min(here, there) > 0.1 and 0.01 * there <= here <= 100.0 * there:
        return "lost"
    if max(here, there) <= 1e-6 or 0.25 * there <= here <= 4.0 * there:
        return "alike"
    return "here" if here < there else "there"


def compare(program: Sequence[str], python: str, scratch: Path, seconds: int) -> dict[str, Any]:
    """The row of a program: what it left here and there, and whom float64 agrees with."""
    there = run("warp", program, python, scratch, seconds)
    here = run("engine", program, python, scratch, seconds)
    row: dict[str, Any] = {"program": program[0], "arguments": shlex.join(program[1:])}
    if there.cause or here.cause:
        ran = "nowhere" if there.cause and here.cause else "in Warp" if here.cause else "here"
        return {**row, "state": f"runs {ran} alone".replace("nowhere alone", "nowhere"),
                "here": here.cause, "there": there.cause}  # fmt: skip
    names = sorted(set(here.values) & set(there.values))
    far = {n: apart(here.values[n], there.values[n]) for n in names}
    row |= {
        "state": "ran", "seconds": [round(here.seconds, 1), round(there.seconds, 1)],
        "values": len(names), "equal": sum(x == 0.0 for x in far.values()),
        "printed": sum(n.startswith("printed: ") for n in names),
        "gradients": sum(".grad" in n and bool(here.values[n].any()) for n in names),
        "one side alone": sorted(set(here.values) ^ set(there.values))[:8],
    }  # fmt: skip
    row |= _furthest(far)
    doubtful = sorted((n for n in names if far[n] > ROUNDING), key=lambda n: -far[n])
    if not doubtful:
        return {**row, "verdict": "rounding" if any(far.values()) else "equal"}
    exact = run("wide", program, python, scratch, 4 * seconds)
    if exact.cause:
        return {**row, "verdict": "undecided", "cause": exact.cause}
    table: list[list[Any]] = []
    gradients: list[list[Any]] = []
    for n in doubtful:
        if n in exact.values:
            a, b = (off(s.values[n], exact.values[n]) for s in (here, there))
            mark = nearer(a, b)
            if ".grad" in n and a == 0.0 and not exact.values[n].any():
                mark = "filled"  # on the tape: by what was there before, the derivative is zero
            (gradients if ".grad" in n else table).append([n, far[n], a, b, mark])
    for kind, found in (("", table), ("gradient ", gradients)):
        found.sort(key=lambda x: ORDER.index(x[-1]))
        row[f"{kind}marks"] = dict(Counter(x[-1] for x in found))
        row[f"{kind}table"] = found[:6]
    if unknown := len(doubtful) - len(table) - len(gradients):
        row["marks"]["undecided"] = unknown
    passed = {x[0] for x in (*table, *gradients) if x[-1] in ("lost", "filled")}
    row |= _furthest({n: x for n, x in far.items() if n not in passed})
    verdict = next((m for m in ORDER if row["marks"].get(m)), "rounding")
    return {**row, "verdict": verdict}


def _furthest(far: dict[str, float]) -> dict[str, float]:
    """The largest difference, and that of gradients."""
    return {
        "furthest": max((x for n, x in far.items() if ".grad" not in n), default=0.0),
        "furthest gradient": max((x for n, x in far.items() if ".grad" in n), default=0.0),
    }


def listed(file: Path) -> list[tuple[list[str], str]]:
    """The programs of a list: a module, `:` and a call or nothing, and arguments; ` ## ` a note."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        text, _, note = line.partition(" ## ")
        if text.strip() and not text.startswith("#"):
            found.append((shlex.split(text), note.strip()))
    return found


def main_loop(
    programs: list[tuple[list[str], str]], results: Path, scratch: Path, python: str, seconds: int
) -> None:
    """Adds a row for each program that has none yet with its arguments."""
    done = set()
    if results.exists():
        rows = [json.loads(x) for x in results.read_text().splitlines()]
        done = {(r["program"], r["arguments"]) for r in rows}
    with results.open("a") as out:
        for program, note in programs:
            if (program[0], shlex.join(program[1:])) in done:
                continue
            row = compare(program, python, scratch, seconds)
            if note:
                row["note"] = note
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(row["state"], row.get("verdict", ""), program[0], file=sys.stderr, flush=True)
