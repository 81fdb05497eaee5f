"""Names that need a variable, and the desugared forms."""

from __future__ import annotations

import ast
import textwrap

import pytest

from engine.frontend.parsing.desugar import desugar
from engine.frontend.parsing.local_variables import plan_locals


def tree_of(text: str) -> ast.FunctionDef:
    body = textwrap.indent(textwrap.dedent(text).strip(), "    ")
    tree = ast.parse(f"def f(p, n):\n{body}\n").body[0]
    assert isinstance(tree, ast.FunctionDef)
    desugar(tree, frozenset())
    return tree


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("x = p\ny = x", {"x", "y", "p", "n"}),
        ("x = p\nx = x + 1\ny = x", {"x", "y", "p", "n"}),
        ("p += 1\nreturn p", {"p", "n"}),
        ("x = 0\nfor i in range(n):\n  x += i", {"p", "n", "i"}),
        ("for i in range(n):\n  x = i\n  y = x", {"p", "n", "i", "x", "y"}),
        ("for i in range(n):\n  y = x\n  x = i", {"p", "n", "i", "y"}),
        ("for i in range(n):\n  p\nfor i in range(n):\n  i", {"p", "n", "i"}),
        ("for i in range(n):\n  p\nreturn i", {"p", "n"}),
        ("for i in range(n):\n  i += 1\n  p + i", {"p", "n"}),
        ("if n:\n  x = 1\n  y = x\nelse:\n  x = 2\n  y = x", {"p", "n", "x", "y"}),
        ("if n:\n  x = 1\nelse:\n  x = 2\nreturn x", {"p", "n"}),
        ("x = 1\nif n:\n  x = 2\nreturn x", {"p", "n"}),
        ("while n:\n  n -= 1", {"p"}),
        ("x = 1\nwhile x:\n  x = 2", {"p", "n"}),
        ("if (k := n):\n  return k", {"p", "n"}),
        ("x, y = p, n\nx, y = y, x\nreturn x, y", {"p", "n", "x", "y"}),
    ],
)
def test_plain_names(text: str, plain: set[str]) -> None:
    assert plan_locals(tree_of(text)).plain == plain


def test_components() -> None:
    plan = plan_locals(tree_of("v = p\nv[0] = 1\nm = p\nm[0][1].x += 2\nn.y = 1"))
    assert plan.components == {"v", "m", "n"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x += 1", "x = x + 1"),
        ("x[0] += 1", "x[0] += 1"),
        ("a < b < 3", "a < b and b < 3"),
        ("a < f(b) <= 3 < c", "a < ($0 := f(b)) and $0 <= 3 and (3 < c)"),
        ("x = -1", "x = -1"),
        ("'text'\npass\nx = 1\n...", "x = 1"),
        ("return 1\nx = 2", "return 1"),
        ("if n:\n  break\n  x = 1", "if n:\n    break"),
    ],
)
def test_desugar(text: str, expected: str) -> None:
    got = "\n".join(ast.unparse(s) for s in tree_of(text).body)
    assert got == expected


def test_negative_numbers_are_constants() -> None:
    (s,) = tree_of("x = -(-2.5)").body
    assert isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant)
    assert s.value.value == 2.5
