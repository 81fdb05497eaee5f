"""Options of `adtool check` on a program with real kernels."""

from __future__ import annotations

import json
from typing import Any

import pytest

WRONG = """
import engine as wp

@wp.func
def cube(x: float):
    return x * x * x

@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * adj_ret

@wp.kernel
def cubes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])

@wp.kernel
def halves(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 0.5 * x[i]

x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
y, z = wp.zeros_like(x), wp.zeros_like(x)
for step in range(2):
    with wp.Tape():
        wp.launch(halves, dim=3, inputs=[x], outputs=[y])
        wp.launch(cubes, dim=3, inputs=[y], outputs=[z])
"""


@pytest.fixture
def wrong(adtool: Any) -> Any:
    adtool.script(WRONG)
    return adtool


def places(report: dict[str, Any]) -> list[tuple[int, int]]:
    return [(x["tape"], x["index"]) for x in report["launches"]]


def test_a_choice_of_tapes_and_launches(wrong: Any) -> None:
    report = wrong.report("--tape", "1", "script.py")
    assert places(report) == [(1, 0), (1, 1)] and [e["tape"] for e in report["end_to_end"]] == [1]
    report = wrong.report("--launch", "0", "script.py")
    assert places(report) == [(0, 0), (1, 0)] and report["ok"]
    assert [e["verdict"] for e in report["end_to_end"]] == ["skipped", "skipped"]
    report = wrong.report("--launch", "1:1", "script.py")
    assert places(report) == [(1, 1)]
    assert {(f["code"], f["tape"]) for f in report["findings"]} >= {("G001", 1), ("G012", 1)}
    done = wrong("check", "--tape", "7", "script.py")
    assert done.returncode == 2 and "the script made 2 tapes, 0 to 1" in done.stderr
    done = wrong("check", "--launch", "0:9", "script.py")
    assert done.returncode == 2 and "the tapes have 2, 2 launches" in done.stderr
    done = wrong("check", "--launch", "x", "script.py")
    assert done.returncode == 2 and "`x` is not the number of a launch" in done.stderr


def test_no_end_to_end_is_said(wrong: Any) -> None:
    done = wrong("check", "--no-end-to-end", "--launch", "0", "script.py")
    assert done.returncode == 0
    assert done.stdout.endswith("passed (tapes as wholes not checked)\n")


def test_suppression(wrong: Any) -> None:
    done = wrong("check", "--ignore", "G001", "script.py")
    assert done.returncode == 0 and "passed (1 suppressed)" in done.stdout
    assert "error[G001]" not in done.stdout
    (found,) = wrong.report("--select", "G002,G005", "script.py")["findings"]
    assert (found["code"], found["suppressed"], found["suppressed_by"]) == (
        "G001", True, "--select",
    )  # fmt: skip
    done = wrong("check", "--ignore", "G999", "script.py")
    assert done.returncode == 2 and "unknown code 'G999'" in done.stderr
    place = "def adj_cube(x: float, adj_ret: float):"
    wrong.script(WRONG.replace(place, place + "  # adtool: ignore[G001]"))
    report = wrong.report("--gate", "note", "script.py")
    assert report["ok"] and [f["suppressed_by"] for f in report["findings"]] == ["comment"]


def test_quiet_and_durations(wrong: Any) -> None:
    done = wrong("check", "-q", "--durations", "2", "script.py")
    assert done.stdout.startswith("error[G001]") and "verdict" not in done.stdout
    slow = done.stdout.split("slowest checks\n")[1].split("\n\n")[0].splitlines()
    assert len(slow) == 2 and all(" s  " in line for line in slow)
    report = wrong.report("--durations", "99", "script.py")
    seconds = [d["seconds"] for d in report["durations"]]
    assert len(seconds) == 6 and seconds == sorted(seconds, reverse=True)
    assert {(d["tape"], d["launch"]) for d in report["durations"]} == {
        (t, i) for t in (0, 1) for i in (-1, 0, 1)
    }


def test_a_report_in_a_file(wrong: Any) -> None:
    wrong.script(WRONG + "print('from the script')\n")
    done = wrong("check", "--out", "report.json", "--format", "json", "script.py")
    assert done.returncode == 1
    assert done.stdout.startswith("from the script\n") and "failed (1 error)" in done.stdout
    assert json.loads((wrong.folder / "report.json").read_text())["exit_code"] == 1
    done = wrong("check", "--out", "report.txt", "--exit-zero", "-q", "script.py")
    assert (done.returncode, done.stdout) == (0, "from the script\n")
    text = (wrong.folder / "report.txt").read_text()
    assert "error[G001]" in text and "\x1b" not in text
    done = wrong("check", "--out", "no/report.txt", "script.py")
    assert done.returncode == 2 and "`no/report.txt` cannot be written" in done.stderr


def test_second_derivatives(wrong: Any) -> None:
    report = wrong.report("--order", "2", "--kernel", "halves", "script.py")
    pairs = {(p["input"], p["output"]) for x in report["launches"] for p in x["pairs"]}
    assert ("x", "y") in pairs and any(o.startswith("adj_") for _, o in pairs)


def test_settings_of_a_project(wrong: Any) -> None:
    project = wrong.folder / "pyproject.toml"
    project.write_text('[tool.adtool]\nignore = ["G001"]\nformat = "json"\ntape = [0]\n')
    done = wrong("check", "script.py")
    report = json.loads(done.stdout)
    assert done.returncode == 0 and {x["tape"] for x in report["launches"]} == {0}
    assert (
        "error[G001]" in wrong("check", "--format", "text", "--ignore", "G002", "script.py").stdout
    )
    done = wrong("check", "--bogus", "script.py")
    assert json.loads(done.stdout)["error"]["kind"] == "usage"
    project.write_text("[tool.adtool]\nseed = -1\n")
    done = wrong("check", "script.py")
    assert done.returncode == 2 and "pyproject.toml: seed: must be greater" in done.stderr
    project.write_text("[tool.adtool]\nignored = 1\n")
    done = wrong("check", "script.py")
    assert done.returncode == 2 and "did you mean ignore?" in done.stderr
    assert wrong("explain", "G001").returncode == 0
