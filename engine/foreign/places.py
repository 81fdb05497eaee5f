"""Places where functions are defined and called, and names of their parameters."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import os
import re
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from engine.diagnostics import UNKNOWN, Span
from engine.diagnostics.site import Site, definition_of, is_own
from engine.reading import pin

_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]([^/\\.]+)")
_LIBRARIES = tuple({p for k, p in sysconfig.get_paths().items() if k.endswith(("lib", "stdlib"))})
_ENGINE = __file__[: -len("foreign/places.py")]
STANDARD = "Python"


def cells(function: Any) -> Iterator[tuple[Any, Any]]:
    """The cells of what a function has captured, with what they hold; none of empty ones."""
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):
            yield cell, cell.cell_contents


def definition(function: Callable[..., Any]) -> Span:
    """The line of a function's `def`, from there to the end of its name."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return UNKNOWN if code is None else definition_of(code)


def class_line(kind: type) -> Span:
    """The line of a class, for what has no function of its own."""
    try:
        file = inspect.getsourcefile(kind) or ""
        pin([file])
        lines, first = inspect.getsourcelines(kind)
    except (OSError, TypeError):
        return UNKNOWN
    return Span(file, first, 1, first, max(1, len(lines[0].rstrip())) + 1)


def caller(*roots: str, depth: int = 1) -> Span | None:
    """The call in the nearest frame that is neither ours nor of files below these folders."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and (is_own(frame) or frame.f_code.co_filename.startswith(roots)):
        frame = frame.f_back
    return None if frame is None else Site(frame.f_code, frame.f_lasti, frame.f_lineno).span


@functools.cache
def package_of(file: str) -> str:
    """The installed package that a file belongs to, empty for a file of the user's program."""
    if file.startswith(_ENGINE):
        return "engine"
    if found := _INSTALLED.match(file):
        return found[1]
    return STANDARD if file.startswith((*_LIBRARIES, "<frozen ")) else ""


def folder(module: Any) -> str:
    """The folder of a package, with a separator at its end."""
    return os.path.join(os.path.dirname(os.path.abspath(str(module.__file__))), "")


def parameters(function: Callable[..., Any], count: int, skip: int = 0) -> list[str]:
    """The names of a function's first parameters, as many as there are values.

    skip: parameters that are no values, as `ctx`. Those of `*args` are `args[0]`, `args[1]`.
    """
    names: list[str] = []
    try:
        given = list(inspect.signature(function).parameters.values())[skip:]
    except (TypeError, ValueError):
        given = []
    for p in given:
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{p.name}[{k}]" for k in range(max(0, count - len(names)))]
        elif p.kind is not inspect.Parameter.VAR_KEYWORD:
            names.append(p.name)
    names += [f"argument {k}" for k in range(len(names), count)]
    return names[:count]


def results(function: Callable[..., Any], count: int, taken: list[str]) -> list[str]:
    """What a function calls the values that it returns; `out`, `out0`, `out1` where that varies.

    taken: names that are others' already.
    """
    plain = ["out"] if count == 1 else [f"out{k}" for k in range(count)]
    try:
        function = inspect.unwrap(function)
        pin([inspect.getsourcefile(function) or ""])
        text = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError, ValueError):
        return plain
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            found.add(tuple(p.id if isinstance(p, ast.Name) else "" for p in parts))
    if len(found) != 1:
        return plain
    names = found.pop()
    fits = len(names) == count and len(set(names)) == count and all(names)
    return list(names) if fits and not set(names) & set(taken) else plain
