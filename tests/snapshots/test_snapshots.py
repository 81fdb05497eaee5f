"""The results of lowering, AD passes and code generation for typical kernels, as text.

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
# The text of a few kernels that show what C++ the emitter writes; all else shows in the IR.
IN_CPP = ("branches_in_a_loop", "custom_gradient", "four_axes", "multiply_in_place", "scatter")
# What the CUDA dialect makes of a stack, a journal and atomics.
IN_CUDA = ("multiply_in_place", "scatter")
SNAPSHOTS = [
    *((name, ".ir") for name in KERNELS),
    *((name, ".cpp") for name in IN_CPP),
    *((name, ".cu") for name in IN_CUDA),
]


@pytest.mark.parametrize(("name", "suffix"), SNAPSHOTS)
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
    assert {p.name for p in DATA.iterdir()} == {name + suffix for name, suffix in SNAPSHOTS}


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
