"""`adtool check --taylor`: a table, JSON and a plot of remainders."""

from __future__ import annotations

from typing import Any

import pytest

SCRIPT = """
import engine as wp

@wp.func
def cube(x: float):
    return x * x * x

@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * x * adj_ret

@wp.kernel
def waves(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i])

@wp.kernel
def cubes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])

def zeros():
    return wp.zeros(2, dtype=float, requires_grad=True)

x, y, z = wp.array([0.5, 1.0], dtype=float, requires_grad=True), zeros(), zeros()
with wp.Tape():
    wp.launch(waves, dim=2, inputs=[x], outputs=[y])
    wp.launch(cubes, dim=2, inputs=[y], outputs=[z])
"""


def test_a_table_and_a_plot(adtool: Any) -> None:
    adtool.script(SCRIPT)
    done = adtool("check", "--taylor", "--plot", "remainders.svg", "script.py")
    assert done.returncode == 1, done.stderr
    for words in (
        "Taylor test of tape 0, launch 0, kernel waves",
        "Taylor test of tape 0, as a whole",
        "expected 2: pass",
        "expected 2: fail (it shrinks as with a wrong derivative, or at a kink)",
        "floor",
    ):
        assert words in done.stdout, done.stdout
    plot = (adtool.folder / "remainders.svg").read_text()
    assert plot.count("<svg") == 1


def test_as_json_with_second_derivatives(adtool: Any) -> None:
    adtool.script(SCRIPT)
    report = adtool.report("--taylor", "--order", "2", "--kernel", "waves", "script.py")
    (found,) = report["taylor"]  # of a part of the tape, there is no whole
    assert (found["kernel"], found["verdict"], found["expected"]) == ("waves", "pass", 3)
    assert found["rate"] == pytest.approx(3.0, abs=0.1)
    assert found["rows"][0]["rates"] == [None, None, None]
    assert [len(row["remainders"]) for row in found["rows"]] == [3] * len(found["rows"])
    warnings = [f for f in report["findings"] if f["code"] == "G012"]
    assert any(f["severity"] == "warning" and "--kernel" in f["message"] for f in warnings)
    assert report["end_to_end"][0]["verdict"] == "skipped"


def test_without_it_nothing_is_said(adtool: Any) -> None:
    adtool.script(SCRIPT)
    assert adtool.report("script.py")["taylor"] == []


def test_a_plot_of_another_kind_is_refused_before_anything_runs(fails: Any) -> None:
    error = fails("raise SystemExit(3)", "--taylor", "--plot", "remainders.xyz")
    assert "`remainders.xyz` cannot be written: its name" in error
    error = fails("raise SystemExit(3)", "--plot", "remainders.png")
    assert "add --taylor" in error
