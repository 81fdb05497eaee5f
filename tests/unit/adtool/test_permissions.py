"""The table of what `pyproject.toml` may say, held against the options of every command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import typer.main

from adtool.cli import app
from adtool.configuration import annotation_of, kind_of, options_of, project, settings
from adtool.exits import ToolError
from adtool.permissions import PERMISSIONS, Permission, permission
from adtool.render.formats import FORMATS, HEAD, Setting, is_report, render
from adtool.report import Failure, Finding, Report, failed_report
from adtool.schemas.config import schema

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]

OPTIONS = [
    (name, p) for name, c in COMMANDS.items() for p in c.params if p.param_type_name == "option"
]
_VALUES = {"switch": "true", "integer": "1", "number": "1.0", "text": "'x'"}
TABLES = ("[tool.adtool]", "[tool.adtool.{}]")


def names_of(parameter: Any) -> list[str]:
    return [n[2:] for n in (*parameter.opts, *parameter.secondary_opts) if n.startswith("--")]


def read(folder: Path, text: str) -> dict[str, dict[str, Any]]:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return settings(folder, COMMANDS)


def test_every_option_has_a_row_and_every_row_an_option() -> None:
    """An option without a row is refused: a new one grants nothing before this is asked of it."""
    there = {p.name for _, p in OPTIONS}
    rows = {key.rpartition(".")[2] for key in PERMISSIONS}
    assert rows == there
    assert permission("check", "an_option_to_come") is Permission.NONE


def test_what_writes_or_runs_is_not_for_settings() -> None:
    """By the words of its help: what writes, compiles or runs has a row that grants little."""
    for command, p in OPTIONS:
        kind, _ = annotation_of(COMMANDS[command], p)
        if kind is Path or str(p.metavar).endswith("FILE") or p.name in ("trust", "fix", "module"):
            assert permission(command, p.name) is not Permission.ANY, (command, p.name)


REFUSED = [
    (command, name, p)
    for command, p in OPTIONS
    if permission(command, p.name) is Permission.NONE
    for name in names_of(p)
]


@pytest.mark.parametrize(
    ("command", "name", "p"), [pytest.param(*r, id=f"{r[0]}-{r[1]}") for r in REFUSED]
)
def test_refused_in_every_table(tmp_path: Path, command: str, name: str, p: Any) -> None:
    value = _VALUES[kind_of(COMMANDS[command], p)]
    tables = [f"[tool.adtool.{command}]"]
    if name not in {n for c in COMMANDS.values() for n in options_of(c)}:
        tables.append("[tool.adtool]")
    if command == "check":
        tables.append("[[tool.adtool.overrides]]\npaths = ['*']")
    for table in tables:
        for key in {name, name.replace("-", "_")}:
            with pytest.raises(ToolError, match="is only for the command line") as caught:
                read(tmp_path, f"{table}\n{key} = {value}\n")
            assert f"--{name}" in caught.value.help


def test_the_schema_has_none_of_them() -> None:
    table = schema(COMMANDS)["properties"]["tool"]["properties"]["adtool"]["properties"]
    own = table["check"]["anyOf"][1]["properties"]
    for name in ("trust", "plot", "fix", "each"):
        assert name not in own and name not in table
    assert {"out", "output", "eps"} <= set(own)


OUTSIDE = ("../victim.rc", "/tmp/victim.rc", "a/../../victim.rc", "out/victim.rc", ".git/config",
           "a/.git/hooks/pre-commit", "link.md", "dangling.md")  # fmt: skip
INSIDE = ("report.md", "a/report.md", "./a/../report.md", "..report.md", "a/.gitignore")


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "a").mkdir(parents=True)
    (folder / "out").symlink_to(tmp_path)
    (tmp_path / "victim.rc").write_text("precious\n")
    (folder / "link.md").symlink_to(tmp_path / "victim.rc")
    (folder / "dangling.md").symlink_to(tmp_path / "none")
    return folder


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize(
    "key",
    ["output = ['{}']", "out = ['{}']", "out = ['sarif=a.sarif', 'markdown={}']",
     "baseline = '{}'", "scripts = ['{}']"],
)  # fmt: skip
def test_files_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, path: str
) -> None:
    folder = _folder(tmp_path)
    monkeypatch.chdir(folder)
    with pytest.raises(ToolError, match=r"is not in the folder of the settings|belongs to git"):
        read(folder, f"[tool.adtool]\n{key.format(path)}\n")
    (folder / "pyproject.toml").unlink()


@pytest.mark.parametrize("key", ["out", "output"])
@pytest.mark.parametrize("path", INSIDE)
def test_files_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, key: str) -> None:
    folder = _folder(tmp_path)
    monkeypatch.chdir(folder / "a")
    text = f"[tool.adtool]\n{key} = ['markdown={path}']\nbaseline = '{path}'\n"
    (found,) = read(folder, text)["check"]["out"]
    assert os.path.abspath(found.removeprefix("markdown=")) == os.path.normpath(folder / path)
    project(folder, COMMANDS)


def _reports() -> dict[str, list[Report]]:
    finding = Finding("G001", "n", "error", "m\n::x", "h", "k", 0, 0, "f.py", 1, 1)
    found = Report(1, "adtool 0.1.0", "s.py", "cpu", False, 1, (), (), (finding,), gate="error")
    ok = Report(1, "adtool 0.1.0", "# a `b`.py", "cpu", True, 0, (), (), (), gate="error")
    error = failed_report(Failure("target", "no\nscript", "help"), "adtool 0.1.0")
    return {"ok": [ok], "found": [found], "error": [error], "several": [ok, found, error]}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("reports", _reports().values(), ids=_reports())
def test_reports_are_known_again(format: str, reports: list[Report]) -> None:
    setting = Setting(count=len(reports), root=os.sep)
    text = render(format, reports, setting)
    assert is_report(text.encode()[:HEAD])
    several = Setting(count=2, root=os.sep, notes=("a note",))
    assert is_report(render(format, reports, several).encode()[:HEAD])


@pytest.mark.parametrize(
    "text",
    ["export PATH=x\n", "# adtool\n", "adtool check x.py\n", "[tool.adtool]\n", "{}\n", "\n",
     '{\n  "schema": 1\n}', "<?xml version='1.0'?>\n<testsuites name='pytest'>", "## adtool\n",
     "## `x`\n", "::group::x\n", '{"tool": "adtool 0.1.0"}', "## Changes: passed\n", "#!/bin/sh\n",
     '{"runs": [{"tool": {"driver": {"name": "other"}}}]}', "\0\0"],
)  # fmt: skip
def test_other_files_are_none(text: str) -> None:
    assert not is_report(text.encode())
