"""`pytest --device`: what runs there, and what is left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import os, subprocess, sys
from tests.conftest import ROOT
import pytest
import engine as wp

@wp.kernel
def last(y: wp.array(dtype=float)):
    y[0] = float(wp.tid())

@wp.kernel
def running(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = wp.atomic_add(y, 0, x[i] * y[0])

def test_there():
    y = wp.zeros(1)
    wp.launch(last, 1, [y])
    assert str(y.device) == "emulated-cuda" and not wp.get_device().is_cpu and y.list() == [0]

def test_in_a_child_process():
    program = "import sys, engine as wp; print(wp.zeros(1).device, 'tests' in sys.modules)"
    for env in (None, {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}):
        done = subprocess.run([sys.executable, "-c", program], env=env, cwd=ROOT,
                              capture_output=True, text=True)
        assert done.stdout.split() == ["emulated-cuda", "False"], done.stderr

@pytest.mark.host("a reason")
def test_of_the_host():
    assert False

@pytest.mark.host("views", only=("b",))
@pytest.mark.parametrize("how", ["a", "b"])
def test_partly(how):
    assert how == "a"

def test_refused():
    x, y = wp.ones(3, requires_grad=True), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(running, 3, [x], [y])
    tape.backward(y)

def test_other_errors_are_failures():
    raise ValueError
"""


def run(root: Path, program: Path, device: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
               "--override-ini=addopts=", "-p", "tests.conftest", "--rootdir", str(root),
               "-c", str(root / "pyproject.toml"), "--device", device, "-rs",
               *more, str(program)]  # fmt: skip
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_what_runs_there_and_what_is_left_out(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "test_it.py"
    program.write_text(TESTS)
    done = run(root, program, "emulated-cuda", "-p", "no:xdist")
    assert "1 failed, 3 passed, 3 skipped" in done.stdout, done.stdout + done.stderr
    for why in ("of the host: a reason", "of the host: views", "refused on a GPU: "):
        assert why in done.stdout
    assert "invalid choice" in run(root, program, "cuda-of-tomorrow").stderr


@pytest.mark.parametrize("asks", ["", "wp.zeros(1)"])
def test_a_conftest_may_come_before_the_option(root: Path, tmp_path: Path, asks: str) -> None:
    """As that of a folder does in a process of `-n`, a child of one that is on the device."""
    (tmp_path / "conftest.py").write_text(f"import engine as wp\n{asks}\n")
    program = tmp_path / "test_it.py"
    program.write_text(TESTS)
    done = run(root, program, "emulated-cuda", "-n", "1", "-k", "there or refused")
    assert "1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
