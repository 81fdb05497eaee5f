"""What the command line has, for tests of what is made of it elsewhere."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import typer.main


@cache
def _commands() -> dict[str, set[str]]:
    from adtool.cli import app

    commands: Any = typer.main.get_command(app)
    return {
        name: {o for p in c.params for o in p.opts} for name, c in commands.commands.items()
    }  # fmt: skip


@cache
def _formats() -> bool:
    """Whether `--output FORMAT=FILE` is known, and may be repeated."""
    from adtool.cli import app

    commands: Any = typer.main.get_command(app)
    return any("--output" in p.opts and p.multiple for p in commands.commands["check"].params)


def needs(*options: str) -> pytest.MarkDecorator:
    """Leaves a test out where `adtool check` has not all of these options yet.

    `FORMAT=FILE` stands for `--output FORMAT=FILE`, `report` for the command.
    """
    known = _commands()["check"] | ({"FORMAT=FILE"} if _formats() else set())
    known |= {name for name in _commands() if name != "check"}
    missing = [o for o in options if o not in known]
    return pytest.mark.skipif(bool(missing), reason=f"adtool has no {', '.join(missing)} yet")
