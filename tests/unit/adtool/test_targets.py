"""The words of a command line are split between the tool and the script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main

from adtool.cli import app
from adtool.commands.targets import one_target, targets_of
from adtool.configuration import Project
from adtool.exits import ToolError
from adtool.job import Target
from adtool.scripts import require_script

COMMANDS: Any = typer.main.get_command(app)


def split(line: str) -> tuple[str, str]:
    name, *args = line.split()
    head, words = COMMANDS.commands[name].split(args)
    return " ".join(head), " ".join(words)


@pytest.mark.parametrize(
    ("line", "head", "words"),
    [
        ("check a.py", "", "a.py"),
        ("check --eps 1 -q a.py --eps 2 -q", "--eps 1 -q", "a.py --eps 2 -q"),
        ("check --eps=1 a.py x", "--eps=1", "a.py x"),
        ("check --verbose a.py", "--verbose", "a.py"),
        ("check --no-end-to-end a.py", "--no-end-to-end", "a.py"),
        ("check --timeout -3 a.py", "--timeout -3", "a.py"),
        ("check --eps 1 -m a.b --eps 2 -- x", "--eps 1 -m a.b", "--eps 2 -- x"),
        ("check -ma.b x", "-ma.b", "x"),
        ("check -m", "-m", ""),
        ("check -- a.py -q", "", "a.py -q"),
        ("check a.py -- -q", "", "a.py -- -q"),
        ("check --bogus a.py", "--bogus", "a.py"),
        ("check - x", "", "- x"),
        ("check", "", ""),
        ("check --each -- -- 2", "--each", "-- 2"),
        ("jacobian a.py --kernel k", "--kernel k", "a.py"),
        ("jacobian --kernel k a.py --plot x.png", "--kernel k --plot x.png", "a.py"),
        ("jacobian --kernel k a.py --steps 3 --plot x", "--kernel k", "a.py --steps 3 --plot x"),
        ("jacobian --kernel k a.py -- --plot x", "--kernel k", "a.py -- --plot x"),
        ("jacobian --kernel k a.py 3 --plot x", "--kernel k", "a.py 3 --plot x"),
        ("jacobian -m a.b --kernel k -m x", "-m a.b --kernel k", "-m x"),
        ("show a.py k --stage ir x --stage", "--stage ir", "a.py k x --stage"),
        ("show a.py --stage ir k 3", "--stage ir", "a.py k 3"),
        ("show -m a.b k --stage=ir --x", "-m a.b --stage=ir", "k --x"),
    ],
)
def test_where_options_end(line: str, head: str, words: str) -> None:
    assert split(line) == (head, words)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a.py, b.py, _c.py, notes.txt and sub/d.py."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("a.py", "b.py", "_c.py", "notes.txt", "sub/d.py"):
        (tmp_path / name).write_text("")
    return tmp_path


def scripts(line: str, each: bool = False) -> list[str | None]:
    return [t.script for t in targets_of("check", line.split(), None, each)]


def test_one_script_with_arguments(folder: Path) -> None:
    for line in ("a.py 1 --x", "a.py -- 1 --x"):
        assert targets_of("check", line.split(), None) == (Target("a.py", None, ("1", "--x")),)
    for line in ("a.py notes.txt", "a.py b.py 3", "a.py sub", "a.py -- missing.py"):
        (target,) = targets_of("check", line.split(), None)
        assert target.args == tuple(w for w in line.split()[1:] if w != "--")
    with pytest.raises(ToolError, match=r"`missing\.py` after `a\.py` is not a file"):
        targets_of("check", ["a.py", "missing.py"], None)
    assert targets_of("check", ["a.py", "--", "b.py"], None)[0].args == ("b.py",)
    assert targets_of("check", ["--", "x"], "a.b") == (Target(None, "a.b", ("x",)),)


def test_several_scripts(folder: Path) -> None:
    assert scripts(".") == ["./a.py", "./b.py"]
    assert scripts("sub a.py") == ["sub/d.py", "a.py"]
    assert scripts("[ab].py") == ["a.py", "b.py"]
    assert scripts("**/*.py") == ["_c.py", "a.py", "b.py", "sub/d.py"]
    assert scripts("b.py a.py a.py", each=True) == ["b.py", "a.py"]
    found = targets_of("check", ["a.py", "sub", "--", "--n", "3"], None, each=True)
    assert {t.args for t in found} == {("--n", "3")} and len(found) == 2


def test_python_files_are_scripts_of_check_alone(folder: Path) -> None:
    assert scripts("a.py b.py sub/d.py") == ["a.py", "b.py", "sub/d.py"]
    found = targets_of("check", "a.py b.py -- --n b.py".split(), None)
    assert found == (Target("a.py", None, ("--n", "b.py")), Target("b.py", None, ("--n", "b.py")))
    with pytest.raises(ToolError, match=r"`b.py` and 1 more after `a.py` may be scripts"):
        one_target("graph", "a.py b.py sub/d.py".split(), None)
    assert one_target("graph", "a.py -- b.py".split(), None).args == ("b.py",)


def test_exclude_and_scripts_of_the_project(folder: Path) -> None:
    def some(line: str, *exclude: str, project: tuple[str, ...] = ()) -> list[str | None]:
        found = targets_of("check", line.split(), None, False, exclude, Project(folder, project))
        return [t.script for t in found]

    assert some("**/*.py", "sub", "_*") == ["a.py", "b.py"]
    assert some("**/*.py", "sub/*.py", "./a.py") == ["_c.py", "b.py"]
    assert some("a.py", "a.py") == ["a.py"]  # named itself
    assert some("", project=(".", "sub")) == ["./a.py", "./b.py", "sub/d.py"]
    (one,) = targets_of("check", ["--", "--n"], None, project=Project(folder, ("sub",)))
    assert one == Target("sub/d.py", None, ("--n",))
    with pytest.raises(ToolError, match="--exclude matches all 1"):
        some("sub", "d.*")


def test_a_file_with_the_name_of_a_pattern(folder: Path) -> None:
    (folder / "x[1].py").write_text("")
    assert scripts("x[1].py 3") == ["x[1].py"]


@pytest.mark.parametrize(
    ("line", "each", "words"),
    [
        ("", False, "no script is named on the command line"),
        ("-- 2", True, "no script is named on the command line"),
        (". --eps 3", False, "`--eps` is between the scripts"),
    ],
)
def test_what_cannot_be_told(folder: Path, line: str, each: bool, words: str) -> None:
    with pytest.raises(ToolError) as caught:
        targets_of("check", line.split(), None, each)
    assert words in caught.value.message and caught.value.help


def test_words_without_a_script_are_told_in_their_reports(folder: Path) -> None:
    """As scripts that do not exist, so that reports are written."""
    (folder / "empty").mkdir()
    assert scripts("x*.py a.py") == ["x*.py", "a.py"] and scripts("empty") == ["empty"]
    with pytest.raises(ToolError, match=r"no file matches the pattern `x\*.py`"):
        require_script(Target("x*.py"))
    with pytest.raises(ToolError, match="the folder `empty` has no script"):
        require_script(Target("empty"))
    with pytest.raises(ToolError, match=r"the capture `no.adt` does not exist"):
        require_script(one_target("reduce", ["no.adt"], None))


def test_the_help_names_the_action_too(folder: Path) -> None:
    with pytest.raises(ToolError) as caught:
        targets_of("baseline write", [], None)
    assert "name one: adtool baseline write SCRIPT [ARGS...]" in caught.value.help
    assert scripts("a.py b.py") == ["a.py", "b.py"]
    found = targets_of("baseline write", ["a.py", "b.py"], None)
    assert [t.script for t in found] == ["a.py", "b.py"]
    with pytest.raises(ToolError, match="a baseline needs the name of a script"):
        targets_of("baseline compare", ["-"], None)


def test_other_faults(folder: Path) -> None:
    with pytest.raises(ToolError, match="--each takes scripts"):
        targets_of("check", [], "a.b", each=True)
    with pytest.raises(ToolError, match=r"`sub` matches several scripts"):
        one_target("jacobian", ["sub"], None)
    assert one_target("jacobian", ["a.py", "3"], None) == Target("a.py", None, ("3",))
