"""The user's source text at a place."""

from __future__ import annotations

import ast
from functools import lru_cache

from engine.diagnostics import Span
from engine.diagnostics.site import column
from engine.reading import getline, getlines

_CHOOSING = ("where", "select")


def text_of(span: Span) -> str:
    """The source between two places; empty where they are on different lines, or nowhere."""
    text = getline(span.file, span.line) if span.line == span.end_line else ""
    return text[span.col - 1 : span.end_col - 1].strip()


def selected(span: Span) -> bool:
    """Whether a place is inside a call of `where` or `select`, among what it chooses from.

    Both sides of such a call are computed, and so are both derivatives.
    """
    here, end = (span.line, span.col), (span.end_line, span.end_col)
    return any(
        lo <= here and end <= hi for lo, hi in _choices(span.file, "".join(getlines(span.file)))
    )


@lru_cache(maxsize=8)
def _choices(file: str, text: str) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
    """From where to where the arguments of such calls reach."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    return tuple(
        (
            (a.lineno, column(file, a.lineno, a.col_offset)),
            (a.end_lineno or 0, column(file, a.end_lineno or 0, a.end_col_offset or 0)),
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _name(node.func) in _CHOOSING
        for a in node.args
    )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
