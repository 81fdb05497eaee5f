"""`static(expr)`: Python that runs while a kernel is compiled, taken out of the syntax tree."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType
from typing import TypeVar

from engine.frontend.parsing.scope import MISSING, Scope

T = TypeVar("T")


def static(expr: T) -> T:
    """A value that a kernel computes while it is compiled; outside of kernels, just the value.

    The expression is Python of any kind over names that the kernel captures, constant
    locals, and variables of loops with constant bounds, which are unrolled then. Its value
    must be something that a kernel can capture: a number, a vector, a type or a function.
    """
    return expr


static.__builtin_name__ = "static"  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class StaticExpression:
    """The argument of one call. names: those that it reads from outside."""

    code: CodeType
    names: frozenset[str]
    node: ast.expr


StaticExpressions = dict[int, StaticExpression]


def _means_static(scope: Scope, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return scope.lookup(node.id) is static
    if isinstance(node, ast.Attribute) and node.attr == "static":
        base = node.value
        found = scope.lookup(base.id) if isinstance(base, ast.Name) else MISSING
        return getattr(found, "static", None) is static
    return False


def take_expressions(tree: ast.FunctionDef, scope: Scope) -> StaticExpressions:
    """Takes the arguments of `static` out of a function's tree, by the id of the call's node.

    They are Python, not the kernel language: no later stage may look at them.
    """
    out: StaticExpressions = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            continue
        if not _means_static(scope, node.func):
            continue
        (arg,) = node.args
        try:
            code = compile(ast.Expression(arg), "<static>", "eval")
        except (SyntaxError, ValueError):
            continue  # told when the call is lowered
        node.args = []
        out[id(node)] = StaticExpression(code, frozenset(_free_names(arg)), arg)
    return out


def _free_names(node: ast.expr) -> set[str]:
    loads: set[str] = set()
    own: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            (loads if isinstance(n.ctx, ast.Load) else own).add(n.id)
        elif isinstance(n, ast.arg):
            own.add(n.arg)
    return loads - own
