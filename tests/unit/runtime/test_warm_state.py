"""State that a process keeps of launches, and every change that makes it stale.

A program of the modules in `warm` runs a step until it is warm, changes something, runs it again,
and says what each step has to give: numbers from mathematics. It does so by Python alone, and
natively from a kernel's second launch on.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest

import engine as wp
from engine.runtime import launch
from engine.tape.records.launch import LaunchRecord
from tests.spoiling import STALE
from tests.unit.runtime.launching import NATIVE, way
from tests.unit.runtime.warm import arrays, graphs, kernels, launches, memory, settings, tapes
from tests.unit.runtime.warm.changes import CHANGES, Change

PARTS = (arrays, graphs, kernels, launches, memory, settings, tapes)  # each enters its programs
RUNS = 4  # of a step between two changes


class Python:
    """Counts launches and adjoints that came to Python."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for cls, name in (
            (launch, "run"), (LaunchRecord, "reverse"),
            (LaunchRecord, "run_ready"),
        ):  # fmt: skip
            monkeypatch.setattr(cls, name, self._counted(getattr(cls, name)))

    def _counted(self, plain):
        def run(*args):
            self.count += 1
            return plain(*args)

        return run


@pytest.fixture
def restored() -> Iterator[None]:
    before = dict(vars(wp.config))
    yield
    vars(wp.config).clear()
    vars(wp.config).update(before)


@pytest.mark.host("native launches")
@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
@pytest.mark.parametrize("name", CHANGES)
def test_what_is_remembered_is_not_stale(
    name: str, native: bool, monkeypatch: pytest.MonkeyPatch, restored: None
) -> None:
    assert NATIVE is not None
    change: Change = CHANGES[name]
    with way(monkeypatch, "native" if native else True), ExitStack() as stack:
        python = Python(monkeypatch)
        steps = stack.enter_context(closing(change.run()))
        for number, (step, want) in enumerate(steps):
            for run in range(RUNS):
                python.count = 0
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    got = step()
                place = f"after change {number}, run {run}"
                assert len(got) == len(want), place
                for a, b in zip(got, want, strict=True):
                    assert np.array_equal(a, b), (place, got, want)
            if number == 0 and change.native:
                assert (python.count == 0) == native, "the step is not warm"


# A program that shows what a launcher does that asks only once.
SHOWN_BY = {
    "settings": "messages of settings",
    "listeners": "somebody captures tapes meanwhile",
    "options-of-kernels": "enable_backward, of all, of a module, of a kernel",
    "options-of-modules": "enable_backward, of all, of a module, of a kernel",
    "flags-of-arrays": "requires_grad is switched off and on",
    "flags-of-captured-arrays": "an array of a graph comes to require a gradient",
    "gradients-of-captured-arrays": "gradients of arrays of a graph are others",
    "grids": "more grids than are remembered",
    "limits": "limits of what threads save",
    "readiness-of-records": "requires_grad is switched off and on, of a tape that is kept",
}


@pytest.mark.host("native launches")
@pytest.mark.parametrize("fault", STALE)
def test_a_launcher_that_asks_once_is_seen(fault: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "fault.py").write_text(f"from tests import spoiling\nspoiling.install({fault!r})\n")
    test = f"{Path(__file__).relative_to(root)}::{test_what_is_remembered_is_not_stale.__name__}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         "--override-ini=addopts=", "-o", f"pythonpath={tmp_path}", "-p", "fault", "--rootdir",
         str(root), "-c", str(root / "pyproject.toml"), f"{test}[{SHOWN_BY[fault]}-native]",
         f"{test}[{SHOWN_BY[fault]}-python]"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
