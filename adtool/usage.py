"""Usage errors, as text or as JSON."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import typer

from adtool.saying import say

# The base of all errors of usage; newer versions of typer bring a `click` of their own.
ClickException: type[Exception] = next(
    c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException"
)


def tidied(text: str) -> str:
    """What the parser says of a value, in this tool's words."""
    text = text.strip().rstrip(".")
    return text.replace("Value error, ", "").replace("Input should be ", "must be ")


def words(error: Any) -> tuple[str, str]:
    """What is wrong with a command line, and what to do."""
    text = tidied(str(error.format_message()))
    ctx = getattr(error, "ctx", None)
    if ctx is None:
        return text, ""
    wrong = getattr(error, "option_name", None)
    if wrong is not None and "adtool.words" in ctx.meta:
        command = f"{ctx.command_path} SCRIPT {wrong}"
        return text, (
            f"`{ctx.command_path} --help` lists the options; write an option of the script "
            f"after the script: {command}"
        )
    if (found := _COMMAND.match(text)) is not None:
        return _no_command(text, found[1])
    name = getattr(getattr(error, "param", None), "name", None)
    source = ctx.get_parameter_source(name) if name else None
    if getattr(source, "name", "") == "DEFAULT_MAP":
        return text, "the value is in [tool.adtool] of pyproject.toml"
    return text, f"`{ctx.command_path} --help` lists the options"


_COMMAND = re.compile(r"No such command '(.*)'", re.DOTALL)


def _no_command(text: str, word: str) -> tuple[str, str]:
    """The same where a word is no command: a script may stand in its place."""
    if word.endswith((".py", ".adt")) or os.path.exists(word):
        return f"`{word}` is not a command", f"to check it: adtool check {shlex.quote(word)}"
    return text, "`adtool --help` lists the commands"


def wants_json(args: Sequence[str]) -> bool:
    """Whether a command line that could not be read asks for JSON."""
    for before, word in zip(["", *args], args, strict=False):
        if word == "--format=json" or (before == "--format" and word == "json"):
            return True
        if word == "--":
            break
    return False


def tell(kind: str, message: str, help: str, json: bool) -> None:
    """Says on standard error what is wrong; with json=True, on standard output, too."""
    with suppress(OSError):
        say(f"error: {message}", file=sys.stderr)
        if help:
            say(f"help: {help}", file=sys.stderr)
    if json:
        from adtool import __version__
        from adtool.report import Failure, failed_report, to_json

        print(to_json(failed_report(Failure(kind, message, help), f"adtool {__version__}")))
