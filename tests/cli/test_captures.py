"""`adtool capture`, and what takes its files, as a user runs them."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path

import pytest

from tests.cli.conftest import Tool

SCRIPT = """
import numpy as np
import engine as wp
from shapes import soft

@wp.kernel
def springs(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = soft(x[i])

@wp.kernel
def total(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    wp.atomic_add(out, 0, x[wp.tid()])

data = np.load("data.npy")
x = wp.array(data, dtype=float, requires_grad=True)
for step in range(3):
    y, loss = wp.zeros(len(data), requires_grad=True), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(springs, len(data), [x], [y])
        wp.launch(total, len(data), [y], [loss])
    tape.backward(loss)
    tape.zero()
print("done")
"""

SHAPES = """
import engine as wp

@wp.func
def soft(x: float):
    return wp.sqrt(x * x + 0.1)

@wp.func_grad(soft)
def adj_soft(x: float, adj_ret: float):
    wp.adjoint[x] += x / wp.sqrt(x * x + 0.1) * adj_ret {factor}
"""


@pytest.fixture
def project(adtool: Tool) -> Tool:
    """A script that needs a module and a file of data."""
    import numpy as np

    adtool.script(SCRIPT, "train.py")
    adtool.script(SHAPES.format(factor="* 1.5"), "shapes.py")
    np.save(adtool.folder / "data.npy", np.linspace(0.5, 2.0, 32).astype(np.float32))
    return adtool


def moved(tool: Tool, name: str) -> None:
    """Leaves nothing but a capture, in another folder."""
    elsewhere = tool.folder / "elsewhere"
    elsewhere.mkdir()
    (tool.folder / name).rename(elsewhere / name)
    tool.folder = elsewhere


def test_a_capture_is_checked_where_its_program_is_not(project: Tool) -> None:
    here = project.report("train.py")
    done = project("capture", "--out", "run.adt", "train.py")
    assert done.returncode == 0, done.stderr
    assert "done\n3 tapes, 6 launches: captured to run.adt, " in done.stdout
    moved(project, "run.adt")
    there = project.report("run.adt")
    for name in ("launches", "end_to_end", "tapes", "exit_code", "device"):
        assert str(there[name]).replace(str(project.folder.parent), "") == str(here[name]).replace(
            str(project.folder.parent), ""
        ).replace("'/", "'"), name
    (a,), (b,) = here["findings"], there["findings"]
    assert a["code"] == "G001"
    assert [a[k] for k in ("message", "line", "column", "source", "fingerprint")] == [
        b[k] for k in ("message", "line", "column", "source", "fingerprint")
    ]
    assert b["file"] == "shapes.py"
    text = project("check", "run.adt").stdout
    assert "--> shapes.py:9:1" in text
    assert "def adj_soft(x: float, adj_ret: float):" in text


def test_a_comment_in_the_captured_source_suppresses(project: Tool) -> None:
    text = SHAPES.format(factor="* 1.5").replace(
        "adj_ret: float):", "adj_ret: float):  # adtool: ignore[G001]"
    )
    project.script(text, "shapes.py")
    assert project("capture", "--out", "run.adt", "train.py").returncode == 0
    moved(project, "run.adt")
    project.script("# another file of that name\n", "shapes.py")
    found = project.report("run.adt")
    assert found["exit_code"] == 0
    assert [f["suppressed_by"] for f in found["findings"]] == ["comment"]


def test_a_finding_is_reduced_to_one_thread(project: Tool) -> None:
    assert project("capture", "--out", "run.adt", "train.py").returncode == 0
    done = project("reduce", "run.adt")
    assert done.returncode == 0, done.stderr
    assert (
        "G001 wrong-gradient of kernel `springs` stays in 1 launch:\n  springs, dim 1\n"
        in done.stdout
    )
    found = project.report("run.min.adt")
    assert found["exit_code"] == 1
    (launch,) = found["launches"]
    assert (launch["kernel"], launch["dim"], launch["pairs"][0]["checked"]) == ("springs", [1], 1)
    with zipfile.ZipFile(project.folder / "run.min.adt") as file:
        assert sum(n.startswith("arrays/") for n in file.namelist()) <= 2
        names = {s["name"] for s in json.loads(file.read("run.json"))["sources"]}
        assert names == {"train.py", "shapes.py"}
    none = project("reduce", "--code", "G003", "run.adt")
    assert none.returncode == 2
    assert "error: nothing to reduce: the check of the capture gives no G003" in none.stderr


def test_what_is_left_can_be_drawn_and_becomes_the_last_run(project: Tool) -> None:
    assert project("capture", "--out", "run.adt", "train.py").returncode == 0
    assert project("reduce", "run.adt").returncode == 0
    moved(project, "run.min.adt")
    row = project("trace", "run.min.adt")
    assert "tape 0 of 1 of run.min.adt: 1 operation, 2 arrays" in row.stdout, row.stderr
    assert ["0:0", "springs", "x", "y", "1", "8", "B"] in [
        x.split()[:7] for x in row.stdout.splitlines()
    ]
    drawn = project("graph", "run.min.adt")
    written = project("graph", "run.min.adt", "--out", "run.dot")
    assert "(run.min.adt): " in written.stdout
    assert drawn.returncode == 0 and "G001 wrong-gradient" in drawn.stdout
    checked = project("check", "run.min.adt")
    assert checked.returncode == 1 and "no tape" not in checked.stdout + checked.stderr
    assert project("graph").stdout == drawn.stdout


def test_everything_else_takes_captures(project: Tool) -> None:
    assert project("capture", "--check", "--out", "run.adt", "train.py").returncode == 0
    moved(project, "run.adt")
    assert project("graph", "--out", "tape.dot", "run.adt").returncode == 0
    assert "springs" in (project.folder / "tape.dot").read_text()
    assert "springs" in project("trace", "run.adt").stdout
    seen = project("jacobian", "--kernel", "springs", "--error", "relative", "run.adt")
    assert seen.returncode == 1 and "32 x 32" in seen.stdout
    with zipfile.ZipFile(project.folder / "run.adt") as file:
        assert json.loads(file.read("report.json"))["exit_code"] == 1
    assert project("report", "--out", "page.html", "run.adt").returncode == 1
    assert "adj_soft" in (project.folder / "page.html").read_text()


def test_native_code_needs_trust(adtool: Tool) -> None:
    adtool.script(
        "import engine as wp\n"
        "@wp.func_native('return x * x;', adj_snippet='adj_x += x * adj_ret;')\n"
        "def square(x: float) -> float: ...\n"
        "@wp.kernel\n"
        "def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n"
        "    y[i] = square(x[i])\n"
        "x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)\n"
        "with wp.Tape() as tape:\n"
        "    wp.launch(k, 3, [x], [y])\n"
        "tape.backward(grads={y: wp.ones(3)})\n"
    )
    assert adtool("capture", "--out", "run.adt", "script.py").returncode == 0
    done = adtool("check", "run.adt")
    assert done.returncode == 2
    assert "C++ code of the capture" in done.stderr
    assert adtool("reduce", "--code", "G012", "run.adt").returncode == 0
    assert "1 operation, 1 array" in adtool("trace", "run.min.adt").stdout
    assert adtool.report("--trust", "run.adt")["findings"][0]["code"] == "G001"


OUTSIDE = """
import engine as wp

@wp.kernel
def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i + 1] * x[i]{comment}

x, y = wp.ones(4, requires_grad=True), wp.zeros(4, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(k, 4, [x], [y])
tape.backward(grads={{y: wp.ones(4)}})
"""


def test_faults_of_the_run_are_told_by_the_names_of_the_capture(adtool: Tool) -> None:
    adtool.script(OUTSIDE.format(comment=""))
    adtool.script(OUTSIDE.format(comment="  # adtool: ignore[G008]"), "known.py")
    for name in ("script", "known"):
        done = adtool("capture", "--check", "--out", f"{name}.adt", f"{name}.py")
        assert done.returncode == 0, done.stderr
        with zipfile.ZipFile(adtool.folder / f"{name}.adt") as file:
            text = b"".join(file.read(n) for n in file.namelist() if n.endswith(".json"))
        assert str(adtool.folder).encode() not in text
    again = adtool("reduce", "script.adt")
    assert again.returncode == 2
    assert "G008 cannot be reduced: adtool found it while the program ran" in again.stderr
    (adtool.folder / "known.py").unlink()
    moved(adtool, "script.adt")
    (adtool.folder.parent / "known.adt").rename(adtool.folder / "known.adt")
    (found,) = adtool.report("script.adt")["findings"]
    assert (found["code"], found["file"], found["line"]) == ("G008", "script.py", 7)
    known = adtool.report("known.adt")
    assert [(f["code"], f["suppressed"]) for f in known["findings"]] == [("G008", True)]
    looked = adtool("jacobian", "--kernel", "k", "script.adt")
    assert looked.returncode == 0, looked.stderr
    assert "4 x 4" in looked.stdout


def test_an_overwrite_by_the_host_is_reduced(adtool: Tool) -> None:
    adtool.script(
        "import engine as wp\n"
        "@wp.kernel\n"
        "def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n"
        "    y[i] = x[i] * x[i]\n"
        "x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)\n"
        "y = wp.zeros(3, requires_grad=True)\n"
        "with wp.Tape() as tape:\n"
        "    wp.launch(square, 3, [x], [y])\n"
        "x.assign([4.0, 5.0, 6.0])\n"
        "tape.backward(grads={y: wp.ones(3)})\n"
    )
    assert adtool("capture", "--out", "run.adt", "script.py").returncode == 0
    done = adtool("reduce", "run.adt", "--out", "small.adt")
    assert done.returncode == 0, done.stderr
    assert "G003 overwritten-array of kernel `square` stays in 1 launch" in done.stdout
    assert [f["code"] for f in adtool.report("small.adt")["findings"]] == ["G003"]


@pytest.mark.parametrize("ran", [False, True])
def test_a_capture_is_judged_by_the_overwrites_of_its_program(adtool: Tool, ran: bool) -> None:
    adtool.script(
        "import engine as wp\n"
        "wp.config.overwrites = 'present'\n"
        "@wp.kernel\n"
        "def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n"
        "    y[i] = x[i] * x[i]\n"
        "x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)\n"
        "y, z = wp.zeros(3, requires_grad=True), wp.zeros(3, requires_grad=True)\n"
        "other = wp.array([4.0, 5.0, 6.0], dtype=float)\n"
        "with wp.Tape() as tape:\n"
        "    wp.launch(square, 3, [x], [y])\n"
        "    wp.launch(square, 3, [y], [z])\n"
        "    wp.launch(square, 3, [other], [y])\n"
        + "tape.backward(grads={z: wp.ones(3)})\n" * ran
    )  # fmt: skip
    assert adtool("capture", "--out", "run.adt", "script.py").returncode == 0
    wrong = [adtool.report(name) for name in ("script.py", "run.adt")]
    assert [[f["code"] for f in r["findings"] if f["severity"] == "error"] for r in wrong] == [
        ["G003"], ["G003"],
    ]  # fmt: skip
    if not ran:  # what the user says comes before what the program said
        assert adtool.report("--overwrites", "restore", "run.adt")["exit_code"] == 0


def test_a_capture_with_its_check_knows_what_only_the_program_tells(adtool: Tool) -> None:
    adtool.script(
        "import engine as wp\n"
        "@wp.kernel\n"
        "def k(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n"
        "    y[i] = x[i] * s\n"
        "x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)\n"
        "y, z = wp.zeros(3, requires_grad=True), wp.zeros(3, requires_grad=True)\n"
        "with wp.Tape() as tape:\n"
        "    wp.launch(k, 3, [x, 2.0], [y])\n"
        "    wp.launch(k, 3, [x, float(y.numpy().sum())], [z])\n"
        "tape.backward(grads={z: wp.ones(3)})\n"
    )
    assert adtool("capture", "--check", "--out", "run.adt", "script.py").returncode == 0
    with zipfile.ZipFile(adtool.folder / "run.adt") as file:
        report = json.loads(file.read("report.json"))
    assert {f["code"] for f in report["findings"]} == {
        f["code"] for f in adtool.report("script.py")["findings"]
    }
    assert "G004" in {f["code"] for f in report["findings"]}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["capture"], "no script is named on the command line"),
        (["capture", "--out", ".", "train.py"], "an empty name, or `.`, names no file to write"),
        (
            ["capture", "--out", "x.py", "train.py"],
            "a capture must not have the name of a Python file",
        ),
        (["capture", "--out", "no/run.adt", "train.py"], "cannot be written"),
        (["check", "no.adt"], "the capture `no.adt` does not exist"),
        (["check", "bad.adt"], "`bad.adt` cannot be used: it is not a capture"),
        (["check", "cut.adt"], "`cut.adt` cannot be used"),
        (["check", "bad.adt", "--trust"], "is a capture, which takes no arguments: `--trust`"),
        (["reduce", "train.py"], "is not a capture"),
        (["graph", "bad.adt"], "it is not a capture"),
        (["trace", "bad.adt"], "it is not a capture"),
    ],
)
def test_what_cannot_be_done_is_said(project: Tool, args: list[str], words: str) -> None:
    (project.folder / "bad.adt").write_bytes(b"PK not")
    (project.folder / "cut.adt").write_bytes(zipped()[:-30])
    done = project(*args)
    assert done.returncode == 2
    assert words in done.stderr
    assert sum(line.startswith("error: ") for line in done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert [n for n in os.listdir(project.folder) if n.startswith(".adtool-")] == []


def zipped() -> bytes:
    import io

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("adtool-capture", "1\n")
        file.writestr("run.json", "{}")
    return out.getvalue()


def test_a_file_that_is_there_is_replaced_in_one_step(project: Tool) -> None:
    path = project.folder / "run.adt"
    path.write_text("an older one")
    os.chmod(path, 0o644)
    assert project("capture", "--out", "run.adt", "train.py").returncode == 0
    assert zipfile.is_zipfile(path)
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    first = contents(path)
    assert project("capture", "--out", "again.adt", "train.py").returncode == 0
    assert contents(project.folder / "again.adt") == first
    project.script("raise SystemExit(3)\n", "ends.py")
    done = project("capture", "--out", "run.adt", "ends.py")
    assert done.returncode == 2
    assert contents(path) == first


def contents(path: Path) -> dict[str, bytes]:
    """The members that do not hold times."""
    with zipfile.ZipFile(path) as file:
        return {n: file.read(n) for n in file.namelist() if n not in ("run.json", "traces.json")}


def test_executors_give_the_same_report(adtool: Tool) -> None:
    adtool.script(
        "import engine as wp\n"
        "@wp.kernel\n"
        "def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n"
        "    y[i] = wp.sin(x[i]) * x[i]\n"
        "for count in (300, 2, 1):\n"
        "    x = [wp.ones(3, requires_grad=True) for _ in range(count + 1)]\n"
        "    with wp.Tape() as tape:\n"
        "        for i in range(count):\n"
        "            wp.launch(k, 3, [x[i]], [x[i + 1]])\n"
        "    tape.backward(grads={x[count]: wp.ones(3)})\n"
    )
    assert adtool("capture", "--out", "run.adt", "script.py").returncode == 0
    found = [adtool.report("--jobs", n, "run.adt") for n in ("1", "2")]
    for report in found:
        del report["seconds"]
    assert found[0] == found[1]
    for _ in range(5):  # by forked processes, which read the file at the same time
        assert adtool.report("run.adt")["end_to_end"] == found[0]["end_to_end"]
    assert [e["verdict"] for e in found[0]["end_to_end"]] == ["pass"] * 3
    assert [x["index"] for x in found[0]["launches"]] == [*range(300), 0, 1, 0]
    assert found[0]["exit_code"] == 0
