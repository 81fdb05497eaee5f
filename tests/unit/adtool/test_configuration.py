"""[tool.adtool] in pyproject.toml."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import typer.main

from adtool.cli import app
from adtool.commands.check_output import outputs_of
from adtool.configuration import Project, kind_of, project, settings
from adtool.exits import ToolError
from adtool.permissions import Permission, permission

COMMANDS: Any = typer.main.get_command(app)

VALUES = {"switch": "true", "text": "'x'"}
# Options that take one of some words.
WORDS = {"format": "'json'", "gate": "'note'", "overwrites": "'warn'", "executor": "'serial'",
         "launch": "'0:1'"}  # fmt: skip
# Files are in the project's folder.
FILES = {"out": "'{}/x'", "output": "'{}/x'"}


def read(folder: Path, text: str, where: str = ".") -> dict[str, dict[str, Any]]:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    place = folder / where
    place.mkdir(parents=True, exist_ok=True)
    return settings(place, COMMANDS.commands)


def test_values_by_command(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '[tool.adtool]\neps = 1e-3\nignore = ["G004"]\nkernel = "k*"\nmax_inputs = 3\n'
        "no-end-to-end = true\nquiet = true\ntimeout = 5\n"
        "[tool.adtool.jacobian]\ntimeout = 9\n",
        "a/b",
    )
    check = found["check"]
    assert check["eps"] == "0.001" and check["ignore"] == ["G004"] and check["kernels"] == ["k*"]
    assert check["max_inputs"] == "3" and check["end_to_end"] is False and check["quiet"] is True
    assert (check["timeout"], found["jacobian"]["timeout"]) == ("5", "9")
    assert "eps" not in found["jacobian"] and found["jacobian"]["kernel"] == "k*"


def test_every_option_of_check_that_grants_nothing_can_be_set(tmp_path: Path) -> None:
    for p in COMMANDS.commands["check"].params:
        if p.param_type_name != "option" or permission("check", p.name) is Permission.NONE:
            continue
        for name in (o[2:] for o in (*p.opts, *p.secondary_opts) if o.startswith("--")):
            value = VALUES.get(kind_of(COMMANDS.commands["check"], p), "1")
            value = WORDS.get(name, FILES.get(name, value).format(tmp_path))
            assert p.name in read(tmp_path, f"[tool.adtool]\n{name} = {value}\n")["check"], name


def test_a_baseline_is_as_seen_from_the_file(tmp_path: Path) -> None:
    """An option with the name of a command, which has a table of its own."""
    text = "[tool.adtool]\nbaseline = 'b.jsonl'\n"
    found = read(tmp_path, text, "a")
    assert found["check"]["baseline"] == found["baseline"]["baseline"] == str(tmp_path / "b.jsonl")
    found = read(tmp_path, "[tool.adtool.baseline]\nfactor = 3\n")
    assert found["baseline"] == {"factor": "3"} and found["check"] == {}


@pytest.mark.parametrize("place", [".", "a", "a/b"])
def test_outputs_are_as_seen_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Also where a name begins as a format does, or leads through a folder and back."""
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / place)
    text = "[tool.adtool]\nout = ['json=r.json', './json=x', 'y', 'a/../json=z', 'text=a/b/t']\n"
    (tmp_path / "pyproject.toml").write_text(text)
    given = settings(Path.cwd(), COMMANDS.commands)["check"]["out"]
    files, stdout = outputs_of(given, "sarif", True)
    found = [(f.format, os.path.abspath(f.path)) for f in files]
    wanted = [("json", "r.json"), ("sarif", "json=x"), ("sarif", "y"), ("sarif", "json=z"),
              ("text", "a/b/t")]  # fmt: skip
    assert found == [(name, str(tmp_path / file)) for name, file in wanted] and not stdout
    assert given[0] == "json=" + ("r.json" if place == "." else str(tmp_path / "r.json"))
    assert given[4] == "text=" + os.path.relpath(tmp_path / "a/b/t")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives files away")
def test_settings_above_of_another_user(tmp_path: Path) -> None:
    text = "[tool.adtool]\nquiet = true\n"
    below = tmp_path / "a"
    assert read(tmp_path, text, "a")["check"]["quiet"] is True  # root's
    file = tmp_path / "pyproject.toml"
    os.chown(file, 4321, -1)
    for reading in (settings, project):
        with pytest.raises(ToolError, match="settings of another user") as caught:
            reading(below, COMMANDS.commands)
        assert "an empty file is enough" in caught.value.help
    assert settings(tmp_path, COMMANDS.commands)["check"]["quiet"] is True  # not above
    os.chown(below, 4321, -1)
    assert settings(below, COMMANDS.commands)["check"]["quiet"] is True  # of the folder's owner
    os.chown(below, 4322, -1)
    (below / "pyproject.toml").touch()
    assert settings(below, COMMANDS.commands) == {}
    (below / "pyproject.toml").unlink()
    file.rename(tmp_path / "real")
    os.chown(tmp_path / "real", 0, -1)
    file.symlink_to("real")
    assert settings(below, COMMANDS.commands)["check"]["quiet"] is True
    os.chown(file, 4321, -1, follow_symlinks=False)  # a link of another user
    with pytest.raises(ToolError, match="settings of another user"):
        settings(below, COMMANDS.commands)
    file.unlink()
    file.write_text("[project]\nname = 'x'\n")
    os.chown(file, 4321, -1)
    assert settings(below, COMMANDS.commands) == {}  # it says nothing


def test_gates(tmp_path: Path) -> None:
    found = read(tmp_path, '[tool.adtool]\ngate = ["warning", "accuracy=1e-6"]\n')
    assert found["check"]["gate"] == found["report"]["gate"] == ["warning", "accuracy=1e-6"]
    with pytest.raises(ToolError, match=r"gate: .*accuracy is a number above 0"):
        read(tmp_path, "[tool.adtool]\ngate = 'accuracy=0'\n")


def test_nothing_to_read(tmp_path: Path) -> None:
    assert read(tmp_path, "[project]\nname = 'x'\n") == {}
    assert read(tmp_path, "[project]\nname = 'adtool'\n") == {}
    assert settings(Path("/"), COMMANDS.commands) == {}


@pytest.mark.parametrize(
    ("text", "words", "help"),
    [
        ("max-input = 1", "max-input is not an option of adtool", "max-inputs"),
        ("each = true", "each is only for the command line", "--each"),
        ("verbose = 'yes'", "verbose is a switch", ""),
        ("eps = [1]", "eps takes a number, not [1]", ""),
        ("ignore = [true]", "ignore takes a text, or a list of them", ""),
        ("check.bogus = 1", "[tool.adtool.check] bogus is not an option", ""),
        ("eps = ", "is not TOML", ""),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, words: str, help: str) -> None:
    with pytest.raises(ToolError) as caught:
        read(tmp_path, f"[tool.adtool]\n{text}\n")
    assert words in caught.value.message and "pyproject.toml" in caught.value.message
    assert help in caught.value.help


def project_of(folder: Path, text: str) -> Project:
    read(folder, text)
    return project(folder, COMMANDS.commands)


def test_overrides(tmp_path: Path) -> None:
    found = project_of(
        tmp_path,
        '[tool.adtool]\nscripts = ["samples", "x.py"]\nexclude = ["a/*", "b"]\n'
        '[[tool.adtool.overrides]]\npaths = ["samples/**"]\nmax-inputs = 3\ngate = "note"\n'
        '[[tool.adtool.overrides]]\npaths = ["x.py"]\nkernel = "k*"\nno-end-to-end = true\n',
    )
    assert (found.folder, found.scripts) == (tmp_path, ("samples", "x.py"))
    one, two = found.overrides
    assert one.paths == ("samples/**",) and one.values["max_inputs"] == 3
    assert one.values["gate"] == ["note"]
    assert list(two.values["kernels"]) == ["k*"] and two.values["end_to_end"] is False
    exclude = settings(tmp_path, COMMANDS.commands)["check"]["exclude"]
    assert exclude == [str(tmp_path / "a/*"), "b"]


OVERRIDE = "[[tool.adtool.overrides]]\npaths = ['a']\n"


@pytest.mark.parametrize(
    ("text", "words", "help"),
    [
        ("[tool.adtool]\nscripts = 'x'", "scripts takes a list of strings, not 'x'", ""),
        ("[tool.adtool]\nscripts = [1]", "scripts takes a list of strings, not [1]", ""),
        ("[tool.adtool]\nscript = ['x']", "script is not an option", "scripts"),
        ("[tool.adtool]\noverride = []", "override is not an option", "overrides"),
        ("[tool.adtool]\noverrides = 3", "write overrides as tables", ""),
        ("[tool.adtool.overrides]\npaths = ['a']", "write overrides as tables", ""),
        ("[[tool.adtool.overrides]]\neps = 1.0", "[[tool.adtool.overrides]] 1 has no paths", ""),
        (OVERRIDE + "ep = 1.0", "1, ep is not an option", "eps"),
        (OVERRIDE + "path = ['x']", "1, path is not an option", "paths"),
        (OVERRIDE + OVERRIDE + "jobs = 3", "2, jobs: this option is for the whole run",
         "write it in [tool.adtool]: jobs = 3"),
        (OVERRIDE + "format = 'json'", "1, format: this option is for the whole run", ""),
        (OVERRIDE + "eps = 'x'", "1, eps takes a number, not 'x'", ""),
        (OVERRIDE + "eps = -1", "1, eps: ", ""),
        (OVERRIDE + "gate = 'none'", "1, gate: ", ""),
        ("[tool.adtool]\neps = -1", "eps: ", ""),
        ("[tool.adtool]\ngate = 'none'", "gate: ", ""),
        ("[tool.adtool]\norder = 1.5", "order takes a whole number, not 1.5", ""),
        ("[tool.adtool]\norder = true", "order takes a whole number, not true", ""),
        ("[tool.adtool]\ndevice = 3", "device takes a text, not 3", ""),
        ("[tool.adtool]\nchanged-since = 'x'", "changed-since is only for the command line", ""),
        ("[tool.adtool]\nbounds = true\nno-bounds = true", "no-bounds: `bounds` sets the same", ""),
        ("[tool.adtool]\nmax_inputs = 1\nmax-inputs = 2", "max-inputs: `max_inputs` sets", ""),
        ("[tool.adtool.check]\nno-rerun = true\nrerun = true", "check] rerun: `no-rerun` sets", ""),
        (OVERRIDE + "rerun = true\nno-rerun = true", "1 no-rerun: `rerun` sets", ""),
        ("[tool.adtool]\nlaunch = 'x'", "launch: `x` is not the number of a launch", ""),
        (OVERRIDE + "launch = ['1', '0:x']", "1, launch: `0:x` is not the number of a launch", ""),
        ("[tool.adtool]\noutput = 'x\\u0000y'".replace("'", '"'), "is not a file name", ""),
        ('[tool.adtool]\noutput = "json=x\\u0000y"', "output: ", "U+0000"),
        ('[tool.adtool]\nbaseline = "x\\u0000y"', "baseline: ", "U+0000"),
        ('[tool.adtool]\nscripts = ["x\\u0000y"]', "scripts: ", "U+0000"),
        (f"[tool.adtool]\nseed = 0x{'f' * 5000}", "seed has too many digits", ""),
        (f"[tool.adtool]\neps = 0x{'f' * 5000}", "eps has too many digits", ""),
        (f"[tool.adtool]\ntape = [0x{'f' * 5000}]", "tape has too many digits", ""),
        (f"[tool.adtool]\ndevice = 0x{'f' * 5000}", "not a number with too many digits", ""),
        (f"[tool.adtool]\nscripts = [0x{'f' * 5000}]", "not a number with too many digits", ""),
        (OVERRIDE + f"jobs = 0x{'f' * 5000}", "1, jobs: this option is for the whole run", ""),
        (f"[tool.adtool]\n# {'x' * (1 << 20)}", "it is larger than 1 MiB", ""),
        ("[tool.adtool]\nfix = true", "fix is only for the command line", "--fix"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_tables(tmp_path: Path, text: str, words: str, help: str) -> None:
    with pytest.raises(ToolError) as caught:
        read(tmp_path, text + "\n")
    assert words in caught.value.message and str(tmp_path) in caught.value.message
    assert help in caught.value.help


def test_a_value_for_some_commands(tmp_path: Path) -> None:
    """`format = "sarif"` is for `check`, and no error for commands that do not write it."""
    found = read(tmp_path, "[tool.adtool]\nformat = 'sarif'\n")
    assert found["check"]["format"] == "sarif" and "format" not in found["jacobian"]


@pytest.mark.parametrize("text", ["[tool.adtool{}]\n", "tool.adtool{} = 1\n"])
def test_names_of_very_many_parts(tmp_path: Path, text: str) -> None:
    """A reader of TOML takes minutes for them, and no limit of time holds before settings."""
    with pytest.raises(ToolError, match="dots"):
        read(tmp_path, text.format(".a" * 200_000))
