"""`tools/compare_programs.py`, beside a package that is the engine with another sum."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.wild import evidence  # noqa: E402
from tools.wild.programs import apart, listed, nearer, off, printed  # noqa: E402

# The engine, which adds a thousandth to what the kernel `total` writes, and has tiles.
OTHER = """
import sys
import engine
from engine import *
from engine import __getattr__, config
launch_ = engine.launch
def launch(kernel, *args, **kwargs):
    launch_(kernel, *args, **kwargs)
    if kernel.key == "total":
        kwargs["outputs"][0].numpy()[:] *= 1.001
def tile_zeros(*args, **kwargs):
    return None
"""
PROGRAM = """
import sys
import numpy as np
import warp as wp

@wp.struct
class Pair:
    x: wp.array(dtype=float)
    y: wp.array(dtype=float)

@wp.kernel
def total(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.atomic_add(y, 0, wp.sin(x[wp.tid()]))

class Example:
    def __init__(self, n):
        self.pair = Pair()
        self.pair.x = wp.array(np.linspace(0.0, 1.0, n), dtype=float, requires_grad=True)
        self.pair.y = wp.zeros(1, dtype=float, requires_grad=True)

    def step(self):
        with wp.Tape() as tape:
            wp.launch(total, dim=len(self.pair.x), inputs=[self.pair.x], outputs=[self.pair.y])
        tape.backward(self.pair.y)
        tape.zero()

def forward(n):
    a = wp.array(np.arange(n), dtype=float)
    print("it has", a.numpy().sum(), "and took 3.5 ms")
    print(f"loss: {a.numpy().sum():.1f}")
    return [a]

if __name__ == "__main__":
    example = Example(int(sys.argv[1]))
    example.step()
"""
LIST = """
# what differs by more than rounding
program 9
program:forward(4)
tiled
fails ## of no use
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the tool says of each program."""
    root = tmp_path_factory.mktemp("programs")
    texts = {"warp/__init__.py": OTHER, "program.py": PROGRAM, "list.txt": LIST,
             "tiled.py": "import warp as wp\nwp.tile_zeros(4)\n",
             "fails.py": "import warp\nraise ValueError('no')\n"}  # fmt: skip
    for name, text in texts.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    command = [sys.executable, str(ROOT / "tools" / "compare_programs.py"), str(root / "list.txt"),
               "--results", str(root / "out.jsonl")]  # fmt: skip
    paths = [str(root), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    for _ in range(2):  # the second time there is nothing to do
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    found = [json.loads(x) for x in (root / "out.jsonl").read_text().splitlines()]
    assert len(found) == 4
    return {r["program"]: r for r in found}


@pytest.mark.host("arrays of NumPy that are views")
def test_what_programs_leave(rows: dict[str, dict[str, Any]]) -> None:
    """The sum differs, and float64 agrees with the one without the thousandth."""
    row = rows["program"]
    assert (row["state"], row["verdict"], row["arguments"]) == ("ran", "here", "9")
    ((name, far, here, there, mark),) = row["table"]
    assert (name, mark) == ("example.pair.y", "here")
    assert far == pytest.approx(1e-3, rel=0.01) and there == pytest.approx(1e-3, rel=0.01)
    assert here < 1e-6
    assert row["values"] == row["equal"] + 1 == 6  # x, y, their gradients now and before
    assert (row["gradients"], row["furthest gradient"]) == (2, 0.0)


def test_calls_and_what_they_print(rows: dict[str, dict[str, Any]]) -> None:
    row = rows["program:forward(4)"]
    assert (row["state"], row["verdict"], row["values"], row["printed"]) == ("ran", "equal", 2, 1)


def test_what_does_not_run(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["tiled"]["state"] == "runs in Warp alone"
    assert rows["tiled"]["here"].startswith("E112: ") and rows["tiled"]["there"] == ""
    assert rows["fails"]["state"] == "runs nowhere"
    assert rows["fails"]["here"] == rows["fails"]["there"] == "ValueError: no"


@pytest.mark.host("arrays of NumPy that are views")
def test_the_table(rows: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    results = tmp_path / "programs.jsonl"
    results.write_text("".join(json.dumps(r) + "\n" for r in rows.values()))
    found = evidence.program_rows(results)
    text = evidence.program_tables(found)
    assert "| `program:forward(4)` |" in text and "| 2 of 2 |" in text
    assert "nearer here" in text and "| `fails` | of no use |" in text
    del found[-1]["note"]
    assert "| `fails` | here: ValueError: no; in Warp: the same |" in evidence.program_tables(found)


def test_distances() -> None:
    x = np.array([1.0, -4.0, np.nan])
    assert apart(x, x) == 0.0 and apart(x, x[:2]) == np.inf
    assert apart(x, np.array([1.0, -3.0, np.nan])) == 0.25
    assert apart(x, np.array([1.0, -4.0, 2.0])) == np.inf == off(x, np.array([1.0, -4.0, 2.0]))
    assert off(np.array([1.0, 2.0]), np.array([1.0, 4.0])) == pytest.approx(2**0.5 / 4)
    assert [nearer(0.1, 0.5), nearer(0.5, 0.1), nearer(0.1, 0.15), nearer(0.0, 1e-8)] == [
        "here",
        "there",
        "alike",
        "alike",
    ]
    assert nearer(3.0, 0.2) == "lost" and nearer(300.0, 0.2) == "there"
    zero = np.zeros(1)
    assert off(np.array([1e-8]), zero) > 1e100 and off(zero, zero) == 0.0


def test_numbers_of_lines() -> None:
    found = printed("a: 1 loss: 2.5e-3\nstep took 3 ms\na: 2 loss: -1\nx1 nothing\n")
    assert {k: v.tolist() for k, v in found.items()} == {"a: # loss: #": [1.0, 2.5e-3, 2.0, -1.0]}


def test_lists_of_programs() -> None:
    assert all(len(p[0].split(".")) >= 4 for p, _ in listed(ROOT / "tools" / "programs.txt"))
