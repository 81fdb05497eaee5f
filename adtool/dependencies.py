"""What is said where a package that adtool itself needs is not installed. Imports none of them."""

from __future__ import annotations

import sys

from adtool.saying import say

BASE = ("numpy", "typer", "rich", "matplotlib", "graphviz", "jinja2", "tomli")


def is_missing(error: BaseException) -> bool:
    """Whether an exception says that one of them is not installed."""
    return isinstance(error, ModuleNotFoundError) and _root(error) in BASE


def tell(error: ModuleNotFoundError) -> None:
    """Says on standard error which one."""
    name = _root(error)
    say(
        f"error: adtool needs the package {name}, which is not installed for {sys.executable}: "
        f"pip install {name}", file=sys.stderr,
    )  # fmt: skip


def _root(error: ModuleNotFoundError) -> str:
    return str(error.name or "").partition(".")[0]
