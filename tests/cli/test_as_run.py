"""`adtool check --as-run`: faults of the compiled launcher are seen, nothing else is accused."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

HEAD = """
import os
import numpy as np
import engine as wp

@wp.kernel
def mul(a: wp.array(dtype=float), b: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = a[i] * b[i]

@wp.kernel
def half(a: wp.array(dtype=float)):
    i = wp.tid()
    a[i] = 0.5 * a[i]

@wp.kernel
def square(a: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = a[i] * a[i]

@wp.kernel
def total(z: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, z[i])

def floats(values):
    return wp.array(np.array(values, np.float32), dtype=float, requires_grad=True)

def zeros(n):
    return wp.zeros(n, dtype=float, requires_grad=True)
"""
# By the fault that each shows.
PROGRAMS = {
    "view-forgotten": """
for k in range(6):
    x, z = floats([[1, 2, 3, 4], [5, 6, 7, 8]]), zeros(4)
    with wp.Tape() as t:
        wp.launch(mul, dim=4, inputs=[x[0], x[1], z])
        wp.launch(half, dim=4, inputs=[x[1]])
    t.backward(grads={z: wp.ones_like(z)})
""",
    "hold-released": """
for k in range(6):
    a, z = floats([1, 2, 3, 4]), zeros(4)
    with wp.Tape() as t:
        wp.launch(square, dim=4, inputs=[a, z])
        wp.launch(half, dim=4, inputs=[a])
    t.backward(grads={z: wp.ones_like(z)})
""",
    "record-reused": """
a, b, z = floats([1, 2, 3, 4]), zeros(4), zeros(4)
one = wp.ones(4, dtype=float)
for k in range(6):
    a.grad.zero_()
    with wp.Tape() as t:
        wp.launch(square, dim=4, inputs=[a, b])
        wp.launch(square, dim=4, inputs=[b, z])
    t.backward(grads={z: one})
""",
    "version-not-counted": """
a, z = floats([1, 2, 3, 4]), zeros(4)
one, tapes = wp.ones(4, dtype=float), []
for k in range(6):
    with wp.Tape() as t:
        wp.launch(square, dim=4, inputs=[a, z])
    t.backward(grads={z: one})
    wp.launch(half, dim=4, inputs=[a])
    wp.config.tape_snapshots = "eager"
    with wp.Tape() as t:
        wp.launch(square, dim=4, inputs=[a, z])
        if k % 2:
            wp.launch(half, dim=4, inputs=[a])
    t.backward(grads={z: one})
    wp.config.tape_snapshots = "lazy"
    tapes.append(t)
""",
}
SPOILED = """
import os, sys
if "-c" in sys.orig_argv[:3] and "adtool.child" in " ".join(sys.orig_argv):
    from tests.spoiling import install
    install(os.environ["SPOILING"])
"""
UNSTEADY = """
for k in range(2):
    a, z = floats(np.frombuffer(os.urandom(4), np.uint8)), zeros(4)
    with wp.Tape() as t:
        wp.launch(square, dim=4, inputs=[a, z])
    t.backward(grads={z: wp.ones_like(z)})
"""


def told(report: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [f for f in report["findings"] if f["code"] == code]


@pytest.mark.host("native launches are of the CPU")
@pytest.mark.parametrize("spoiled", [False, True])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_faults_of_the_launcher_are_seen(
    name: str, spoiled: bool, adtool: Any, root: Path, tmp_path: Path
) -> None:
    pytest.importorskip("engine.accel", reason="engine.accel is not there")
    script = adtool.script(HEAD + PROGRAMS[name])
    if spoiled:
        folder = tmp_path / "spoiled"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(SPOILED)
        adtool.env |= {"PYTHONPATH": f"{folder}:{root}", "SPOILING": name}
    report = adtool.report("--as-run", str(script))
    assert not [f for f in told(report, "G012") if f["tape"] < 0]
    found = told(report, "G018")
    assert len(found) == spoiled
    if spoiled and "unlike-as-run" in found[0]["help"]:
        assert (tmp_path / ".adtool" / "unlike-as-run").exists()


# What a run may depend on: whether kernels look for faults, and whether the script has run before.
SEEN = """
from pathlib import Path
from engine.runtime.events import sanitizers
looked_at = bool(sanitizers())
before = Path("before").exists()
Path("before").touch()
"""
SQUARES = """
for k in range(3):
    a, z = floats([1, 2, FACTOR]), zeros(3)
    with wp.Tape() as t:
        wp.launch(square, dim=3, inputs=[a, z])
    t.backward(grads={z: wp.ones_like(z)})
"""
# A script, and what is told of its unwatched runs: code, severity, words.
TOLD = {
    "random": (UNSTEADY, "G012", "note", "other values"),
    "kernels-that-look": (
        SEEN + "FACTOR = 3.0 if looked_at else 4.0" + SQUARES, "G018", "error",
        "element [2] is 8, and 6 with kernels that look for faults",
    ),
    "rounding": (
        SEEN + "FACTOR = 3.0 if looked_at else np.nextafter(np.float32(3), 4)" + SQUARES,
        "G012", "note", "up to rounding: from backward pass 0 on",
    ),
    "first-run": (
        SEEN + "FACTOR = 3.0 if before else 4.0" + SQUARES, "G012", "warning",
        "backward pass 0 of the script gave other values without adtool",
    ),
    "other-passes": (
        SEEN + "FACTOR = 1.0" + SQUARES.replace("range(3)", "range(4 if before else 3)"), "G012",
        "warning", "it runs 4 backward passes instead of 3",
    ),
    "other-tape": (
        SEEN + "FACTOR = 1.0" + SQUARES.replace("zeros(3)", "zeros(4 if before else 3)"), "G012",
        "warning", "backward pass 0 belongs to another tape",
    ),
    "once": (
        SEEN + "FACTOR = 1.0" + SQUARES + "assert not before, 'already there'", "G012", "warning",
        "was not compared",
    ),
    "alike": (SEEN + "FACTOR = 1.0" + SQUARES, "", "", ""),
}  # fmt: skip


@pytest.mark.host("native launches are of the CPU")
@pytest.mark.parametrize("name", sorted(TOLD))
def test_what_is_told(name: str, adtool: Any) -> None:
    text, code, severity, words = TOLD[name]
    report = adtool.report("--as-run", str(adtool.script(HEAD + text)))
    found = [f for f in told(report, "G012") + told(report, "G018") if f["tape"] < 0]
    assert [(f["code"], f["severity"]) for f in found] == ([(code, severity)] if code else [])
    assert not code or words in found[0]["message"]


@pytest.fixture
def compiled(adtool: Any) -> None:
    """The kernels are in the cache: a script that compiles them is not short where that is slow."""
    pytest.importorskip("engine.accel", reason="engine.accel is not there")
    text = PROGRAMS["view-forgotten"] + PROGRAMS["record-reused"]
    assert adtool("check", "--as-run", str(adtool.script(HEAD + text))).returncode == 0


LONG = PROGRAMS["view-forgotten"].replace("range(6)", "range(120)")  # two launches in each


@pytest.mark.host("native launches are of the CPU")
@pytest.mark.parametrize(
    ("text", "options", "env", "seen"),
    [
        (LONG, [], {}, True),
        (LONG, ["--no-as-run"], {}, False),
        (LONG, [], {"ENGINE_NATIVE_AFTER": "-1"}, False),  # no launch would be taken over
        (LONG, [], {"ENGINE_NATIVE_AFTER": "1000"}, False),
        (PROGRAMS["view-forgotten"], [], {}, False),
        (PROGRAMS["view-forgotten"], [], {"ENGINE_NATIVE_AFTER": "5"}, True),
        (LONG + "import time; time.sleep(5.1)", [], {}, False),
    ],
)
def test_short_scripts_run_again_by_themselves(
    text: str, options: list[str], env: dict[str, str], seen: bool, adtool: Any, root: Path,
    tmp_path: Path, compiled: None,
) -> None:  # fmt: skip
    folder = tmp_path / "spoiled"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SPOILED)
    adtool.env |= {"PYTHONPATH": f"{folder}:{root}", "SPOILING": "view-forgotten"} | env
    report = adtool.report(*options, str(adtool.script(HEAD + text)))
    assert len(told(report, "G018")) == seen


READS = """
import json, sys
data = [float(s) for s in sys.stdin.read().split()]
a = floats(data or [0.0])
z = zeros(len(data) or 1)
for k in range(220):
    with wp.Tape() as t:
        wp.launch(square, dim=len(data) or 1, inputs=[a, z])
    t.backward(grads={z: wp.ones_like(z)})
json.dump(data, open("result.json", "w"))
"""


@pytest.mark.host("native launches are of the CPU")
@pytest.mark.parametrize("given", ["1.5 2.5", ""])
def test_a_script_that_read_its_input_runs_once(
    given: str, adtool: Any, tmp_path: Path, compiled: None
) -> None:
    """Another run has no input, and would write over what the first one has made of it."""
    script = adtool.script(HEAD + READS + "print('ran', file=open('runs', 'a'))")
    done = adtool("check", str(script), stdin=given)
    assert done.returncode == 0
    assert (tmp_path / "result.json").read_text() == ("[1.5, 2.5]" if given else "[]")
    assert (tmp_path / "runs").read_text() == "ran\n" * (1 if given else 2)


SLOW = """
from pathlib import Path
import time
if Path("before").exists():
    Path("again").touch()
    time.sleep(60)
Path("before").touch()
"""


@pytest.mark.host("native launches are of the CPU")
def test_ctrl_c_in_the_second_run_ends_all(adtool: Any, tmp_path: Path) -> None:
    script = adtool.script(HEAD + SLOW + "FACTOR = 1.0" + SQUARES)
    other = adtool.script("print('other', file=open('other', 'w'))", "other.py")
    process = adtool.start(
        "check", "--as-run", "--jobs", "1", str(script), str(other), start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    while not (tmp_path / "again").exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "interrupted" in out + err
    assert not (tmp_path / "other").exists()
