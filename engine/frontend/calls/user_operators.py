"""Operators on user types: `a + b` where the user defined `add` for them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.calls.user_calls import call_given
from engine.frontend.context.context import Context
from engine.frontend.functions.overloads import Argument, Given, best, candidates
from engine.frontend.functions.user_function import OPERATORS, UserFunc
from engine.frontend.operands.operand import Operand, Value
from engine.frontend.parsing.source import source_of
from engine.ir.nodes import Const


def operator_function(cx: Context, op: ast.AST) -> UserFunc | None:
    """The user's function of an operator's name, whatever it takes."""
    name = OPERATORS.get(type(op), "")
    found = cx.scope.lookup(name) if name and name not in cx.plan.assigned else None
    return found if isinstance(found, UserFunc) else None


def user_operator(
    cx: Context, node: ast.expr, op: ast.AST, given: Sequence[Argument]
) -> Operand | None:
    """The call that an operator means; None where it means what the language says.

    So it does between constants, and in the function itself.
    """
    target = operator_function(cx, op)
    if target is None:
        return None
    if all(isinstance(got, Value) and isinstance(got.atom, Const) for _, got in given):
        return None
    arguments = Given(tuple(given), {})
    chosen = best(node, arguments, candidates(target.overloads, cx.lowering.signature))
    if chosen is None:
        return None
    function = chosen[0].function
    if source_of(function.func, function.text).header() == cx.source.header():
        return None
    return call_given(cx, node, target, arguments)
