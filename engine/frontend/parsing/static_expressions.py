"""`static(expr)`: Python that runs when a kernel is made."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import CodeType
from typing import Any, TypeVar

from engine.classes import dataclass
from engine.diagnostics import KernelError
from engine.frontend.parsing.scope import MISSING, Scope
from engine.frontend.parsing.source import source_of
from engine.frontend.parsing.text import FunctionText, Place, function_text, place_of

T = TypeVar("T")


def static(expr: T) -> T:
    """A value that is computed where a kernel is made; outside of kernels, just the value.

    The expression is Python of any kind over names that the kernel captures: its decorator
    computes it, so kernels that are made in a loop have each its own. What is over constant
    locals too, over variables of loops with constant bounds (which are unrolled then), or over
    names that have no value yet, is computed while the kernel is compiled. The value must be
    something that a kernel can capture: a number, a vector, a type or a function.
    """
    return expr


static.__builtin_name__ = "static"  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class StaticExpression:
    """The argument of one call. names: those that it reads from outside.

    declared: what it was where the function was made, MISSING where that could not be told.
    """

    code: CodeType
    names: frozenset[str]
    node: ast.expr
    declared: object = MISSING

    def compute(self, scope: Scope, own: Mapping[str, Any]) -> object:
        """Its value now, with names of the kernel's own. Raises whatever it raises."""
        names = {"__builtins__": builtins, **scope.globals, **scope.closure, **own}
        return eval(self.code, names)


StaticExpressions = dict[int, StaticExpression]


def _means_static(scope: Scope, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return scope.lookup(node.id) is static
    if isinstance(node, ast.Attribute) and node.attr == "static":
        base = node.value
        found = scope.lookup(base.id) if isinstance(base, ast.Name) else MISSING
        return getattr(found, "static", None) is static
    return False


def take_expressions(
    tree: ast.FunctionDef, scope: Scope, declared: Mapping[Place, object]
) -> StaticExpressions:
    """Takes the arguments of `static` out of a function's tree, by the id of the call's node.

    They are Python, not the kernel language: no later stage may look at them.
    """
    out: StaticExpressions = {}
    within: set[ast.AST] = set()
    for node in ast.walk(tree):
        if node in within or not isinstance(node, ast.Call):
            continue
        given = [*node.args, *(k.value for k in node.keywords)]
        if len(given) != 1:
            continue
        place = place_of(node)
        if place not in declared and not _means_static(scope, node.func):
            continue
        (arg,) = given
        try:
            code = compile(ast.Expression(arg), "<static>", "eval")
        except (SyntaxError, ValueError):
            continue  # told when the call is lowered
        within.update(ast.walk(arg))
        node.args, node.keywords = [], []
        value = declared.get(place, MISSING)
        out[id(node)] = StaticExpression(code, frozenset(_free_names(arg)), arg, value)
    return out


def declared_text(func: Callable[..., Any]) -> FunctionText | None:
    """What is known of a function's text as it is made, with the values of its static expressions.

    Those that name something of the function's own, or that fail, are left to its lowering.
    """
    text = function_text(func)
    if text is None or not _mentions_static(func, text.code):
        return text
    try:
        tree = source_of(func, text).tree
    except KernelError:
        return text  # told when it is lowered
    scope = Scope(func)
    found = take_expressions(tree, scope, {})
    places = {id(n): place_of(n) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    own = _own_names(tree)
    values: dict[Place, object] = {}
    for key, expression in found.items():
        if expression.names & own:
            continue
        try:
            values[places[key]] = expression.compute(scope, {})
        except Exception:
            continue
    return replace(text, statics=values)


def _mentions_static(func: Callable[..., Any], code: CodeType) -> bool:
    """Whether a function may call `static`, under whatever name."""
    if "static" in code.co_names:
        return True
    scope = Scope(inspect.unwrap(func))
    return any(scope.find(name) is static for name in (*code.co_names, *code.co_freevars))


def _own_names(tree: ast.FunctionDef) -> set[str]:
    """Names that are parameters or variables of the function."""
    found = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    return found | {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }


def _free_names(node: ast.expr) -> set[str]:
    loads: set[str] = set()
    own: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            (loads if isinstance(n.ctx, ast.Load) else own).add(n.id)
        elif isinstance(n, ast.arg):
            own.add(n.arg)
    return loads - own
