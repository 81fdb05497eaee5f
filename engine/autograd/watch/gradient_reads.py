"""Tells from a program's text how it uses a gradient where it reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from engine.classes import dataclass
from engine.diagnostics.callers import text, tree_of
from engine.diagnostics.site import Site, column

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
# Functions that are asked whether something is None, or sort out what is.
_TESTS = (
    "all", "any", "assertIsNone", "assertIsNotNone", "bool", "filter", "getattr", "hasattr", "id",
    "isinstance", "type",
)  # fmt: skip
_CAUGHT = ("AttributeError", "BaseException", "Exception", "KeyError", "LookupError", "TypeError")
_MANAGERS = ("raises", "suppress", "assertRaises", "assertRaisesRegex")
_EXCEPTIONS = (ast.Try, getattr(ast, "TryStar", ast.Try))
_CONTAINERS = (ast.List, ast.Tuple, ast.Set, ast.Starred, ast.keyword, ast.JoinedStr)
_USES = (ast.Attribute, ast.Subscript, ast.BinOp, ast.FormattedValue)


@dataclass(frozen=True, slots=True)
class GradientRead:
    """A read of a gradient.

    text: as `k.grad`. array: as `k`. used: whether the program computes with it or prints it there,
    rather than giving it a name or passing it to a function of its own. given: whether a loop or
    a caller gives the array that name, which names other arrays too.
    """

    text: str
    array: str
    used: bool
    given: bool


def read_at(site: Site) -> GradientRead | None:
    """What is read at a place.

    None where the program tests the gradient for None or handles the exception, or its text does
    not tell.
    """
    parents = _parents(site.span.file)
    found = [n for n in parents if isinstance(n, ast.expr) and _owner(n) and _is_at(n, site)]
    names = {(text(n), text(owner)) for n in found if (owner := _owner(n)) is not None}
    if len(names) != 1 or any(_is_guarded(n, parents) for n in found):
        return None
    read, name = names.pop()
    used = all(_is_used(n, parents) for n in found)
    given = any(_is_given(name, n, parents) for n in found)
    return GradientRead(read, name, used, given) if read and name else None


def turns_off_gradients(file: str) -> bool:
    """Whether a program sets `requires_grad` of some array to something else than True."""
    return any(
        isinstance(n, ast.Assign)
        and any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in n.targets)
        and not (isinstance(n.value, ast.Constant) and n.value.value is True)
        for n in _parents(file)
    )


@lru_cache(maxsize=16)
def _parents(file: str) -> dict[ast.AST, ast.AST]:
    """What each node of a file stands in."""
    tree = tree_of(file)
    every = () if tree is None else ast.walk(tree)
    return {child: node for node in every for child in ast.iter_child_nodes(node)}


def _owner(node: ast.AST) -> ast.expr | None:
    """The array of `a.grad`, `tape.gradients[a]`, `tape.gradients.get(a)` and `get_adjoint(a)`."""
    if isinstance(node, ast.Attribute):
        loaded = node.attr == "grad" and isinstance(node.ctx, ast.Load)
        return node.value if loaded else None
    if isinstance(node, ast.Subscript):
        return node.slice if _is_gradients(node.value) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        of_tape = node.func.attr == "get" and _is_gradients(node.func.value)
        return node.args[0] if of_tape or node.func.attr == "get_adjoint" else None
    return None


def _is_gradients(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "gradients"


def _is_at(node: ast.expr, site: Site) -> bool:
    span = site.span
    if (span.end_line, span.end_col) == (span.line, 1):  # no columns are known
        return node.lineno <= span.line <= (node.end_lineno or node.lineno)
    if (node.lineno, node.end_lineno) != (span.line, span.end_line):
        return False
    first = column(span.file, span.line, node.col_offset)
    last = column(span.file, span.end_line, node.end_col_offset or 0)
    return (first, last) == (span.col, span.end_col)


def _above(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while (up := parents.get(node)) is not None:
        yield up
        node = up


def _is_given(name: str, node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a name is the variable of a loop around a node, or a parameter of its function."""
    for up in _above(node, parents):
        loops = [up] if isinstance(up, (ast.For, ast.AsyncFor)) else getattr(up, "generators", ())
        bound = {n.id for x in loops for n in ast.walk(x.target) if isinstance(n, ast.Name)}
        if isinstance(up, _SCOPES[:3]):
            bound |= {n.arg for n in ast.walk(up.args) if isinstance(n, ast.arg)}
        if name in bound or isinstance(up, _SCOPES):
            return name in bound
    return False


def _is_used(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    above = list(_above(node, parents))
    user = next((n for n in above if not isinstance(n, _CONTAINERS)), None)
    if isinstance(user, ast.Call):
        own = (n.name for n in ast.walk(above[-1]) if isinstance(n, (*_SCOPES[:2], ast.ClassDef)))
        return _name(user.func) not in (*_TESTS, *own)
    return isinstance(user, _USES)


def _is_guarded(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a function tests a gradient for None, or handles the exception of using it."""
    above = list(_above(node, parents))
    scope = next((n for n in above if isinstance(n, _SCOPES)), node)
    if _is_caught(node, above[: above.index(scope)] if scope in above else []):
        return True
    return any(ast.unparse(t) == ast.unparse(node) for n in ast.walk(scope) for t in _tested(n))


def _is_caught(node: ast.AST, above: list[ast.AST]) -> bool:
    below: ast.AST = node
    for n in above:
        if isinstance(n, _EXCEPTIONS) and below in n.body:
            for h in n.handlers:
                if any(isinstance(x, ast.Raise) for x in ast.walk(h)):
                    continue
                named = [] if h.type is None else [_name(x) for x in ast.walk(h.type)]
                if h.type is None or any(name in _CAUGHT for name in named):
                    return True
        if isinstance(n, (ast.With, ast.AsyncWith)):
            calls = (i.context_expr for i in n.items)
            if any(isinstance(c, ast.Call) and _name(c.func) in _MANAGERS for c in calls):
                return True
        below = n
    return False


def _tested(node: ast.AST) -> list[ast.expr]:
    """The expressions of which a node tests whether they are None, or true."""
    if isinstance(node, ast.Compare):
        every = [node.left, *node.comparators]
        none = any(isinstance(e, ast.Constant) and e.value is None for e in every)
        return every if none else []
    if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
        return [node.test]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    if isinstance(node, ast.comprehension):
        return node.ifs
    if isinstance(node, ast.Match):
        return [node.subject]
    if isinstance(node, ast.Call) and _name(node.func) in _TESTS:
        return node.args
    return []


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
