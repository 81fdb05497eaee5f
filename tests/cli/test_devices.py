"""`--device`: what runs on a GPU is checked as what runs on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

# In each process of the tool, before anything else: the devices that tests of GPUs have.
EMULATED = """
from tests.backend.cuda.emulated import emulated
kept = emulated()
kept.__enter__()
"""

PROGRAM = """
import numpy as np
import engine as wp

@wp.kernel
def energy(x: wp.array(dtype=float), e: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i + 1] - x[i]
    wp.atomic_add(e, 0, d * d)

@wp.kernel
def moved(x: wp.array(dtype=float), index: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[index[i]] = x[i]

@wp.kernel
def last(y: wp.array(dtype=float), z: wp.array(dtype=float)):
    z[0] = y[wp.tid()]

@wp.kernel
def roots(x: wp.array(dtype=float), low: float, e: wp.array(dtype=float)):
    wp.atomic_add(e, 0, wp.sqrt(x[wp.tid()] - low))

print(wp.get_device())
x = wp.array(np.float32([1, 2, 2, 4]), dtype=float, requires_grad=True)
y = wp.zeros(4, dtype=float, requires_grad=True)
z = wp.zeros(1, dtype=float, requires_grad=True)
e = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(energy, dim=N, inputs=[x, e])
    wp.launch(moved, dim=4, inputs=[x, wp.array(INDEX, dtype=int), y])
    wp.launch(roots, dim=4, inputs=[x, LOW, e])
    if LOW:
        wp.launch(last, dim=4, inputs=[y, z])
tape.backward(grads={e: wp.ones_like(e), z: wp.ones_like(z)})
"""


def script(tool: Any, n: int, index: str, low: float) -> None:
    text = PROGRAM.replace("=N,", f"={n},").replace("INDEX", index)
    tool.script(text.replace("LOW", str(low)))


@pytest.fixture
def with_gpus(adtool: Any, root: Path) -> Any:
    """The tool where there is one GPU, which is emulated."""
    adtool.script(EMULATED, "site/sitecustomize.py")
    adtool.env["PYTHONPATH"] = f"{adtool.folder / 'site'}:{root}"
    return adtool


def findings(report: dict[str, Any]) -> Any:
    return [
        {k: v for k, v in f.items() if k not in ("id", "fingerprint")} for f in report["findings"]
    ]


def test_what_is_found_is_found_on_a_gpu(with_gpus: Any) -> None:
    """Bounds, races of indices and of all threads (whose gradient a GPU refuses), NaN."""
    script(with_gpus, 4, "[0, 1, 3, 3]", 1.0)
    want = with_gpus.report("--device", "cpu", "script.py")
    got = with_gpus.report("--device", "cuda", "script.py")
    codes = [f["code"] for f in want["findings"]]
    assert {"G002", "G008"} <= set(codes) and codes.count("G009") == 2
    assert findings(got) == findings(want)
    assert (want["device"], got["device"]) == ("cpu", "cuda") and got["exit_code"] == 1


def test_a_right_program_on_a_gpu(with_gpus: Any) -> None:
    script(with_gpus, 3, "[3, 1, 0, 2]", 0.0)
    done = with_gpus("check", "--device", "cuda:0", "script.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cuda:0" in done.stdout.splitlines()[0]


@pytest.mark.host("how many GPUs there are")
def test_a_gpu_that_is_not_there(with_gpus: Any) -> None:
    with_gpus.script("raise SystemExit(7)")
    done = with_gpus("check", "--device", "cuda:1", "script.py")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "--device cuda:1: device 'cuda:1' is not available (there is one GPU)" in done.stderr
