"""`adtool graph`, from a script to a picture."""

from __future__ import annotations

import os
import re

import pytest

from tests.cli.conftest import Tool

SCRIPT = """
import sys
import numpy as np
import engine as wp

@wp.kernel
def scale(x: wp.array(dtype=float), by: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * by

@wp.kernel
def total(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i])

def main(steps, broken):
    states = [wp.ones(4, requires_grad=True) for _ in range(steps + 1)]
    loss = wp.zeros(1, requires_grad=True)
    unused = wp.ones(4, requires_grad=True)
    aside = wp.zeros(4, requires_grad=True)
    with wp.Tape() as tape:
        for i in range(steps):
            wp.launch(scale, 4, [states[i], 0.0 if i == broken else 1.0], [states[i + 1]])
        wp.launch(scale, 4, [unused, 1.0], [aside])
        wp.launch(total, 4, [states[steps]], [loss])
    tape.backward(loss)
    print("the script's own words")

main(int(sys.argv[1]), int(sys.argv[2]))
"""


def test_a_script_is_run_and_drawn_and_drawn_again(adtool: Tool) -> None:
    adtool.script(SCRIPT)
    done = adtool("graph", "script.py", "--", "8", "-1")
    assert done.returncode == 0, done.stderr
    assert "the script's own words" in done.stderr
    assert "repeated 8x" in done.stdout
    again = adtool("graph")
    assert (again.stdout, again.stderr) == (done.stdout, "")
    unchecked = adtool("graph", "--no-check", "script.py", "8", "-1")
    assert "repeated 8x" in unchecked.stdout


def test_check_leaves_something_to_draw(adtool: Tool) -> None:
    adtool.script(SCRIPT)
    assert adtool("check", "script.py", "--", "3", "-1").returncode == 0
    assert "repeated 3x" in adtool("graph").stdout


def test_check_goes_on_where_nothing_can_be_written(adtool: Tool) -> None:
    adtool.script(SCRIPT)
    (adtool.folder / ".adtool").write_text("a file is in the way")
    done = adtool("check", "script.py", "--", "2", "-1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_findings_are_red(adtool: Tool, root: object) -> None:
    sample = os.path.join(str(root), "samples", "broken_wrong_gradient.py")
    done = adtool("graph", sample, "--out", "tape.dot")
    assert done.returncode == 0, done.stderr
    assert "first problem: launch 0:1 of kernel `robust_loss`: G001 wrong-gradient" in done.stdout
    text = (adtool.folder / "tape.dot").read_text()
    hit = re.search(r'BGCOLOR="(#\w+)"><B>robust_loss', text)
    assert hit is not None
    assert hit[1] == "#f4a3a0"
    assert "red: an error was found here" in text
    for kind, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        done = adtool("graph", "--out", f"tape.{kind}")
        assert done.returncode == 0, done.stderr
        assert (adtool.folder / f"tape.{kind}").read_bytes().startswith(start)


BESIDE = """
import sys
import numpy as np
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

@wp.kernel
def total(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i])

how = sys.argv[1]
w = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
for step in range(1 if how != "stale" else 3):
    y, loss = wp.zeros(2, requires_grad=True), wp.zeros(1, requires_grad=True)
    if how == "host":
        y = wp.array(np.sinh(w.numpy()), dtype=float, requires_grad=True)
    if how == "before":
        wp.launch(square, 2, [w], [y])
    with wp.Tape() as tape:
        if how in ("stale", "right"):
            wp.launch(square, 2, [w], [y])
        wp.launch(total, 2, [y], [loss])
    tape.backward(loss)
    if how == "stale":
        w.assign(w.numpy() - 0.1 * w.grad.numpy())
print(w.grad.numpy())
"""


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("host", "launch 0:0 of kernel `total`: G004 broken-path"),
        ("before", "launch 0:0 of kernel `total`: G004 broken-path"),
        ("stale", "array `w`, first used by launch 1:0 of kernel `square`: G013 stale-gradient"),
        ("right", "no check failed: the whole tape is drawn"),
    ],
)
def test_what_is_wrong_beside_the_launches_is_in_the_picture(
    adtool: Tool, how: str, words: str
) -> None:
    adtool.script(BESIDE)
    done = adtool("graph", "--failing", "--out", "tape.dot", "script.py", how)
    assert done.returncode == 0, done.stderr
    first = "" if how == "right" else "first problem: "
    assert first + words in " ".join(done.stdout.split())
    drawn = (adtool.folder / "tape.dot").read_text()
    assert ("an error was found here" in drawn) == (how != "right")


def test_a_script_that_fails_or_records_nothing(adtool: Tool) -> None:
    adtool.script("raise ValueError('no')")
    done = adtool("graph", "script.py")
    assert done.returncode == 2
    assert "the script raised ValueError" in done.stderr
    adtool.script("print(1)")
    done = adtool("graph", "script.py")
    assert done.returncode == 2
    assert "no launch was recorded on a tape" in done.stderr
