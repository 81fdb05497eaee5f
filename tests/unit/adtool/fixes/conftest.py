"""Programs as text, known to `linecache` for the time of a test."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable

import pytest

from engine.diagnostics import Span

FILE = "/p/program.py"
Place = Callable[..., Span]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    """Of a program's text, the place of the call with this text; number: of several, from 0."""

    def find(text: str, call: str, number: int = 0) -> Span:
        lines = text.splitlines(True)
        monkeypatch.setitem(linecache.cache, FILE, (len(text), None, lines, FILE))
        calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
        found = sorted((n for n in calls if ast.unparse(n) == call), key=lambda n: n.lineno)
        node = found[number]
        assert node.end_lineno is not None and node.end_col_offset is not None
        return Span(FILE, node.lineno, node.col_offset + 1, node.end_lineno,
                    node.end_col_offset + 1)  # fmt: skip

    return find
