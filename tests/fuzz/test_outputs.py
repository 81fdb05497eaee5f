"""Every option that names a file to write, and every way in which the file cannot be written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

from adtool import cli
from tests.sweeps import reduced

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Writer:
    """An option of a command that names a file to write.

    words: the rest of the command line, `{}` stands for the file. late: whether its file is small
    beside what the run itself writes, so that the disk is only full once the file is begun.
    """

    command: str
    option: str
    file: str
    words: tuple[str, ...]
    late: bool = True

    def __str__(self) -> str:
        return f"{self.command} {self.option}"


WRITERS = [
    Writer("check", "--out", "out.json", ("--out", "json={}", "wrong.py")),
    Writer("check", "--plot", "out.png", ("--taylor", "--plot", "{}", "wrong.py")),
    Writer("check", "--fix", "fixed.py", ("--fix", "fixed.py")),
    Writer("baseline", "--baseline", "out.jsonl", ("write", "--baseline", "{}", "wrong.py")),
    Writer("baseline", "--out", "out.md",
           ("write", "--baseline", "b.jsonl", "--out", "markdown={}", "wrong.py")),
    Writer("capture", "--out", "out.adt", ("--out", "{}", "large.py"), False),
    Writer("reduce", "--out", "out.adt", ("--out", "{}", "--most", "1", "large.adt"), False),
    Writer("jacobian", "--out", "out.svg", ("--kernel", "cubes", "--out", "{}", "wrong.py")),
    Writer("graph", "--out", "out.dot", ("--out", "{}", "wrong.py")),
    Writer("trace", "--out", "out.pdf", ("--out", "{}", "wrong.py")),
    Writer("report", "--out", "out.html", ("--out", "{}", "wrong.py")),
]  # fmt: skip
# Options that name a file, or files, to read.
READ = {"check --baseline"}
_CHOSEN = [w for w in WRITERS if w.option != "--fix"]

# The first line of every script here: it leaves a mark that it was begun.
_KERNEL = """open("begun", "w").close()
import numpy as np, engine as wp
@wp.func
def cube(x: float):
    return x * x * x
@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += {} * x * x * adj_ret
@wp.kernel
def cubes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])
@wp.kernel
def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()])
"""
_ONCE = """
n = {}
x = wp.array(np.random.default_rng(0).normal(size=n), dtype=float, requires_grad=True)
y = wp.zeros(n, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(cubes, n, [x], [y])
tape.backward(grads={{y: wp.ones(n, dtype=float)}})
"""
_NEVER_ZEROED = """
x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
for step in range(2):
    y = wp.zeros(2, dtype=float)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cubes, 2, [x], [y])
        wp.launch(total, 2, [y], [loss])
    tape.backward(loss)
    tape.zero()
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: Any) -> Path:
    """Scripts with findings, and a large capture. What they launch is compiled by then."""
    folder: Path = tmp_path_factory.mktemp("outputs")
    (folder / "wrong.py").write_text(_KERNEL.format("2.0") + _ONCE.format(40))
    (folder / "large.py").write_text(_KERNEL.format("2.0") + _ONCE.format(200_000))
    (folder / "fixed.py").write_text(_KERNEL.format("3.0") + _NEVER_ZEROED)
    done = run(folder, "capture", "large.py")
    assert done.returncode == 0, done.stderr
    run(folder, "jacobian", "--kernel", "cubes", "--out", "warm.png", "wrong.py")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Iterator[Path]:
    for name in ("wrong.py", "large.py", "fixed.py", "large.adt"):
        shutil.copy(made / name, tmp_path / name)
    yield tmp_path


# The disk is full from the start, or once the first file that the user asked for is begun.
_FULL = """
import resource, signal, sys, tempfile
from adtool.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def full(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
def made(*given, real=tempfile.mkstemp, **named):
    if named.get("prefix") == ".adtool-":
        full(10)
    return real(*given, **named)
if sys.argv[1] == "late":
    tempfile.mkstemp = made
elif sys.argv[1] == "early":
    full(300_000)
main(sys.argv[2:])
"""


def run(folder: Path, *words: str, full: str = "never") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", _FULL, full, *words], env=env, cwd=folder,
        capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def words_of(writer: Writer, file: str) -> list[str]:
    return [writer.command, *(w.replace("{}", file) for w in writer.words)]


def refused(done: subprocess.CompletedProcess[str], file: str, folder: Path, before: Any) -> None:
    """One error that names the file and the reason, and nothing changed."""
    assert done.returncode == 2, done.stdout + done.stderr
    said = done.stderr
    assert "Traceback" not in said + done.stdout and "bug in adtool" not in said, said
    errors = re.findall(r"^error: .*$", said, re.MULTILINE)
    assert len(errors) == 1, said
    assert re.fullmatch(rf"error: `{re.escape(file)}` cannot be written: .+", errors[0]), said
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    """All below a folder, but for what is kept of each run, and the mark that one was begun."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
        if p.name != "begun"
        and ".adtool" not in p.relative_to(folder).parts
        and "__pycache__" not in p.parts
    }


def test_the_table_has_every_option_that_names_a_file() -> None:
    commands: Any = typer.main.get_command(cli.app)
    named = {
        f"{name} {p.opts[0]}"
        for name, c in commands.commands.items()
        for p in c.params
        if "FILE" in (p.metavar or "") and p.opts[0].startswith("--")
    }
    assert named == {str(w) for w in _CHOSEN} | READ


@pytest.mark.parametrize("writer", reduced(WRITERS, lambda w: w.option != "--plot"), ids=str)
def test_a_full_disk(writer: Writer, folder: Path) -> None:
    if writer.option != "--fix":
        (folder / writer.file).write_text("old")
    if writer.option == "--baseline":
        (folder / writer.file).write_text('{"format": "adtool-baseline", "version": 1}\n')
    before = contents(folder)
    if str(writer) == "baseline --out":  # the baseline itself comes after the report
        words = [w.replace("write", "compare") for w in words_of(writer, writer.file)]
        (folder / "b.jsonl").write_text('{"format": "adtool-baseline", "version": 1}\n')
        before = contents(folder)
    else:
        words = words_of(writer, writer.file)
    done = run(folder, *words, full="late" if writer.late else "early")
    refused(done, writer.file, folder, before)


def _in_its_place(folder: Path, file: str) -> str:
    (folder / file).mkdir()
    return file


def _nowhere(folder: Path, file: str) -> str:
    return f"no/{file}"


def _below_a_file(folder: Path, file: str) -> str:
    return f"wrong.py/{file}"


def _of_the_kernel(folder: Path, file: str) -> str:
    """Even root makes no file there."""
    return f"/sys/kernel/{file}"


def _a_full_device(folder: Path, file: str) -> str:
    (folder / file).symlink_to("/dev/full")
    return file


def _a_pipe_without_a_reader(folder: Path, file: str) -> str:
    os.mkfifo(folder / file)
    return file


def _of_too_long_a_name(folder: Path, file: str) -> str:
    return "a" * 300 + file


def _in_a_folder_that_takes_nothing(folder: Path, file: str) -> str:
    (folder / "closed").mkdir(mode=0o500)
    return f"closed/{file}"


def _over_a_program(folder: Path, file: str) -> str:
    return "wrong.py"


def _of_an_unknown_kind(folder: Path, file: str) -> str:
    return f"{file}.xyz"


_EARLY = (
    _in_its_place, _nowhere, _below_a_file, _of_the_kernel, _of_too_long_a_name,
    _in_a_folder_that_takes_nothing, _over_a_program, _of_an_unknown_kind,
)  # fmt: skip
_LATE = (_a_full_device, _a_pipe_without_a_reader)
# The kinds of files that are told by the name, and what writes them.
_KINDS = {"check --plot", "jacobian --out", "graph --out", "trace --out", "report --out"}
_PACKAGES = {
    "check --plot": ["matplotlib"], "jacobian --out": ["matplotlib"],
    "trace --out": ["matplotlib"], "graph --out": ["graphviz"],
    "report --out": ["jinja2", "pygments", "matplotlib"],
}  # fmt: skip
assert {*_KINDS, *_PACKAGES} <= {str(w) for w in WRITERS}


@pytest.mark.parametrize("place", _EARLY, ids=lambda p: p.__name__)
@pytest.mark.parametrize("writer", _CHOSEN, ids=str)
def test_places_where_no_file_can_be(
    writer: Writer, place: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """Said before anything is run: the first line of the script is not."""
    if place is _of_an_unknown_kind and str(writer) not in _KINDS:
        pytest.skip("files of any name are written")
    if place is _in_a_folder_that_takes_nothing and os.geteuid() == 0:
        pytest.skip("root writes everywhere but in the kernel's folder, which is in the table")
    if place is _of_the_kernel and not os.path.isdir("/sys/kernel"):
        pytest.skip("no folder of the kernel's")
    monkeypatch.chdir(folder)
    refused_before(writer, place(folder, writer.file), folder, capfd)


@pytest.mark.parametrize(
    ("writer", "package"),
    [(w, p) for w in _CHOSEN for p in _PACKAGES.get(str(w), ())],
    ids=str,
)
def test_packages_that_are_missing(
    writer: Writer, package: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, package, None)
    assert f"package {package}" in refused_before(writer, writer.file, folder, capfd)


def refused_before(writer: Writer, file: str, folder: Path, capfd: Any) -> str:
    """Runs the tool, which is to refuse the file before the script begins; what it says."""
    before = contents(folder)
    with pytest.raises(SystemExit) as ended:
        cli.main(words_of(writer, file))
    out, err = capfd.readouterr()
    done = subprocess.CompletedProcess([], int(ended.value.code or 0), out, err)
    refused(done, file, folder, before)
    assert not out and not (folder / "begun").exists()
    return str(err)


@pytest.mark.parametrize("place", _LATE, ids=lambda p: p.__name__)
@pytest.mark.parametrize(
    "writer", reduced(_CHOSEN, lambda w: w.command in ("check", "reduce", "graph")), ids=str
)
def test_places_that_refuse_a_file(writer: Writer, place: Any, folder: Path) -> None:
    if not writer.late:
        pytest.skip("captures replace files alone: `test_captures` has what is said")
    if writer.option == "--baseline":
        pytest.skip("a baseline is read first")
    file = place(folder, writer.file)
    before = contents(folder) if place is not _a_full_device else None
    done = run(folder, *words_of(writer, file))
    refused(done, file, folder, before if before is not None else contents(folder))
