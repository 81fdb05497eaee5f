"""`tools/measure_sources.py`: what it says of a folder of sources."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "measure_sources.py"

FILES = {
    "__init__.py": "",
    "good.py": """
import warp as wp
from typing import Any

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

@wp.kernel
def turned(m: wp.array(dtype=Any), v: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    v[i] = wp.transpose(m[i]) * v[i]

@wp.kernel
def gathered(source: Any, out: Any):
    i, j = wp.tid()
    out[i, j] = source[j]

def make(n):
    @wp.kernel
    def scaled(x: wp.array(dtype=float)):
        x[wp.tid()] = 2.0
    return scaled
""",
    "bad.py": """
import warp as wp
from pack.good import make

made = make(3)

@wp.kernel
def wrong(x: wp.array(dtype=float)):
    x[0] = x.nothing

@wp.kernel
def summed(x: wp.array(dtype=float)):
    t = wp.tile_load(x, shape=4)
""",
    "stood.py": "import not_installed_anywhere.part as part\nclass A(part.Base): pass\n",
    "raises.py": "import warp as wp\n@wp.kernel\ndef late():\n    pass\nraise ValueError('no')\n",
    "hangs.py": "while True:\n    pass\n",
    "leaves.py": "import os\nos._exit(3)\n",
    "left_out.py": "raise RuntimeError\n",
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """The data and the text that the tool makes of a package."""
    root = tmp_path_factory.mktemp("wild")
    folder = root / "pack"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    done = subprocess.run(
        [sys.executable, str(TOOL), str(folder), "--json", str(root / "out.json"),
         "--skip", "pack.left_*", "--seconds", "3"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((root / "out.json").read_text()), done.stdout


def test_modules_have_a_reason(measured: tuple[dict[str, Any], str]) -> None:
    data, text = measured
    modules = {m["name"]: m for m in data["modules"]}
    assert {n for n, m in modules.items() if m["ok"]} == {
        "pack", "pack.good", "pack.bad", "pack.stood",
    }  # fmt: skip
    assert modules["pack.raises"]["cause"] == "ValueError: no"
    assert modules["pack.raises"]["place"].endswith("raises.py:5")
    assert "3 s" in modules["pack.hangs"]["cause"]
    assert "ended the process" in modules["pack.leaves"]["cause"]
    assert modules["pack.stood"]["stood_in"] == ["not_installed_anywhere"]
    assert "modules imported: 4 of 7" in text
    assert "stood in for: not_installed_anywhere" in text


def test_kernels_are_counted_once_and_by_cause(measured: tuple[dict[str, Any], str]) -> None:
    data, text = measured
    kernels = {k["key"].rsplit("__", 1)[-1]: k for k in data["kernels"]}
    assert {n: (k["ok"], k["adjoint"]) for n, k in kernels.items()} == {
        "square": (True, True), "turned": (True, True), "gathered": (True, True),
        "scaled": (True, True), "wrong": (False, None), "summed": (False, None),
        "late": (False, None),
    }  # fmt: skip
    assert kernels["summed"]["apart"] == "tiles" and "with tiles: 0 of 1 lowered" in text
    assert kernels["turned"]["generic"] and "mat33" in kernels["turned"]["instance"]
    assert kernels["wrong"]["place"].endswith("bad.py:9") and "nothing" in kernels["wrong"]["cause"]
    assert kernels["late"]["cause"] == "its module is not imported"
    assert "kernels lowered: 4 of 6 (66.7 %)" in text
    assert data["nested_and_not_made"] == 0
