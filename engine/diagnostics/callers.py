"""The argument expressions of a user's call, from its source text."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache

from engine.diagnostics.site import Site, column
from engine.diagnostics.span import Span
from engine.reading import getlines

_LONGEST = 60  # characters of an expression that still names something


def call_at(site: Site | None) -> ast.Call | None:
    """The call at a place; None where the text is not there, or says nothing of it."""
    return None if site is None else _call_of(site.span)


@lru_cache(maxsize=1024)
def _call_of(span: Span) -> ast.Call | None:
    best = None
    for call in _calls(span.file, span.line):
        first, last = call.lineno, call.end_lineno or call.lineno
        if (span.end_line, span.end_col) != (span.line, 1):  # columns are known
            if (first, last) != (span.line, span.end_line):
                continue
            start = column(span.file, first, call.col_offset)
            if (start, column(span.file, last, call.end_col_offset or 0)) == (
                span.col, span.end_col,
            ):  # fmt: skip
                return call
        elif first <= span.line <= last and (best is None or best.lineno <= call.lineno):
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


@lru_cache(maxsize=1024)
def text(expression: ast.expr) -> str:
    """An expression as text on one line; empty where it is too long to name anything."""
    out = " ".join(ast.unparse(expression).split())
    return out if len(out) <= _LONGEST else ""


def copied(site: Site | None) -> tuple[str, str]:
    """What a call that copies an array gives the copy to, and what it copies: `("h", "o")` for
    `h = array(o.numpy())`, `h.assign(o)` and `copy(h, o)`; each empty where that is not plain.
    """
    call = call_at(site)
    if site is None or call is None:
        return "", ""
    into, f = _assigned(site.span.file).get((call.lineno, call.col_offset)), call.func
    name = f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")
    first = call.args[0] if call.args else None
    if name == "copy" and len(call.args) > 1:
        into, first = call.args[0], call.args[1]
    elif name == "assign" and isinstance(f, ast.Attribute):
        into = f.value
    elif name in ("clone", "contiguous") and first is None and isinstance(f, ast.Attribute):
        first = f.value
    while isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute):
        if first.args or first.func.attr not in _SAME:
            break
        first = first.func.value
    return _plain(into), _plain(first)


# Methods whose result holds what their array does.
_SAME = ("numpy", "tolist", "list", "copy", "flatten", "contiguous")


def _plain(expression: ast.expr | None) -> str:
    plain = isinstance(expression, (ast.Name, ast.Attribute, ast.Subscript))
    return text(expression) if plain and expression is not None else ""


def _calls(file: str, line: int) -> Iterator[ast.Call]:
    """The calls in a file that lie on a line, among others; outer ones first."""
    tree = tree_of(file)
    todo: deque[ast.AST] = deque([] if tree is None else [tree])
    while todo:
        node = todo.popleft()
        if isinstance(node, ast.Call):
            yield node
        todo += (x for x in ast.iter_child_nodes(node) if _lies_on(x, line))


def _lies_on(node: ast.AST, line: int) -> bool:
    """Whether a node, or something in it, may lie on a line."""
    first, last = getattr(node, "lineno", line), getattr(node, "end_lineno", None)
    for decorator in getattr(node, "decorator_list", ()):
        first = min(first, decorator.lineno)
    return bool(first <= line <= (first if last is None else last))


@lru_cache(maxsize=64)
def _assigned(file: str) -> dict[tuple[int, int], ast.expr]:
    """What gets the value of calls in a file, by where they begin."""
    return {
        (x.value.lineno, x.value.col_offset): x.targets[0]
        for x in _nodes(file)
        if isinstance(x, ast.Assign) and isinstance(x.value, ast.Call) and len(x.targets) == 1
    }


def _nodes(file: str) -> Iterator[ast.AST]:
    tree = tree_of(file)
    return iter(()) if tree is None else ast.walk(tree)


@lru_cache(maxsize=64)
def tree_of(file: str) -> ast.Module | None:
    """A file of Python as a tree; None where there is no text, or none of Python."""
    try:
        return ast.parse("".join(getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None
