"""The expressions that a user's call was made with, from its source text."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence
from functools import lru_cache

from engine.diagnostics.site import Site

_LONGEST = 60  # characters of an expression that still names something


def call_at(site: Site | None) -> ast.Call | None:
    """The call at a place; None where the text is not there, or says nothing of it."""
    if site is None:
        return None
    span = site.span
    best = None
    for call in _calls(span.file):
        start = (call.lineno, call.col_offset + 1)
        end = (call.end_lineno or call.lineno, (call.end_col_offset or 0) + 1)
        if (span.end_line, span.end_col) != (span.line, 1):  # columns are known
            if start == (span.line, span.col) and end == (span.end_line, span.end_col):
                return call
        elif start[0] <= span.line <= end[0] and (best is None or best.lineno <= call.lineno):
            best = call
    return best


def argument_list(call: ast.Call, names: Sequence[str]) -> list[ast.expr] | None:
    """The elements of a call's list arguments of some names, in order; None where unknown.

    names: of the call's parameters, by position; "" for one that is no list.
    """
    out: list[ast.expr] = []
    given: dict[str, ast.expr] = dict(zip(names, call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    for name in dict.fromkeys(filter(None, names)):
        value = given.get(name)
        if value is None:
            continue
        if not isinstance(value, (ast.List, ast.Tuple)):
            return None
        if any(isinstance(item, ast.Starred) for item in value.elts):
            return None
        out += value.elts
    return out


def text(expression: ast.expr) -> str:
    """An expression as text on one line; empty where it is too long to name anything."""
    out = " ".join(ast.unparse(expression).split())
    return out if len(out) <= _LONGEST else ""


@lru_cache(maxsize=64)
def _calls(file: str) -> tuple[ast.Call, ...]:
    """Every call in a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(x for x in ast.walk(tree) if isinstance(x, ast.Call))
