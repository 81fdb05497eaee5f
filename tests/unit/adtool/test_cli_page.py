"""docs/cli.md names every command and every option, and no others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer.main

from adtool.cli import app

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "cli.md").read_text()
COMMANDS: Any = typer.main.get_command(app)

OPTIONS = {
    name: {o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("-")}
    for name, command in COMMANDS.commands.items()
}


def test_every_command_and_option_is_there() -> None:
    for name, options in OPTIONS.items():
        assert f"adtool {name}" in PAGE
        for option in options:
            assert re.search(rf"`{re.escape(option)}[` ]", PAGE), f"{name} {option}"


def test_no_other_option_is_there() -> None:
    known = set().union(*OPTIONS.values())
    named = set(re.findall(r"`(--?[a-z][\w-]*)", PAGE))
    assert named - known == set()
