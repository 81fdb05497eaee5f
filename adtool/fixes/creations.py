"""Fix: adds `requires_grad=True` where an array is made."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING

from adtool.fixes.source import Source, source_of
from adtool.report import Edit, Fix

if TYPE_CHECKING:
    from engine.diagnostics import Span

_NAME = "requires_grad"


def requires_grad(made: Iterable[Span]) -> Fix | None:
    """Makes the arrays that these calls made with a gradient; None where that is not one change.

    It is not safe where the program says `requires_grad=False`: that was meant; nor where it asks
    which arrays have gradients, and so may do something else.
    """
    edits: list[Edit] = []
    safe = True
    for at in dict.fromkeys(made):
        source = source_of(at.file)
        call = None if source is None else source.at(at, ast.Call)
        if source is None or call is None:
            return None
        edit = _edit(source, call)
        if edit is None:
            return None
        safe = safe and (edit.line, edit.column) == (edit.end_line, edit.end_column)
        safe = safe and not _asks(source.tree)
        edits.append(edit)
    if not edits:
        return None
    what = "the array" if len(edits) == 1 else "the arrays"
    return Fix(f"make {what} with `requires_grad=True`", safe, tuple(edits))


def _asks(tree: ast.Module) -> bool:
    """Whether a program looks at what has a gradient: `x.requires_grad`, `x.grad is None`."""
    for n in ast.walk(tree):
        if isinstance(n, ast.Attribute) and n.attr == _NAME and isinstance(n.ctx, ast.Load):
            return True
        if isinstance(n, ast.Constant) and n.value in (_NAME, "grad"):
            return True
        tests: list[ast.expr] = []
        if isinstance(n, ast.Compare) and any(isinstance(o, (ast.Is, ast.IsNot)) for o in n.ops):
            tests = [n.left, *n.comparators]
        elif isinstance(n, (ast.If, ast.IfExp, ast.While)):
            tests = [n.test]
        elif isinstance(n, ast.BoolOp):
            tests = n.values
        elif isinstance(n, ast.comprehension):
            tests = n.ifs
        elif isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not):
            tests = [n.operand]
        if any(isinstance(t, ast.Attribute) and t.attr == "grad" for t in tests):
            return True
    return False


def _edit(source: Source, call: ast.Call) -> Edit | None:
    place = _position(source, call)
    if place is None or any(k.arg is None for k in call.keywords):
        return None
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    given = next((k.value for k in call.keywords if k.arg == _NAME), None)
    if given is None and len(call.args) > place:
        given = call.args[place]
    if given is None:
        return _added(source, call)
    if isinstance(given, ast.Constant) and given.value is False:
        return Edit(source.file, *source.start(given), *source.end(given), "True")
    return None


def _position(source: Source, call: ast.Call) -> int | None:
    """The number of the parameter, among those that may be given by place."""
    import engine

    name = source.called(call)
    maker = getattr(engine, name, None) if name else None
    if maker is None or not callable(maker):
        return None
    try:
        own = isinstance(maker, type)  # its `__init__` has `self` before the others
        parameters = list(inspect.signature(maker.__init__ if own else maker).parameters)[own:]
    except (TypeError, ValueError):
        return None
    return parameters.index(_NAME) if _NAME in parameters else None


def _added(source: Source, call: ast.Call) -> Edit | None:
    """The argument put after the others, in the manner in which they are written."""
    word = f"{_NAME}=True"
    opening = source.end(call.func)
    tokens = source.tokens(opening, source.end(call))
    if len(tokens) < 2 or tokens[-1].string != ")":
        return None
    if any(isinstance(a, ast.GeneratorExp) for a in call.args):
        return None  # without parentheses of its own it must stay the only one
    last = tokens[-2]
    line, column = last.end[0], last.end[1] + 1
    if not call.args and not call.keywords:
        return source.insertion(line, column, word)
    if last.string != ",":
        return source.insertion(line, column, f", {word}")
    arguments = sorted([*call.args, *[k.value for k in call.keywords]],
                       key=lambda a: (a.lineno, a.col_offset))  # fmt: skip
    keyword = next((k for k in call.keywords if k.value is arguments[-1]), None)
    first = source.start(keyword or arguments[-1])
    blanks = source.lines[first[0] - 1][: first[1] - 1]
    if not blanks.strip() and tokens[-1].start[0] > line:  # one a line
        return source.line_after(line, f"{blanks}{word},")
    return source.insertion(line, column, f" {word}")
