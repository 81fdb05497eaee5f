"""`adtool check` on kernels that leave their arrays, or whose threads race (G008, G009)."""

from __future__ import annotations

from typing import Any

import pytest

KERNELS = """
import numpy as np
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

@wp.kernel
def differences(x: wp.array(dtype=float), d: wp.array(dtype=float)):
    i = wp.tid()
    d[i] = x[i + 1] - x[i]

@wp.kernel
def spread(x: wp.array(dtype=float), far: int, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i + far] = x[i]

@wp.kernel
def keep_last(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    loss[0] = x[i]

@wp.kernel
def flag(x: wp.array(dtype=float), y: wp.array(dtype=float), found: wp.array(dtype=int)):
    i = wp.tid()
    y[i] = x[i] * 2.0
    if x[i] > 1.0:
        found[0] = 1

def floats(n=4):
    return wp.array(np.arange(1.0, n + 1), dtype=float, requires_grad=True)

def zeros(n=4):
    return wp.zeros(n, dtype=float, requires_grad=True)

def taped(*launches):
    with wp.Tape() as tape:
        for kernel, dim, inputs in launches:
            wp.launch(kernel, dim=dim, inputs=inputs)
    return tape

x, y, loss = floats(), zeros(), zeros(1)
"""


def errors(report: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [
        (f["code"], f["kernel"], f["line"]) for f in report["findings"] if f["severity"] == "error"
    ]


def test_an_access_outside(adtool: Any) -> None:
    adtool.script(KERNELS + "for _ in range(3):\n    taped((differences, 4, [x, y]))\n")
    done = adtool("check", "script.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert (
        "error[G008]: kernel `differences` reads `x[4]` outside of its shape (4,) in thread 3, "
        "launch 0 of tape 0, first of 3 launches\n  --> script.py:13:12" in done.stdout
    )
    (found,) = adtool.report("script.py")["findings"]
    assert (found["code"], found["tape"], found["launch"], found["count"]) == ("G008", 0, 0, 3)
    report = adtool.report("--no-bounds", "script.py")
    assert "G008" not in [f["code"] for f in report["findings"]]


@pytest.mark.host("threads that count from the end are not known to keep apart", only=("before",))
@pytest.mark.parametrize("side", [pytest.param("-", id="before"), pytest.param("+", id="after")])
def test_launches_off_the_tape_and_adjoints(adtool: Any, side: str) -> None:
    """No heap is damaged: the run goes on to its end, and the rest of the report is there."""
    adtool.script(
        KERNELS + "wp.launch(spread, dim=4, inputs=[x, 1 << 28, y])\n"
        f"tape = taped((square, 4, [x, y]), (spread, 4, [y, {side}(1 << 28), loss]))\n"
        "tape.backward(grads={loss: wp.ones(1, dtype=float)})\n"
        "print('the end', y.numpy().tolist())\n"
    )
    done = adtool("check", "script.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("the end [1.0, 4.0, 9.0, 16.0]\n")
    report = adtool.report("script.py")
    assert errors(report) == [("G008", "spread", 18)]
    assert "launched in line" in report["findings"][0]["message"]
    square = report["launches"][0]
    assert {p["verdict"] for p in square["pairs"]} == {"pass"}


def test_a_script_that_fails_afterwards(adtool: Any) -> None:
    adtool.script(KERNELS + "taped((differences, 4, [x, y]))\nraise ValueError('so it ends')\n")
    report = adtool.report("script.py")
    assert report["exit_code"] == 2 and report["error"]["kind"] == "raised"
    assert errors(report) == [("G008", "differences", 13)]


def test_a_race_that_backward_refuses(adtool: Any) -> None:
    """E407 is a finding, not the end: what comes after it is checked as well."""
    adtool.script(
        KERNELS + "tape = taped((square, 4, [x, y]), (keep_last, 4, [y, loss]))\n"
        "tape.backward(loss)\nprint('went on')\n"
    )
    done = adtool("check", "script.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("went on\n")
    report = adtool.report("script.py")
    assert errors(report) == [("G009", "keep_last", 23)]
    (found,) = report["findings"]
    assert (
        "threads 0 and 1 of kernel `keep_last` meet in `loss[0]`: both write it"
        in (found["message"])
    )
    assert (found["tape"], found["launch"]) == (0, 1)
    assert len(report["launches"]) == 2
    plain = adtool.report("--no-bounds", "script.py")
    assert plain["exit_code"] == 2 and plain["error"]["problems"][0]["code"] == "E407"


@pytest.mark.parametrize(
    "use",
    [
        "taped((differences, 3, [x, y]))",
        "taped((spread, 4, [x, 0, y]))",
        "taped((spread, 4, [x, -4, y]))",
        "taped((flag, 4, [x, y, wp.zeros(1, dtype=int)]))",
        "taped((keep_last, 1, [x, loss]))",
    ],
)
def test_silent_on_right_programs(adtool: Any, use: str) -> None:
    adtool.script(KERNELS + use + "\n")
    report = adtool.report("script.py")
    assert report["exit_code"] == 0, report
    assert report["findings"] == []


def test_a_kernel_that_never_ends(adtool: Any) -> None:
    adtool.script(
        "import engine as wp\n\n@wp.kernel\ndef endless(x: wp.array(dtype=float)):\n"
        "    k = int(0)\n    while x[0] < 1.0:\n        k += 1\n    x[0] = float(k)\n\n"
        "wp.launch(endless, dim=1, inputs=[wp.ones(1, dtype=float)])  # compiles, and ends\n"
        + adtool.without_waiting()
        + "wp.launch(endless, dim=1, inputs=[wp.zeros(1, dtype=float)])\n"
    )
    report = adtool.report("--timeout", "600", "script.py")
    assert report["exit_code"] == 2 and report["error"]["kind"] == "timeout"


SPLAT = """
import engine as wp

@wp.kernel
def splat(at: wp.array(dtype=int), m: wp.array(dtype=float), g: wp.array(dtype=float)):
    i = wp.tid()
    a = at[i]
    g[a] += m[i]
    wp.atomic_add(g, a + 1, m[i])
    g[a + 2] = g[a + 2] + m[i]
    wp.atomic_add(g, a + 3, m[i])

m = wp.array([1.0, 2.0, 3.0, 4.0, 5.0], dtype=float, requires_grad=True)
g = wp.zeros(8, dtype=float, requires_grad=True)
with wp.Tape():
    wp.launch(splat, 5, [wp.array([1, 2, 3, 0, 1], dtype=int), m, g])
"""


def test_one_line_that_meets_atomic_updates_is_one_race(adtool: Any) -> None:
    adtool.script(SPLAT)
    report = adtool.report("script.py")
    assert errors(report) == [("G009", "splat", 10)]
    assert "wp.atomic_add(g, a + 2, m[i])" in report["findings"][0]["help"]
    adtool.script(SPLAT.replace("g[a + 2] = g[a + 2] + m[i]", "g[a + 2] = m[i]"))
    report = adtool.report("script.py")
    assert errors(report) == [("G009", "splat", 10)]
    assert adtool("check", "--fix", "script.py").returncode == 1
