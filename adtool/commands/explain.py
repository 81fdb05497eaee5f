"""`adtool explain CODE`: prints the page of a finding, or of an error of the engine."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Annotated

import typer

from adtool.exits import ToolError

_CLOSE = 0.75  # how alike a mistyped name is to the one that was meant


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
    if len(code.replace(",", " ").split()) > 1:
        raise ToolError(f"{code!r} is not one code", "name one code at a time: adtool explain G001")
    near = _near(code, [rule.code for rule in rules] + list(PAGES), [rule.name for rule in rules])
    hint = f"did you mean {near}? " if near else ""
    least, *_, most = (rule.code for rule in rules)
    if re.fullmatch("G[0-9]{3}", code.upper()) and least < code.upper() < most:
        raise ToolError(
            f"no finding has the code {code.upper()}: it is not used",
            f"{hint}`adtool explain` lists all codes",
        )
    raise ToolError(f"unknown code {code!r}", f"{hint}`adtool explain` lists all codes")


def _near(word: str, codes: Sequence[str], names: Sequence[str]) -> str:
    """The code or name that was meant; empty where none is close.

    Of codes, a digit is all that differs: close is the same number, or one wrong character where
    only one code is so close. A name is close also to one of its words.
    """
    number = re.fullmatch("([A-Za-z])0*([0-9]{1,6})", word)
    if number is not None:
        letter, digits = number.groups()
        same = f"{letter.upper()}{int(digits):03}"
        if same in codes:
            return same
    close = [c for c in codes if _wrong(word.upper(), c) == 1]
    if len(close) == 1:
        return close[0]
    name = word.lower().replace("_", "-")
    near = [n for n in names if name in n.split("-")]
    if len(near) != 1:
        near = difflib.get_close_matches(name, names, 1, _CLOSE)
    return near[0] if near else ""


def _wrong(word: str, code: str) -> int:
    """How many characters of a word are not those of a code; all where it has another length."""
    same = len(word) == len(code)
    return sum(a != b for a, b in zip(word, code, strict=True)) if same else len(code)
