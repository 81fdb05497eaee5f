"""The text of a program as a tree, for messages that quote it."""

from __future__ import annotations

import ast
from functools import lru_cache

from engine.reading import getlines

WARP = "warp"
WARP_NAME = "Warp"  # the same in messages
# Modules that programs import the engine as: by its own name, or by an alias.
ENGINES = ("engine", WARP)


def tree_of(file: str) -> ast.Module:
    """The file as it is known to tracebacks, parsed; an empty one where it cannot be had.

    Of all who ask: not to be changed.
    """
    return _parsed("".join(getlines(file)))


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])
