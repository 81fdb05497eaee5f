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


SUMS = """
import numpy as np
import engine as wp

@wp.kernel
def total(x: wp.array(dtype=float), e: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(e, 0, x[i] * x[i])

@wp.kernel
def gathered(x: wp.array(dtype=float), at: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 3.0 * x[at[i]]

@wp.kernel
def counted(x: wp.array(dtype=float), n: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] += 2.0 * x[i]
    if x[i] > 0.0:
        wp.atomic_add(n, 0, 1)

@wp.kernel
def placed(x: wp.array(dtype=float), n: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[wp.atomic_add(n, 0, 1)] = x[i]

rng = np.random.default_rng(6)
values = rng.standard_normal(700)
x = wp.array(values, dtype=float, requires_grad=True)
y = wp.zeros(700, dtype=float, requires_grad=True)
e = wp.zeros(1, dtype=float, requires_grad=True)
at = wp.array(np.arange(700) % 3, dtype=int)
for _ in range(2):
    n = wp.zeros(1, dtype=int)
    with wp.Tape() as tape:
        LAUNCHES
    tape.backward(grads={e: wp.ones_like(e), y: wp.array(values, dtype=float)})
"""


def sums(tool: Any, *launches: str) -> None:
    tool.script(SUMS.replace("LAUNCHES", "\n        ".join(f"wp.launch({c})" for c in launches)))


def line_of(text: str) -> int:
    return next(k for k, s in enumerate(SUMS.splitlines(), 1) if text in s)


def test_sums_that_are_not_the_same_twice(with_gpus: Any) -> None:
    sums(with_gpus, "total, 700, [x, e]", "gathered, 700, [x, at, y]", "counted, 700, [x, n, y]")
    report = with_gpus.report("--device", "cuda", "script.py")
    found = report["findings"]
    assert [(f["code"], f["severity"], f["line"]) for f in found] == [
        ("G007", "note", line_of("wp.atomic_add(e")), ("G007", "note", line_of("x[at[i]]")),
    ]  # fmt: skip
    first, second = (f["message"] for f in found)
    assert (
        "`total` gives different last digits in each run"
    ) in first and "its results differ by" in first
    assert "of the largest value of 'e' from run to run on cuda:0" in first
    assert "its gradients differ by" in second and "'x'" in second
    assert "several threads add floats to an element of 'e'" in found[0]["notes"]
    pairs = [p["verdict"] for launch in report["launches"] for p in launch["pairs"]]
    assert pairs and set(pairs) == {"pass"} and report["exit_code"] == 0
    assert with_gpus.report("--device", "cpu", "script.py")["findings"] == []


def test_an_order_is_asked_for(with_gpus: Any) -> None:
    sums(with_gpus, "total, 700, [x, e]", "gathered, 700, [x, at, y]", "placed, 700, [x, n, y]")
    text = (with_gpus.folder / "script.py").read_text()
    with_gpus.script(text.replace("rng =", "wp.config.deterministic = True\nrng ="))
    report = with_gpus.report("--device", "cuda", "script.py")
    assert report["findings"] == [] and report["exit_code"] == 0


def test_places_in_the_order_of_arrival(with_gpus: Any) -> None:
    """More than rounding: no derivative can be compared."""
    sums(with_gpus, "placed, 700, [x, n, y]", "total, 700, [x, e]")
    report = with_gpus.report("--device", "cuda", "script.py")
    worst, *others = [f for f in report["findings"] if f["code"] == "G007"]
    assert worst["severity"] == "warning" and worst["kernel"] == "placed"
    assert "its results differ by" in worst["message"] and "on cuda:0" in worst["message"]
    assert [f["kernel"] for f in others] == ["total"]
