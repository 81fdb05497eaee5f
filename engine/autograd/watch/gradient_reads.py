"""Tells from a program's text whether it reckons with a gradient that is None where it reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from engine.diagnostics.callers import text, tree_of
from engine.diagnostics.site import Site, column

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.Module)
# Functions that are asked whether something is None, or sort out what is.
_TESTS = (
    "all", "any", "assertIsNone", "assertIsNotNone", "bool", "filter", "getattr", "hasattr", "id",
    "isinstance", "type",
)  # fmt: skip
# Functions whose result holds what they are given.
_HOLDERS = ("dict", "enumerate", "list", "reversed", "set", "tuple", "zip")
_VIEWS = ("items", "values")
_PUTS = ("add", "append", "extend", "insert", "put", "update")
_CAUGHT = ("AttributeError", "BaseException", "Exception", "KeyError", "LookupError", "TypeError")
_MANAGERS = ("raises", "suppress", "assertRaises", "assertRaisesRegex")
_EXCEPTIONS = (ast.Try, getattr(ast, "TryStar", ast.Try))


def reads_at(site: Site) -> tuple[str, str] | None:
    """What is read at a place, as `k.grad`, and of which array, as `k`.

    None where the program reckons with None there, or its text does not tell.
    """
    file = site.span.file
    parents = _parents(file)
    found = [n for n in parents if isinstance(n, ast.expr) and _owner(n) and _is_at(n, site)]
    if not found or any(_reckons(n, parents) for n in found):
        return None
    names = {(text(n), text(owner)) for n in found if (owner := _owner(n)) is not None}
    read, name = names.pop()
    return (read, name) if not names and read and name else None


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


# ---- what the program does with it


def _reckons(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    above = list(_above(node, parents))
    scope = next((n for n in above if isinstance(n, _SCOPES)), node)
    if _is_caught(node, above[: above.index(scope)] if scope in above else ()):
        return True
    inside = [n for n in ast.walk(scope) if scope in _scopes(n, parents)]
    held = _holders({ast.unparse(node)}, inside)
    tested = {ast.unparse(t) for n in inside for t in _tested(n)}
    if held & tested:
        return True
    if isinstance(scope, ast.Lambda) and _holds(scope.body, held):
        return True
    module = next((n for n in above if isinstance(n, ast.Module)), None)
    everything = [] if module is None else list(ast.walk(module))
    if isinstance(scope, _FUNCTIONS) and any(_gives(n, held) for n in inside):
        calls = {ast.unparse(n) for n in everything
                 if isinstance(n, ast.Call) and _name(n.func) == scope.name}  # fmt: skip
        tested = {ast.unparse(t) for n in everything for t in _tested(n)}
        return not calls or bool(_holders(calls, everything) & tested)
    functions = [n for n in everything if isinstance(n, _FUNCTIONS)]
    return any(
        _is_tested_in(f, name)
        for call in inside if isinstance(call, ast.Call)
        for f in functions if f.name == _name(call.func)
        for name in _parameters(f, call, held)
    )  # fmt: skip


def _above(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while (up := parents.get(node)) is not None:
        yield up
        node = up


def _scopes(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """The function or module that a node stands in."""
    found = next((n for n in _above(node, parents) if isinstance(n, _SCOPES)), None)
    if found is not None:
        yield found


def _is_caught(node: ast.AST, above: Sequence[ast.AST]) -> bool:
    """Whether a function handles the exception that None would bring."""
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


def _tested(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions of which a node tests whether they are None, or true."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Compare):
        if _with_none(node):
            found = [node.left, *node.comparators]
        elif any(isinstance(o, (ast.In, ast.NotIn)) for o in node.ops):
            found = [node.left]
    elif isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
        found = [node.test]
    elif isinstance(node, ast.BoolOp):
        found = node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found = [node.operand]
    elif isinstance(node, ast.comprehension):
        found = node.ifs
    elif isinstance(node, ast.Match):
        found = [node.subject]
    elif isinstance(node, ast.Call) and _name(node.func) in _TESTS:
        found = node.args
    for e in found:
        if isinstance(e, ast.NamedExpr):
            yield from (e.target, e.value)
        yield e


def _with_none(node: ast.Compare) -> bool:
    every = (node.left, *node.comparators)
    return any(isinstance(e, ast.Constant) and e.value is None for e in every)


def _holders(held: set[str], nodes: Sequence[ast.AST]) -> set[str]:
    """Expressions whose value is one of these, or holds one, as text."""
    while True:
        more = {
            ast.unparse(x) for n in nodes for targets, value in _given(n) if _holds(value, held)
            for t in targets for x in ast.walk(t)
            if isinstance(x, (ast.Name, ast.Attribute)) and not isinstance(x.ctx, ast.Del)
        }  # fmt: skip
        if more <= held:
            return held
        held = held | more


def _given(node: ast.AST) -> Iterator[tuple[Sequence[ast.AST], ast.expr]]:
    """What a node gives a value to, and the value."""
    if isinstance(node, ast.Assign):
        yield node.targets, node.value
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield [node.target], node.value
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield [node.target], node.iter
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _PUTS:
            for value in node.args:
                yield [node.func.value], value


def _holds(value: ast.expr, held: set[str]) -> bool:
    """Whether a value is one of some expressions, or a container of one."""
    if ast.unparse(value) in held:
        return True
    parts: Sequence[ast.expr | None] = ()
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        parts = value.elts
    elif isinstance(value, ast.Dict):
        parts = value.values
    elif isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        parts = [value.elt]
    elif isinstance(value, ast.DictComp):
        parts = [value.value]
    elif isinstance(value, ast.IfExp):
        parts = [value.body, value.orelse]
    elif isinstance(value, (ast.Starred, ast.NamedExpr, ast.Subscript)):
        parts = [value.value]
    elif isinstance(value, ast.Call):
        name, f = _name(value.func), value.func
        if name in _HOLDERS:
            parts = [*value.args, *[k.value for k in value.keywords]]
        elif name in _VIEWS and isinstance(f, ast.Attribute):
            parts = [f.value]
    return any(p is not None and _holds(p, held) for p in parts)


def _gives(node: ast.AST, held: set[str]) -> bool:
    """Whether a function gives one of some expressions to its caller."""
    if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)):
        return node.value is not None and _holds(node.value, held)
    return False


def _parameters(function: _Function, call: ast.Call, held: set[str]) -> Iterator[str]:
    """The parameters of a function of the file that a call gives one of some expressions."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args)]
    own = isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"])
    names = names[own:]
    for k, value in enumerate(call.args):
        if _holds(value, held):
            rest = [] if given.vararg is None else [given.vararg.arg]
            yield from [names[k]] if k < len(names) else rest
    for keyword in call.keywords:
        if _holds(keyword.value, held) and keyword.arg is not None:
            yield keyword.arg


def _is_tested_in(function: _Function, name: str) -> bool:
    inside = list(ast.walk(function))
    held = _holders({name}, inside)
    return any(ast.unparse(t) in held for n in inside for t in _tested(n))


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
