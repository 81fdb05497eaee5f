"""Calls with arrays that are chosen at run time, where one array must be known.

A function of the kernel language takes a choice as it is. Native functions, those with a gradient
of their own, and builtins are called in a branch for each array.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from engine.frontend.context.context import Context
from engine.frontend.context.lowered import LoweredExpression, lowered
from engine.frontend.expressions.choices import (
    Arm,
    choices_in,
    holds_local,
    merged,
    with_option,
)
from engine.frontend.functions.user_function import UserFunc
from engine.frontend.operands.operand import BAD, Choice, Known, Operand
from engine.frontend.parsing.builtin_arguments import changed_arguments
from engine.frontend.parsing.local_variables import root_name
from engine.frontend.parsing.scope import struct_of, type_of
from engine.lang.types import BOOL

# Calls with so many combinations of arrays are refused.
_MOST = 64


def arguments_apart(
    cx: Context, node: ast.Call, target: object, call: Callable[[ast.Call], Operand]
) -> Operand | None:
    """The call in a branch for each array that an argument may be; None where it is one call."""
    if type_of(target) is not None or struct_of(target) is not None:
        return None
    if getattr(target, "__builtin_name__", None) in ("static", "where", "select"):
        return None
    nodes = [*node.args, *(w.value for w in node.keywords)]
    changed = {id(n) for n in changed_arguments(cx.scope, node)}
    given = [None if id(n) in changed else _argument(cx, n, target) for n in nodes]
    found = [c for got in given if got is not None for c in choices_in(got)]
    if not found or (_takes_choices(target) and not any(map(holds_local, found))):
        lowered_all = zip(nodes, given, strict=True)
        if any(g is not None and not isinstance(n, LoweredExpression) for n, g in lowered_all):
            return _again(node, _nodes(nodes, given), call)
        return None
    if _combinations(found) > _MOST:
        return cx.error(
            "E101",
            node,
            f"the arguments of this call are arrays in more than {_MOST} combinations",
            "choose fewer arrays at a time, and `if` / `else` around the call",
        )
    first = found[0]
    arms: list[Arm] = []
    for k in range(len(first.options)):
        chosen = [None if g is None else with_option(g, first.selector, k) for g in given]
        with cx.nested() as b:
            got = _again(node, _nodes(nodes, chosen), call)
        arms.append((b, got))
    result = merged(cx, first.selector, arms)
    if result is None:
        return cx.error("E104", node, "this call gives results of different types, by which array "
                        "is chosen", "write `if` / `else` around the call")  # fmt: skip
    return result


def _argument(cx: Context, node: ast.expr, target: object) -> Operand | None:
    """An argument that may be chosen, lowered; None for any other, which is lowered as ever."""
    if id(node) in cx.function.rejected:
        return None
    if isinstance(node, LoweredExpression):
        return node.operand if choices_in(node.operand) else None
    if isinstance(node, ast.Call):
        if _takes_choices(target) or not isinstance(node.func, ast.Name):
            return None
        called = cx.expr(node.func)
        plain = isinstance(called, Known) and isinstance(called.obj, UserFunc)
        return cx.keep(cx.expr(node)) if plain else None
    if isinstance(node, ast.IfExp):
        return cx.keep(cx.expr(node))
    name = root_name(node)
    if name is None or not choices_in(cx.bound.get(name, BAD)):
        return None
    return cx.keep(cx.expr(node))


def _nodes(nodes: Sequence[ast.expr], given: Sequence[Operand | None]) -> list[ast.expr]:
    return [n if got is None else lowered(got, n) for n, got in zip(nodes, given, strict=True)]


def _again(
    node: ast.Call, nodes: Sequence[ast.expr], call: Callable[[ast.Call], Operand]
) -> Operand:
    count = len(node.args)
    words = [ast.keyword(w.arg, n) for w, n in zip(node.keywords, nodes[count:], strict=True)]
    return call(ast.copy_location(ast.Call(node.func, list(nodes[:count]), words), node))


def _takes_choices(target: object) -> bool:
    """Whether a function takes a choice as an argument."""
    if not isinstance(target, UserFunc) or target.library:
        return False
    return all(f.is_plain for f in target.overloads)


def _combinations(found: Sequence[Choice]) -> int:
    count = 1
    todo = list({c.selector: c for c in found}.values())
    while todo:
        c = todo.pop()
        count *= 2 if c.selector.type == BOOL else len(c.options)
        todo += [o for o in c.options if isinstance(o, Choice)]
    return count
