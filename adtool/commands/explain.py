"""`adtool explain CODE`: prints the manual page of a code."""

from __future__ import annotations

from typing import Annotated

import typer

from adtool.exits import ToolError


def explain(
    code: Annotated[
        str, typer.Argument(help="A finding's code, as G001; without it, all codes are listed.")
    ] = "",
) -> None:
    """Print what a finding means, why it matters and what to do about it."""
    from adtool.rules import load_rules

    rules = load_rules()
    if not code:
        for rule in rules:
            typer.echo(f"{rule.code}  {rule.severity:<8} {rule.name}")
        return
    for rule in rules:
        if code.lower() in (rule.code.lower(), rule.name):
            typer.echo(rule.page(), nl=False)
            return
    known = ", ".join(rule.code for rule in rules)
    raise ToolError(f"no finding has the code {code!r}", f"the codes are {known}")
