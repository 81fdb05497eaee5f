"""Settings that come with other people's files: they grant nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Tool

NATIVE = """
import engine as wp
@wp.func_native('''int create(const char*, unsigned) asm("creat");
                create("RAN", 0600u); return x * x;''',
                adj_snippet='adj_x += x * adj_ret;')
def square(x: float) -> float: ...
@wp.kernel
def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = square(x[i])
x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(k, 3, [x], [y])
tape.backward(grads={y: wp.ones(3)})
"""

PLAIN = """
import engine as wp
@wp.kernel
def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]
x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(k, 3, [x], [y])
tape.backward(grads={y: wp.ones(3)})
"""

EVIL = "open({!r}, 'w').close()\n"


@pytest.mark.parametrize("command", [["check"], ["baseline", "write"]])
@pytest.mark.parametrize(
    ("scripts", "link"),
    [
        (["*/evil.py"], "l"), (["**/*.py"], "l"), (["l"], "l"), (["."], "x.py"), (["x.py"], "x.py"),
        (["*.py"], "x.py"), (["a"], "a/x.py"), (["plain.py", "a/*"], "a/x.py"),
    ],
)  # fmt: skip
def test_scripts_that_lead_outside(
    tmp_path: Path, root: Path, kernels: Path, scripts: list[str], link: str, command: list[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "project/a").mkdir(parents=True)
    marker = tmp_path / "marker"
    evil = tmp_path / "out/evil.py"
    evil.write_text(EVIL.format(str(marker)))
    tool = Tool(tmp_path / "project", root, kernels)
    tool.script(PLAIN, "plain.py")
    tool.script(f"[tool.adtool]\nscripts = {scripts}\n", "pyproject.toml")
    (tool.folder / link).symlink_to(evil if link.endswith(".py") else evil.parent)
    done = tool(*command)
    assert done.returncode == 2 and "is not in the folder of the settings" in done.stderr
    assert "pyproject.toml: scripts" in done.stderr and not marker.exists()
    if scripts == ["*.py"]:  # a link that stays inside, and what is left out, are no harm
        (tool.folder / "within.py").symlink_to("plain.py")
        assert tool(*command, "--exclude", "x.py").returncode == 0
        (tool.folder / link).unlink()
        assert tool(*command).returncode == 0


TABLES = (
    "[tool.adtool]\ntrust = true\n",
    "[tool.adtool.check]\ntrust = true\n",
    "[[tool.adtool.overrides]]\npaths = ['*']\ntrust = true\n",
    "[tool.adtool.reduce]\ntrust = true\n",
)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory, root: Path, kernels: Path) -> Path:
    """A capture of a program that runs C++ code, which leaves a file `RAN`."""
    folder = tmp_path_factory.mktemp("evil")
    tool = Tool(folder, root, kernels)
    tool.script(NATIVE)
    done = tool("capture", "--out", "evil.adt", "script.py")
    assert done.returncode == 0, done.stderr
    assert (folder / "RAN").exists()  # the program itself may do so
    return folder / "evil.adt"


@pytest.mark.parametrize(
    ("table", "place"), [*((t, ".") for t in TABLES), (TABLES[0], ".."), (TABLES[2], "..")]
)
def test_no_trust_by_a_file_that_comes_along(
    tmp_path: Path, root: Path, kernels: Path, capture: Path, table: str, place: str
) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    tool = Tool(folder, root, kernels)
    shutil.copy(capture, folder / "evil.adt")
    (folder / place / "pyproject.toml").write_text(table)
    for command in (["check", "evil.adt"], ["reduce", "evil.adt"], ["graph", "evil.adt"]):
        done = tool(*command)
        assert done.returncode == 2
        assert "trust is only for the command line" in done.stderr
        assert "--trust" in done.stderr
    assert not list(tmp_path.rglob("RAN"))
    (folder / place / "pyproject.toml").write_text("[tool.adtool]\ntimeout = 60\n")
    assert "C++ code of the capture" in tool("check", "evil.adt").stderr
    assert not list(tmp_path.rglob("RAN"))
    assert tool("check", "--trust", "evil.adt").returncode == 1  # as the user said
    assert list(tmp_path.rglob("RAN"))


def _project(tmp_path: Path, root: Path, kernels: Path, settings: str) -> Tool:
    tool = Tool(tmp_path / "project", root, kernels)
    tool.script(PLAIN)
    tool.script(f"[tool.adtool]\n{settings}\n", "pyproject.toml")
    return tool


def test_no_file_outside_is_written(tmp_path: Path, root: Path, kernels: Path) -> None:
    victim = tmp_path / "victim.rc"
    victim.write_text("precious\n")
    tool = _project(tmp_path, root, kernels, 'output = ["markdown=../victim.rc"]')
    done = tool("check", "script.py")
    assert done.returncode == 2 and "not in the folder of the settings" in done.stderr
    assert victim.read_text() == "precious\n"
    assert tool("baseline", "write", "script.py").returncode == 2
    tool.script('[tool.adtool]\nbaseline = "../victim.rc"\n', "pyproject.toml")
    assert tool("baseline", "write", "script.py").returncode == 2
    assert victim.read_text() == "precious\n"


@pytest.mark.parametrize("format", ["text", "json", "junit", "sarif", "github", "markdown"])
def test_only_reports_are_replaced(tmp_path: Path, root: Path, kernels: Path, format: str) -> None:
    tool = _project(tmp_path, root, kernels, f'output = ["{format}=notes.md"]')
    notes = tool.folder / "notes.md"
    notes.write_text("precious: adtool\n")
    done = tool("check", "script.py")
    assert done.returncode == 2 and "not a report of adtool" in done.stderr
    assert notes.read_text() == "precious: adtool\n"
    notes.unlink()
    assert tool("check", "script.py").returncode == 0
    first = notes.read_text()
    (tool.folder / "script.py").write_text("raise SystemExit(3)\n")
    assert tool("check", "script.py").returncode == 2  # the report of a failure replaces it, too
    failed = notes.read_text()
    assert failed != first
    (tool.folder / "script.py").write_text(PLAIN)
    assert tool("check", "script.py").returncode == 0
    assert notes.read_text() != failed
    notes.write_text("precious\n")
    assert tool("check", "--out", f"{format}=notes.md", "script.py").returncode == 0
    assert notes.read_text() != "precious\n"  # the command line is the user's own


def test_a_pipe_or_a_folder_in_its_place(tmp_path: Path, root: Path, kernels: Path) -> None:
    tool = _project(tmp_path, root, kernels, 'output = ["markdown=notes.md"]')
    os.mkfifo(tool.folder / "notes.md")
    done = tool("check", "script.py")
    assert done.returncode == 2 and "not a report of adtool" in done.stderr
    (tool.folder / "notes.md").unlink()
    (tool.folder / "notes.md").mkdir()
    assert tool("check", "script.py").returncode == 2


def test_a_baseline_replaces_baselines_alone(tmp_path: Path, root: Path, kernels: Path) -> None:
    tool = _project(tmp_path, root, kernels, 'baseline = "notes.jsonl"')
    (tool.folder / "notes.jsonl").write_text("precious\n")
    assert tool("baseline", "write", "script.py").returncode == 2
    assert (tool.folder / "notes.jsonl").read_text() == "precious\n"
    (tool.folder / "notes.jsonl").unlink()
    assert tool("baseline", "write", "script.py").returncode == 0
    assert tool("baseline", "write", "script.py").returncode == 0


def test_scripts_are_those_of_the_project(tmp_path: Path, root: Path, kernels: Path) -> None:
    (tmp_path / "other.py").write_text("open('RAN', 'w')\n")
    tool = _project(tmp_path, root, kernels, 'scripts = ["../other.py"]')
    done = tool("check")
    assert done.returncode == 2 and "scripts: `" in done.stderr
    assert not list(tmp_path.rglob("RAN"))
