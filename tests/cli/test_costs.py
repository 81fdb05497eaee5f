"""The cost of a check in countable units: processes, imports, runs of the program.

Seconds are measured by `python -m benchmarks.check_costs`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

# Writes down each start of Python, and what was loaded at its end.
SITE = """
import atexit, os, sys
open({starts!r}, "a").write(f"{{os.getpid()}}\\n")

def _end():
    heavy = ("matplotlib", "jinja2", "torch", "jax", "numpy")
    found = " ".join(m for m in heavy if m in sys.modules)
    open({loaded!r}, "a").write(f"{{os.getpid()}} {{found}}\\n")

atexit.register(_end)
"""
PROGRAM = """
import os
import numpy as np
import engine as wp
open("runs", "a").write(f"{os.getpid()}\\n")

@wp.kernel
def square(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i]

@wp.kernel
def total(y: wp.array(dtype=wp.float64), s: wp.float64, loss: wp.array(dtype=wp.float64)):
    wp.atomic_add(loss, 0, s * y[wp.tid()])

x = wp.array(np.array([1.0, 2.0, 3.0]), dtype=wp.float64, requires_grad=True)
for _ in range(TAPES):
    y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x, y])
        wp.launch(total, 3, [y, SCALE, loss])
    tape.backward(loss)
    tape.zero()
"""


class Counts:
    """A check of a program. runs: of it, by process. starts: of Python."""

    def __init__(self, adtool: Any, program: str, *options: str) -> None:
        starts, loaded = adtool.folder / "starts", adtool.folder / "loaded"
        site = adtool.folder / "site" / "sitecustomize.py"
        site.parent.mkdir()
        site.write_text(SITE.format(starts=str(starts), loaded=str(loaded)))
        adtool.env["PYTHONPATH"] = str(site.parent)
        adtool.script(program)
        self.report = adtool.report(*options, "script.py")
        self.runs = _lines(adtool.folder / "runs")
        self.starts = _lines(starts)
        self.loaded = {line.split()[0]: line.split()[1:] for line in _lines(loaded)}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_short_program_is_run_once_by_one_process(adtool: Any) -> None:
    program = PROGRAM.replace("SCALE", "2.0").replace("TAPES", "2")
    counts = Counts(adtool, program)
    assert counts.report["ok"]
    assert (len(counts.runs), len(counts.starts)) == (1, 2)
    # Neither process draws anything, and the one that reports computes nothing.
    (run,) = counts.runs
    assert run not in counts.starts
    assert counts.loaded == {counts.starts[0]: [], run: ["numpy"]}


@pytest.mark.parametrize("scale", ["float(y.numpy()[0])", "float(x.numpy()[0])"])
def test_runs_with_moved_inputs_are_forks_of_one_process(adtool: Any, scale: str) -> None:
    program = PROGRAM.replace("SCALE", scale).replace("TAPES", "1")
    counts = Counts(adtool, program, "--rerun")
    assert {f["code"] for f in counts.report["findings"] if f["severity"] == "error"} == {"G004"}
    assert (len(counts.runs), len(counts.starts)) == (6, 2)
    assert len({*counts.runs}) == 6 and not {*counts.runs} & {*counts.starts}


def test_a_program_that_does_something_else_each_time_is_run_once_more(adtool: Any) -> None:
    scale = "float(y.numpy()[0]) * len(open('runs').read())"  # numbers of processes may be close
    counts = Counts(adtool, PROGRAM.replace("SCALE", scale).replace("TAPES", "1"), "--rerun")
    assert len(counts.runs) == 2
    notes = [f for f in counts.report["findings"] if f["code"] == "G012"]
    assert any("repeated run gave other values" in str(f) for f in notes)


def test_a_run_with_moved_inputs_that_hangs_is_ended(adtool: Any) -> None:
    """It says nothing, then, and none of its processes is left."""
    head = "import time\nif os.path.exists('runs'): time.sleep(1000)\n"
    program = PROGRAM.replace("SCALE", "float(y.numpy()[0])").replace("TAPES", "1")
    program = program.replace('open("runs"', head + 'open("runs"', 1)
    adtool.script(program)
    report = adtool.report("--rerun", "script.py")
    assert report["ok"] and not [f for f in report["findings"] if f["code"] == "G004"]
    alive = [
        p.name for p in Path("/proc").glob("[0-9]*")
        if os.path.exists(p / "cwd") and os.path.realpath(p / "cwd") == str(adtool.folder)
    ]  # fmt: skip
    assert not alive
