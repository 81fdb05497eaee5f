"""Values as conditions: bools, numbers compared with zero, arrays that may be absent."""

from __future__ import annotations

import ast

from engine.frontend.context.context import Context
from engine.frontend.expressions.choices import per_option
from engine.frontend.expressions.views import size
from engine.frontend.operands.kinds import as_view
from engine.frontend.operands.operand import (
    BAD,
    QUOTIENT_HELP,
    Absent,
    Bad,
    Choice,
    Operand,
    Value,
    View,
    literal,
    number,
)
from engine.frontend.operands.type_names import type_name
from engine.ir.builder import const
from engine.lang.types import (
    BOOL,
    INT32,
    ScalarType,
)


def condition(cx: Context, node: ast.expr) -> Value | Bad:
    """Lowers an expression that decides something."""
    found = _condition(cx, node)
    known = number(found) if isinstance(found, Value) else None
    if known is not None:
        cx.facts.tests[id(node), cx.path] = bool(known)
    return found


def _condition(cx: Context, node: ast.expr) -> Value | Bad:
    got = cx.expr(node)
    if isinstance(got, Absent):
        return literal(False)
    if isinstance(got, Choice):
        found = per_option(cx, got, lambda option: _of_array(cx, option))
        assert isinstance(found, (Value, Bad))
        return found
    view = as_view(got)
    return truth(cx, node, cx.one(node, got) if view is None else _filled(cx, view))


def _of_array(cx: Context, option: Operand) -> Operand:
    """An option of a choice as a condition."""
    if isinstance(option, Choice):
        return per_option(cx, option, lambda inner: _of_array(cx, inner)) or BAD
    view = as_view(option)
    return literal(False) if view is None else _filled(cx, view)


def _filled(cx: Context, view: View) -> Value:
    """Whether an array has elements: `None` is passed as an array without any."""
    found = size(cx, view, 0) if view.ndim else const(1, INT32)
    return Value(cx.b.op("gt", found, const(0, INT32)))


def truth(cx: Context, node: ast.AST, v: Value | Bad) -> Value | Bad:
    """The value as a condition: a bool, or a number compared with zero."""
    if isinstance(v, Bad) or v.type == BOOL:
        return v
    n = number(v)
    if v.truncated and not n:
        return cx.error(
            "E104", node, "a quotient of integers, which is 0 here, is a condition", QUOTIENT_HELP
        )
    if n is not None:
        return literal(bool(n))
    if isinstance(v.type, ScalarType):
        return Value(cx.b.op("ne", v.atom, const(0, v.type)))
    view = as_view(v)
    if view is not None:
        return _filled(cx, view)
    return cx.error(
        "E104",
        node,
        f"{type_name(v.type)} cannot be a condition",
        "compare a number: `length(v) > 0.0`, `a[i] != 0`",
    )
