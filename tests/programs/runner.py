"""Runs the whole programs, right and broken, by plain Python and by `adtool check`.

What the check must say of each stands in its comments (`expectations.py`). A fixed fifth of the
programs runs by default, with one at least for each finding, all of them with
`-m "sweep or not sweep"`. The tests are two files, so that two processes share them.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import invariants
from tests.programs import expectations

HERE = Path(__file__).parent
BROKEN = sorted((HERE / "broken").glob("*.py"))
RIGHT = sorted((HERE / "right").glob("*.py"))
REPORTED = sorted((HERE / "reported").glob("*.py"))
TIMEOUT = 300.0
# Programs that may compute something else each time: what is read outside of an array, or races.
_OTHERWISE = {"G007", "G008", "G009"}
# What a GPU says of the gradient of a race.
_REFUSED = "depends on the order of the threads, and on a GPU the order is not fixed"


def usual(paths: list[Path], of: int) -> set[Path]:
    """A part of the programs, the same ones on every machine, and one for each finding."""
    numbers = {p: int(hashlib.sha256(p.stem.encode()).hexdigest(), 16) for p in paths}
    chosen = {p for p, number in numbers.items() if number % of == 0}
    seen: set[frozenset[str]] = set()
    for p in sorted(paths, key=lambda p: (p not in chosen, numbers[p])):
        codes = {f.codes for f in expectations.read(p).findings}
        if not codes <= seen:
            chosen.add(p)
            seen |= codes
    return chosen


def cases(paths: list[Path], of: int = 5) -> list[Any]:
    """Parameters of a test, named as the programs; those that are not usual are marked `sweep`."""
    chosen = usual(paths, of)
    return [
        pytest.param(p, id=p.stem, marks=[] if p in chosen else [pytest.mark.sweep]) for p in paths
    ]


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in the folder of the programs."""
    return subprocess.run(
        [sys.executable, *args],
        cwd=HERE,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT,
    )


def verify(path: Path) -> None:
    """Runs a program by plain Python and under the check, and compares with its expectation."""
    expected = expectations.read(path)
    plain = run(str(path))
    races = any("G009" in f.codes for f in expected.findings)
    if not (races and _REFUSED in plain.stderr):  # which the check goes on after
        assert plain.returncode == expected.plain, plain.stderr
        assert plain.stdout.strip() or expected.plain
    done = run("-m", "adtool", "check", "--format", "json", *expected.args, str(path))
    report = json.loads(done.stdout)
    assert report["exit_code"] == done.returncode
    assert not invariants.passing_errors(report)
    wrong = expectations.differences(expected, report, path)
    assert not wrong, "\n".join(wrong)
    if not _OTHERWISE & {f["code"] for f in report["findings"]}:
        # What is printed, in order; warnings may stand between.
        said = iter(done.stderr.splitlines())
        other = [line for line in plain.stdout.splitlines() if line not in said]
        assert not other, f"the program computes something else while it is checked: {other}"
