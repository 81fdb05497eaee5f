"""`pytest --hot`: faults of the compiled launcher make tests fail that hold nothing themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_as_run import HEAD, PROGRAMS
from tests.spoiling import SPOILINGS

# What each fault shows in, by its name; in the first one no gradient is wrong.
BODIES = {
    "argument-wrong": """
a, z = floats([1, 2, 3, 4]), zeros(4)
with wp.Tape() as t:
    wp.launch(shift, dim=4, inputs=[a, 0.5, z])
t.backward(grads={z: wp.ones_like(z)})
""",
    **PROGRAMS,
}
MORE = """
@wp.kernel
def shift(a: wp.array(dtype=float), s: float, z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = a[i] + s
"""
NONE = """
def test_no_pass():
    assert zeros(3).shape == (3,)
"""


def text(body: str, name: str = "program") -> str:
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"{HEAD}{MORE}\ndef test_{name}():\n{lines}"


def run(root: Path, folder: Path, program: str, *more: str) -> subprocess.CompletedProcess[str]:
    test = folder / "test_it.py"
    test.write_text(program)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
               "--override-ini=addopts=", "-p", "tests.conftest", "--rootdir", str(root),
               "-c", str(root / "pyproject.toml"), "--hot", *more, str(test)]  # fmt: skip
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def spoiled(folder: Path, name: str) -> list[str]:
    """Options that have the native functions made with a fault."""
    (folder / "fault.py").write_text(f"from tests import spoiling\nspoiling.install({name!r})\n")
    return ["-o", f"pythonpath={folder}", "-p", "fault"]


def test_all_faults_have_a_program() -> None:
    assert BODIES.keys() == SPOILINGS.keys()


@pytest.mark.host("native launches")
@pytest.mark.parametrize("name", SPOILINGS)
def test_a_fault_of_the_launcher_fails_a_test(name: str, root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, text(BODIES[name]))
    assert done.returncode == 0 and "hot: 1 tests compared" in done.stdout, done.stdout
    done = run(root, tmp_path, text(BODIES[name]), *spoiled(tmp_path, name))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "natively, backward pass" in done.stdout and "1 failed" in done.stdout


@pytest.mark.host("native launches")
@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_a_session_that_compares_nothing_fails(
    workers: list[str], root: Path, tmp_path: Path
) -> None:
    """Nothing natively: a test without passes, one by Python alone, one that is run once."""
    stays = BODIES["argument-wrong"].replace("with", "wp.config.tape_snapshots = 'eager'\nwith")
    cold = 'import pytest\n@pytest.mark.cold("it says so")\ndef test_cold():\n    assert True\n'
    done = run(root, tmp_path, text(stays, "stays") + NONE + cold, *workers)
    assert done.returncode == 1 and "3 passed" in done.stdout, done.stdout + done.stderr
    assert "3 compared nothing: 1 have no such pass, 1 stay with Python, 1 run once" in done.stdout
    assert "FAILED, since nothing was compared" in done.stdout
    done = run(root, tmp_path, text(BODIES["hold-released"]) + NONE + cold, *workers)
    assert done.returncode == 0 and "1 tests compared 6 backward passes" in done.stdout, done.stdout
