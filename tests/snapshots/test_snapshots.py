"""What lowering, the AD passes and code generation make of typical kernels, kept as text.

A snapshot that changed on purpose is written anew with

    pytest tests/snapshots --update-snapshots

and its diff belongs to the review.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.snapshots.kernels import KERNELS
from tests.snapshots.render import render

DATA = Path(__file__).parent / "data"
SUFFIXES = (".ir", ".cpp")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", KERNELS)
def test_snapshot(name: str, suffix: str, update: bool) -> None:
    path = DATA / f"{name}{suffix}"
    got = render(KERNELS[name])[suffix]
    if update:
        path.write_text(got, encoding="utf-8", newline="\n")
        return
    assert path.is_file(), f"no snapshot {path.name}: run pytest with --update-snapshots"
    kept = path.read_text(encoding="utf-8")
    if got != kept:
        lines = difflib.unified_diff(
            kept.splitlines(), got.splitlines(), path.name, "now", lineterm=""
        )
        pytest.fail("\n".join(lines), pytrace=False)


def test_every_snapshot_is_of_a_kernel() -> None:
    assert {p.name for p in DATA.iterdir()} == {n + s for n in KERNELS for s in SUFFIXES}


def test_text_is_the_same_in_every_process(root: Path) -> None:
    """The cache looks kernels up by a hash of this text, so nothing of the process may leak in."""
    said = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.snapshots.render"],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(done.stdout)
    here = [text for kernel in KERNELS.values() for text in render(kernel).values()]
    assert said[0] == said[1] == "".join(f"{text}\n" for text in here)
