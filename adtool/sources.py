"""The text of a program as a tree, for messages in the words of its source."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache


def tree_of(file: str) -> ast.Module:
    """The file as it is known to tracebacks, parsed; an empty one where it cannot be had.

    Of all who ask: not to be changed.
    """
    return _parsed("".join(linecache.getlines(file)))


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])
