"""Comparisons of numbers, vectors and matrices."""

from __future__ import annotations

import ast

from engine.frontend.context.context import Context
from engine.frontend.expressions.operators import apply
from engine.frontend.operands.lvalues import component_indices
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    Operand,
    Value,
)
from engine.ir.nodes import Atom
from engine.lang.types import (
    INT64,
    MatrixType,
    ScalarType,
    VectorType,
)

_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def lower_compare(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.Compare) and len(node.ops) == 1
    left = cx.scalar_value(node.left)
    right = cx.scalar_value(node.comparators[0])
    return compare(cx, node, _SYMBOLS[type(node.ops[0])], left, right)


def compare(
    cx: Context, node: ast.AST, symbol: str, left: Value | Bad, right: Value | Bad
) -> Value | Bad:
    """A comparison. Vectors and matrices have `==` and `!=`: all components, or any.

    Numbers of two types are compared as numbers of their common type.
    """
    if isinstance(left, Bad) or isinstance(right, Bad):
        return BAD
    t = left.type
    if symbol in ("==", "!=") and isinstance(t, (VectorType, MatrixType)) and t == right.type:
        same: Atom | None = None
        for index in component_indices(t):
            a, b = (cx.b.op("extract", v.atom, *index) for v in (left, right))
            one = cx.b.op("eq", a, b)
            same = one if same is None else cx.b.op("land", same, one)
        assert same is not None
        return Value(same if symbol == "==" else cx.b.op("lnot", same))
    common = _common(left, right)
    if common is not None:
        same_type = [
            v if v.type == common else Value(cx.b.op("cast", v.atom, result=common))
            for v in (left, right)
        ]
        return apply(cx, node, symbol, same_type)
    return apply(cx, node, symbol, [left, right])


def _common(left: Value, right: Value) -> ScalarType | None:
    """The type that numbers of two types are compared in; None where they need none or have none.

    As in C where that means the same; a signed and an unsigned integer are compared by value, so
    that -1 is less than every unsigned number. None holds every int64 and every uint64.
    """
    a, b = left.type, right.type
    if not (isinstance(a, ScalarType) and isinstance(b, ScalarType)) or a == b:
        return None
    if left.weak or right.weak:  # literals adapt to their neighbours
        return None
    for t, other in ((a, b), (b, a)):
        if other.kind == "b" or (t.kind == "f" and other.kind != "f"):
            return t
    wide, narrow = (a, b) if a.bits >= b.bits else (b, a)
    if wide.kind == narrow.kind or (wide.kind == "i" and wide.bits > narrow.bits):
        return wide
    return INT64 if wide.bits < 64 else None
