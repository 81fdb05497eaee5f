"""Facts about a Python function that a framework runs."""

from __future__ import annotations

from typing import Any

from engine.diagnostics import Span
from engine.diagnostics.site import definition_of
from engine.runtime.launch_errors import fail


def name_of(function: Any) -> str:
    """A function's name, for messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def definition(function: Any) -> Span | None:
    """The line where a function is defined; of a module of PyTorch, its `forward`."""
    f = getattr(function, "func", function)
    f = getattr(f, "__wrapped__", f)
    code = getattr(f, "__code__", None) or getattr(getattr(f, "forward", None), "__code__", None)
    return None if code is None else definition_of(code)


def as_tuple(function: Any, found: Any, kind: type, what: str) -> tuple[Any, ...]:
    """What a function returned. Raises LaunchError (E202) for anything but values of a kind."""
    made = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    for x in made:
        if not isinstance(x, kind):
            raise fail("E202", f"{name_of(function)!r} returned {type(x).__name__}, and not {what}")
    return made
