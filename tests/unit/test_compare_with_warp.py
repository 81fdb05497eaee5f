"""`tools/compare_with_warp.py`, beside a package that is the engine with other gradients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.wild.beside import judged  # noqa: E402

# The engine, which doubles the gradient of every array called `spoiled` and forgets to run `idle`.
OTHER = """
import sys
import engine
from engine import *
from engine import __getattr__, config
launch_ = engine.launch
class Tape(engine.Tape):
    def backward(self, *args, **kwargs):
        super().backward(*args, **kwargs)
        for x in spoiled:
            if getattr(x, "grad", None) is not None:
                x.grad.assign(x.grad.numpy() * 2.0)
spoiled = []
def launch(kernel, *args, **kwargs):
    if "idle" not in kernel.key:
        launch_(kernel, *args, **kwargs)
    if "spoiled" in kernel.key:
        spoiled.extend(kwargs["inputs"])
"""
KERNELS = """
from typing import Any
import warp as wp

@wp.struct
class Body:
    mass: float
    at: wp.vec3

@wp.kernel
def same(x: wp.array(dtype=float), bodies: wp.array(dtype=Body), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[i, j] = x[i] * bodies[j].mass + wp.length(bodies[j].at)

@wp.kernel
def spoiled(x: wp.array(dtype=Any), q: wp.quat, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = float(x[i] * x[i]) + q[0]

@wp.kernel
def idle(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 5.0

@wp.kernel
def outside(x: wp.array(dtype=float)):
    x[wp.tid() + 1000] = 1.0

@wp.kernel
def tiled(x: wp.array(dtype=float)):
    t = wp.tile_load(x, shape=4)
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the tool says of each kernel."""
    root = tmp_path_factory.mktemp("beside")
    for name, text in (("warp/__init__.py", OTHER), ("theirs/__init__.py", KERNELS)):
        path = root / name
        path.parent.mkdir()
        path.write_text(text)
    command = [sys.executable, str(ROOT / "tools" / "compare_with_warp.py"), str(root / "theirs"),
               "--results", str(root / "out.jsonl")]  # fmt: skip
    paths = [str(root), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    for more in ([], ["--retry", "skipped"]):  # two rows again
        done = subprocess.run(
            [*command, *more], env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    found = [json.loads(x) for x in (root / "out.jsonl").read_text().splitlines()]
    assert len(found) == 5
    return {r["kernel"].rsplit(":", 1)[1]: r for r in found}


def test_who_is_right(rows: dict[str, dict[str, Any]]) -> None:
    assert {n: (r["state"], r.get("forward"), r.get("gradient")) for n, r in rows.items()} == {
        "same": ("ran", "equal", "equal"),
        "spoiled": ("ran", "equal", "right here"),
        "idle": ("ran", "right here", "right here"),
        "outside": ("skipped", None, None),
        "tiled": ("skipped", None, None),
    }
    leaf, _, here, there, exact, mark = rows["spoiled"]["table"][0]
    assert leaf == "x" and mark == "right here" and there == pytest.approx(2.0 * here)
    assert here == pytest.approx(exact, rel=1e-3)
    assert "outside" in rows["outside"]["cause"] and "tiles" in rows["tiled"]["cause"]


@pytest.mark.parametrize(
    ("pair", "near", "verdict"),
    [
        ((2.0, 4.0), (2.0, 2.0, 2.0), "right here"),
        ((4.0, 2.0), (2.0, 2.0, 2.0), "right there"),
        ((2.0001, 2.0), (2.0, 2.0, 2.0), "rounding"),
        ((0.0, 1.0), (0.5, 1.0, 0.0), "kink"),
        ((0.0, 7.0), (0.5, 1.0, 0.0), "right here"),
        ((3.0, 7.0), (0.5, 0.5, 0.5), "undecided"),
        ((3.0, 7.0), (float("nan"), 0.5, 0.5), "undecided"),
        ((2.0, 0.0), (0.0, 0.0, 0.0, 1.0), "undecided"),
    ],
)
def test_judgement(pair: tuple[float, float], near: tuple[float, ...], verdict: str) -> None:
    row = [*near, 0.0][:4]
    assert judged(pair, [row, row], 2.0) == verdict
