"""`adtool explain CODE`: prints the page of a finding, or of an error of the engine."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from adtool.exits import ToolError


def explain(
    code: Annotated[
        str,
        typer.Argument(
            metavar="[CODE]",
            help="The code of a finding, like G001, or of an error, like E402. Without it: list "
            "all codes.",
        ),
    ] = "",
) -> None:
    """Explain a finding or an error: the meaning, an example, and what to do."""
    from adtool.errors import PAGES, text_of
    from adtool.rules import load_rules
    from engine.diagnostics import CODES

    rules = load_rules()
    if not code:
        width = max(len(rule.name) for rule in rules)
        typer.echo("findings of adtool check")
        for rule in rules:
            typer.echo(f"  {rule.code}  {rule.name:<{width}}  {rule.severities}")
        typer.echo("errors of the engine")
        for name in PAGES:
            typer.echo(f"  {name}  {CODES[name]}")
        return
    for rule in rules:
        if code.lower() in (rule.code.lower(), rule.name):
            typer.echo(rule.page(), nl=False)
            return
    if code.upper() in PAGES:
        typer.echo(text_of(code.upper()), nl=False)
        return
    known = [*(rule.code for rule in rules), *(rule.name for rule in rules), *PAGES]
    near = difflib.get_close_matches(code if code in known else code.upper(), known, 1)
    near = near or difflib.get_close_matches(code.lower(), known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise ToolError(f"unknown code {code!r}", f"{hint}`adtool explain` lists all codes")
