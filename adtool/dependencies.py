"""What is said where a package that adtool itself needs is not installed. Imports none of them."""

from __future__ import annotations

import sys
from importlib.util import find_spec

BASE = ("numpy", "typer", "rich", "matplotlib", "graphviz", "jinja2", "tomli")
ENGINE = "numpy"  # what the engine needs


def is_there(name: str) -> bool:
    """Whether a package is installed; it is not imported."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def missing(error: BaseException) -> str:
    """Which of them is not installed, as an exception says; else an empty string."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    name = str(error.name or "").partition(".")[0]
    return name if name in BASE else ""


def words(name: str) -> tuple[str, str]:
    """The message and the help for one that is not installed."""
    return (
        f"adtool needs the package {name}, which is not installed for {sys.executable}",
        f"pip install {name}",
    )
