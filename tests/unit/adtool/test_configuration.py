"""[tool.adtool] in pyproject.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main

from adtool.cli import app
from adtool.configuration import kind_of, settings
from adtool.exits import ToolError

COMMANDS: Any = typer.main.get_command(app)

VALUES = {"switch": "true", "text": "'x'"}
# Options that take one of some words.
WORDS = {"format": "'json'", "gate": "'note'", "overwrites": "'warn'", "executor": "'serial'"}


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


def test_every_option_of_check_can_be_set(tmp_path: Path) -> None:
    for p in COMMANDS.commands["check"].params:
        if p.param_type_name != "option" or p.name in ("module", "each", "changed_since", "help"):
            continue
        for name in (o[2:] for o in (*p.opts, *p.secondary_opts) if o.startswith("--")):
            value = VALUES.get(kind_of(COMMANDS.commands["check"], p), "1")
            value = WORDS.get(name, value)
            assert p.name in read(tmp_path, f"[tool.adtool]\n{name} = {value}\n")["check"], name


def test_nothing_to_read(tmp_path: Path) -> None:
    assert read(tmp_path, "[project]\nname = 'x'\n") == {}
    assert read(tmp_path, "[project]\nname = 'adtool'\n") == {}
    assert settings(Path("/"), COMMANDS.commands) == {}


@pytest.mark.parametrize(
    ("text", "words", "help"),
    [
        ("max-input = 1", "max-input is no option of adtool", "max-inputs"),
        ("each = true", "each is no option", ""),
        ("verbose = 'yes'", "verbose is a switch", ""),
        ("eps = [1]", "eps takes a number, not [1]", ""),
        ("ignore = [true]", "ignore takes a text, or a list of such", ""),
        ("check.bogus = 1", "[tool.adtool.check] bogus is no option", ""),
        ("eps = ", "is no TOML", ""),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, words: str, help: str) -> None:
    with pytest.raises(ToolError) as caught:
        read(tmp_path, f"[tool.adtool]\n{text}\n")
    assert words in caught.value.message and "pyproject.toml" in caught.value.message
    assert help in caught.value.help
