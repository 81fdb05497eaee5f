"""`.adtool/last`: written, read, refused; and `adtool graph` on it, in this process."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from adtool import codec, last
from adtool.captures.container import HEAD, MAGIC, TRACES
from adtool.cli import main
from adtool.exits import ToolError
from adtool.job import CheckOptions, Target
from adtool.keeping import keeping
from adtool.report import Launch, Report
from adtool.session import Session
from adtool.traces import Traces
from engine.autograd import GraphOptions, Mark, dot, trace
from engine.autograd import graph as draw
from tests.counting import calls
from tests.planted import FOLDERS, KINDS


@wp.kernel
def scale(x: wp.array(dtype=float), by: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * by


@wp.kernel
def total(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i])


def record(steps: int, broken: int = -1) -> Session:
    """A session that recorded a chain of launches, one of which gives zeros."""
    states = [wp.ones(4, requires_grad=True) for _ in range(steps + 1)]
    loss, unused = wp.zeros(1, requires_grad=True), wp.ones(4, requires_grad=True)
    aside = wp.zeros(4, requires_grad=True)
    with wp.capturing(traces=1 << 20, wants=lambda kernel: False) as capture:
        with wp.Tape() as tape:
            for i in range(steps):
                wp.launch(scale, 4, [states[i], 0.0 if i == broken else 1.0], [states[i + 1]])
            wp.launch(scale, 4, [unused, 1.0], [aside])
            wp.launch(total, 4, [states[steps]], [loss])
        tape.backward(loss)
    text = codec.dumps(Traces((trace(capture.tapes[0]),), 1))
    return Session(Target("script.py"), CheckOptions(), (), traces=text)


PASSED = Report(1, "adtool 0", "script.py", "cpu", True, 0, (), (), ())


def remember(session: Session) -> None:
    with keeping() as keep:
        last.remember(session, PASSED, keep)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with nothing in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def graph(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs `adtool graph`: exit code, standard output and error."""

    def run(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["graph", *args])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return int(ended.value.code or 0), out, err

    return run


Graph = Callable[..., tuple[int, str, str]]


def test_dot_is_printed_where_no_file_is_named(graph: Graph) -> None:
    remember(record(8))
    code, text, err = graph()
    assert (code, err) == (0, "")
    assert text.startswith("digraph tape {")
    assert text.endswith("}\n")
    assert "repeated 8x" in text
    assert "states[0] \u2026 states[8]" in text
    assert "no gradient reached it" in text
    assert graph()[1] == text


def test_options_of_the_picture(graph: Graph) -> None:
    remember(record(8))
    code, text, _ = graph(
        "--no-simplify", "--hide-readonly", "--direction", "TB", "--track-input", "unused",
        "--label", "states[8]=the end", "--no-health",
    )  # fmt: skip
    assert code == 0
    assert "rankdir=TB" in text
    assert text.count("<B>scale</B>") == 9
    assert "the end" in text
    assert '"unused' in text
    assert '"states[0]' not in text
    assert "no gradient reached it" not in text


def test_a_run_without_tapes_of_the_engine_is_said_to_have_none(graph: Graph) -> None:
    called = Launch(0, 0, "Double", "script.py", 1, (), (), framework="PyTorch")
    session = Session(
        Target("script.py"), CheckOptions(), (), traces=codec.dumps(Traces((), 0))
    )  # fmt: skip
    with keeping() as keep:
        last.remember(session, replace(PASSED, launches=(called,)), keep)
    code, out, err = graph()
    assert (code, out) == (2, "")
    assert "`adtool graph` is only for tapes of engine or Warp; `script.py` uses PyTorch" in err


def test_failing_is_the_path_of_the_first_problem(graph: Graph) -> None:
    remember(record(8, 5))
    assert '"unused' in graph()[1]
    part = graph("--failing")[1]
    assert '"unused' not in part
    assert "repeated 5x" in part
    code, out, _ = graph("--failing", "--out", "part.dot")
    assert code == 0
    assert "first problem: launch 0:5 of kernel `scale`: the gradient ends here" in out
    assert "not on the drawn path: 1 of 10" in out


def test_the_first_failure_is_drawn_whatever_is_left_out() -> None:
    x, y = wp.ones(9, requires_grad=True), wp.ones(9, requires_grad=True)
    with wp.capturing(traces=1 << 20, wants=lambda kernel: False) as capture, wp.Tape():
        for dim in np.random.default_rng(0).integers(1, 10, 200):
            wp.launch(scale, int(dim), [x, 1.0], [y])
    listing = trace(capture.tapes[0]).listing
    marks = {i: Mark("nonfinite", "bad") for i in range(0, 200, 2)}
    options = GraphOptions(simplify=True, operations=marks, focus=120)
    assert "launch 120<" in dot(draw(listing, options))
    assert "launch 120<" not in dot(draw(listing, GraphOptions(operations=marks)))


def test_a_loop_whose_last_state_nothing_reads_is_no_broken_one() -> None:
    states = [wp.ones(4, requires_grad=True) for _ in range(6)]
    with wp.capturing(traces=100, wants=lambda kernel: False) as capture, wp.Tape():
        for i in range(5):
            wp.launch(scale, 4, [states[i], 1.0], [states[i + 1]])
    listing = trace(capture.tapes[0]).listing
    marks = {i: Mark("gradient", "|grad| 1", 1.0 + i) for i in range(5)}
    text = dot(draw(listing, GraphOptions(arrays=marks | {5: Mark("unreached", "none")})))
    assert "|grad| 1 to 5 (in 5 of 6)" in text
    assert "dashed" not in text
    bad = dot(draw(listing, GraphOptions(arrays=marks | {5: Mark("nonfinite", "bad")})))
    assert "bad (in 1 of 6)" in bad


@wp.kernel
def relax(x: wp.array(dtype=float), right: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 0.5 * x[i] + right[i]


def test_an_array_that_every_iteration_reads_takes_no_turns() -> None:
    """A right side that is the start value too is a node of its own, for every number of steps."""
    for steps, swapped in ((3, False), (8, True), (40, False)):
        start = wp.ones(4, requires_grad=True)
        states = [start, *(wp.ones(4, requires_grad=True) for _ in range(steps))]
        with wp.capturing(traces=1000, wants=lambda kernel: False) as capture, wp.Tape():
            for x, y in pairwise(states):
                wp.launch(relax, 4, [start, x] if swapped else [x, start], [y])
        listing = trace(capture.tapes[0]).listing
        found = draw(listing, GraphOptions())
        names = {a.id: listing.arrays[a.members[0]].name for a in found.arrays}
        sizes = {names[a.id]: len(a.members) for a in found.arrays}
        assert sizes == {"states[0]": 1, names[found.arrays[-1].id]: steps}
        (box,) = found.items[0].items  # type: ignore[union-attr]
        turning = next(a.id for a in found.arrays if names[a.id] != "states[0]")
        alone = next(a.id for a in found.arrays if names[a.id] == "states[0]")
        # Each parameter has a line from each array that it is: the start value in one launch.
        carried = "i1" if swapped else "i0"
        read = {(e.tail, e.head_port) for e in found.edges if e.head == box.id}
        assert read == {(alone, "i0"), (alone, "i1"), (turning, carried)}


def test_a_gradient_that_vanishes_in_a_loop_is_blue_and_in_the_legend() -> None:
    """The scale has the ends of all that is folded, in the words of the boxes."""
    listing = trace(chain(5)).listing
    for norms, colour in (
        ((1.12e-14, 1e-9, 1e-3, 1.0, 2.0), "#92bee0"), ((0.5, 1.0, 1e3, 1e9, 3e12), "#f5ae61"),
    ):  # fmt: skip
        marks = {i: Mark("gradient", f"|grad| {n:.3g}", n) for i, n in enumerate(norms)}
        text = dot(draw(listing, GraphOptions(operations=marks)))
        ends = f"{min(norms):.3g} to {max(norms):.3g}"
        assert f"|grad| {ends}" in text
        assert f"blue to orange: norms of gradients from {ends} (of several" in text
        assert text.count(f'BGCOLOR="{colour}"') == 1
    even = {i: Mark("gradient", "|grad| 1", 1.0) for i in range(5)}
    assert "blue to orange" not in dot(draw(listing, GraphOptions(operations=even)))


def test_what_is_suppressed_counts_where_nothing_else_was_found() -> None:
    """Of boxes that stand for several, in the box and in the legend."""
    listing = trace(chain(5)).listing
    quiet = Mark("error", "G001 wrong (suppressed)", suppressed=True)
    for marks, box, legend in (
        (dict.fromkeys(range(5), quiet), "G001 wrong (suppressed)<", "found here (suppressed)"),
        ({0: quiet} | {i: Mark("error", "G001 wrong") for i in range(1, 5)},
         "G001 wrong (in 4 of 5)<", "red: an error was found here"),
    ):  # fmt: skip
        text = dot(draw(listing, GraphOptions(operations=marks)))
        assert box in text and legend in text
        assert ("suppressed" in text) == ("suppressed" in box)


def chain(steps: int) -> wp.CapturedTape:
    """A tape of some equal launches, of arrays that take turns."""
    states = [wp.ones(4, requires_grad=True) for _ in range(steps + 1)]
    with wp.capturing(traces=100, wants=lambda kernel: False) as capture, wp.Tape():
        for x, y in pairwise(states):
            wp.launch(scale, 4, [x, 1.0], [y])
    return capture.tapes[0]


def test_nothing_has_failed(graph: Graph) -> None:
    remember(record(4))
    out = graph("--failing", "--out", "x.dot")[1]
    assert "no check failed: the whole tape is drawn" in out


def test_ten_thousand_launches(graph: Graph) -> None:
    """All of it costs a bounded number of calls a launch: nothing compares each with each."""
    remember(record(10_000))
    told: list[tuple[int, str, str]] = []
    assert calls(lambda: told.append(graph("--out", "tape.dot"))) < 10_000 * 1500
    ((code, out, _),) = told
    assert code == 0
    assert "drawn once, repeated 10000x: scale" in out
    assert len(Path("tape.dot").read_text(encoding="utf-8")) < 10_000


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--out", "tape.gif"), "`tape.gif` cannot be written: its name"),
        (
            ("--out", "nowhere/tape.dot"),
            "`nowhere/tape.dot` cannot be written: the folder `nowhere` does not exist",
        ),
        (("--tape", "7"), "no tape 7 to draw"),
        (("--track-input", "nothing"), "the tape has no array `nothing`"),
        (("--label", "x"), "--label x is not NAME=LABEL"),
    ],
)
def test_wrong_usage(graph: Graph, args: tuple[str, ...], words: str) -> None:
    remember(record(2))
    code, _, err = graph(*args)
    assert code == 2
    assert f"error: {words}" in err


def test_pictures_need_no_program(
    graph: Graph, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(record(2))
    monkeypatch.setenv("PATH", str(here))
    for kind, start in (("dot", b"digraph"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        code, out, err = graph("--out", f"tape.{kind}")
        assert (code, err) == (0, "")
        assert f"drawn to tape.{kind}" in out
        assert (here / f"tape.{kind}").read_bytes().startswith(start)


# ---- the file


def test_what_is_read_is_what_was_written(here: Path) -> None:
    session = record(3)
    remember(session)
    found = last.read()
    assert found == last.last_of(session, PASSED)
    assert found.script == "script.py"
    assert found.report == PASSED and not found.unchecked
    assert np.isclose(found.traces.tapes[0].operations[0].flow.incoming[1], 2.0)


def test_there_is_no_last_run(graph: Graph) -> None:
    code, _, err = graph()
    assert code == 2
    assert "error: no run to draw" in err
    assert "help: run `adtool check SCRIPT` in this folder" in err


def test_the_file_is_private_and_in_no_repository(here: Path) -> None:
    remember(record(2))
    folder = here / ".adtool"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "last").stat().st_mode) == 0o600
    assert sorted(os.listdir(folder)) == [".gitignore", "last"]
    assert (folder / ".gitignore").read_text() == "*\n"
    with zipfile.ZipFile(folder / "last") as file:
        assert file.namelist()[0] == MAGIC
        assert json.loads(file.read(HEAD))["script"] == "script.py"


def _linked(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    folder.symlink_to("other")


def _open_to_others(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (lambda folder: folder.write_text("a file is in the way"), "is not a folder"),
        (_linked, "is a link"),
        (lambda folder: folder.symlink_to("nowhere"), "is a link"),
        (_open_to_others, "can be written by other users (mode 777)"),
    ],
)
def test_where_none_is_kept_it_is_said_why(
    here: Path, graph: Graph, plant: Callable[[Path], None], why: str
) -> None:
    folder = here / ".adtool"
    plant(folder)
    remember(record(2))  # no error, and nothing is written there
    assert not folder.is_dir() or os.listdir(folder) == []
    code, _, err = graph()
    assert code == 2
    assert f"error: no run to draw: adtool stored none, because `.adtool` {why}\n" in err
    assert "help: delete `.adtool` and run `adtool check SCRIPT`" in err


def changed(path: Path, member: str, text: str | None) -> None:
    """Puts another text in the place of a member; None leaves it out."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    if text is None:
        del members[member]
    else:
        members[member] = text.encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)


def damaged(data: dict[str, Any], kind: str) -> str:
    tapes = data["tapes"]
    listing = tapes[0]["listing"]
    if kind == "cut":
        return json.dumps(data)[:-40]
    if kind == "list":
        return "[1, 2]"
    if kind == "deep":
        return "[" * 100_000
    if kind == "index":
        listing["operations"][0]["arrays"][0] = 10_000
    elif kind == "kernel":
        listing["operations"][0]["kernel"] = -1
    elif kind == "type":
        listing["arrays"][0]["shape"] = "4"
    elif kind == "flow":
        tapes[0]["operations"][0]["flow"]["incoming"] = []
    elif kind == "missing":
        del listing["kernels"]
    return json.dumps(data)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("cut", "not JSON"),
        ("deep", "not JSON"),
        ("list", "expected an object"),
        ("index", "its traces.json is damaged (tape 0, operation 0: 10000 is not from -1 to"),
        ("kernel", "its traces.json is damaged (tape 0, operation 0: -1 is not from 0 to"),
        ("type", "is damaged ($.tapes[0].listing.arrays[0].shape: expected a list"),
        ("flow", "2 parameters are expected"),
        ("missing", "`kernels` is missing"),
    ],
)
def test_a_file_that_is_not_right_is_refused(graph: Graph, kind: str, words: str) -> None:
    remember(record(2))
    path = Path(".adtool/last")
    with zipfile.ZipFile(path) as file:
        data = json.loads(file.read(TRACES))
    changed(path, TRACES, damaged(data, kind))
    refused(graph, words)


@pytest.mark.parametrize(
    ("member", "text", "words"),
    [
        (MAGIC, "1\n", "it has version 1: this adtool reads version 2"),
        (MAGIC, "one", "has no version"),
        (MAGIC, None, "it is not a capture"),
        (HEAD, None, "it has no run.json"),
    ],
)
def test_another_version_is_refused(
    graph: Graph, member: str, text: str | None, words: str
) -> None:
    remember(record(2))
    changed(Path(".adtool/last"), member, text)
    refused(graph, words)


def refused(graph: Graph, words: str) -> None:
    code, _, err = graph("--out", "tape.dot")
    assert code == 2
    assert "`.adtool/last` cannot be used: " in err
    assert words in err
    assert "help: run `adtool check SCRIPT`" in err


def test_binary_and_strange_files_are_refused(here: Path) -> None:
    path = here / ".adtool" / "last"
    path.parent.mkdir()
    path.write_bytes(b"\x80\x04\x95pickle")
    with pytest.raises(ToolError, match="it is not a capture"):
        last.read()
    path.write_text('{"format": "adtool-last", "version": 1}')
    with pytest.raises(ToolError, match="it is not a capture"):
        last.read()
    path.unlink()
    path.mkdir()
    with pytest.raises(ToolError, match="cannot be read"):
        last.read()


@pytest.mark.parametrize("kind", KINDS)
def test_what_others_may_have_written_is_not_drawn(here: Path, kind: str) -> None:
    remember(record(2))
    plant, words = KINDS[kind]
    plant(here / ".adtool" / "last")
    own = words is None or kind == "huge"  # then it is merely no capture
    with pytest.raises(ToolError, match="is (not a capture|larger)" if own else words) as caught:
        last.read()
    assert ("delete `.adtool`" in caught.value.help) != own


@pytest.mark.parametrize("kind", FOLDERS)
def test_neither_is_what_is_in_a_folder_of_others(here: Path, kind: str) -> None:
    remember(record(2))
    plant, words = FOLDERS[kind]
    plant(here / ".adtool")
    with pytest.raises(ToolError, match=words) as caught:
        last.read()
    assert "delete `.adtool`" in caught.value.help
    if (here / ".adtool").is_dir():
        assert last.read(Path(".adtool/last")).script == "script.py"  # where it is named
    with keeping() as keep:
        assert keep is None  # and nothing is written there
