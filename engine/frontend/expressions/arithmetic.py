"""Arithmetic: unary and binary operators, and tuples."""

from __future__ import annotations

import ast

from engine.frontend.context.context import Context
from engine.frontend.expressions.addresses import moved
from engine.frontend.expressions.conversions import refuse_quotient
from engine.frontend.expressions.logic import lower_not
from engine.frontend.expressions.operators import apply
from engine.frontend.expressions.sequences import expanded
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    Operand,
    Several,
    Struct,
    Value,
    is_scalar,
    number,
)
from engine.ir.builder import const
from engine.ir.nodes import Atom
from engine.lang.types import ScalarType

_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_UNARY: dict[type[ast.AST], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}


def binary(
    cx: Context, node: ast.AST, op: ast.operator, left: Value | Bad, right: Value | Bad
) -> Value | Bad:
    """`left op right`."""
    if isinstance(left, Bad) or isinstance(right, Bad):
        return BAD
    symbol = _BINARY[type(op)]
    if symbol in ("/", "//", "%") and is_scalar(left.type, "iu") and right.weak:
        if is_scalar(right.type, "iu") and number(right) == 0:
            return cx.error(
                "E104", node, "an integer is divided by zero", "divide by another number"
            )
    if symbol == "**" and isinstance(left.type, ScalarType) and left.type.kind in "iu":
        power = number(right)
        if isinstance(power, int) and 0 <= power <= 16 and not left.weak:
            if refuse_quotient(cx, node, [right]):
                return BAD
            return _integer_power(cx, left, int(power))
    return apply(cx, node, symbol, [left, right])


def _integer_power(cx: Context, base: Value, power: int) -> Value:
    assert isinstance(base.type, ScalarType)
    out: Atom = const(1, base.type) if power == 0 else base.atom
    for _ in range(power - 1):
        out = cx.b.op("mul", out, base.atom)
    return Value(out)


def lower_binary(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.BinOp)
    given = [(n, cx.expr(n)) for n in (node.left, node.right)]
    address = moved(cx, node, given[0][1], given[1][1])
    if address is not None:
        return address
    own = cx.lowering.user_operator(cx, node, node.op, given)
    if own is not None:
        return own
    left, right = (cx.scalar_one(n, got) for n, got in given)
    return binary(cx, node, node.op, left, right)


def lower_unary(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.UnaryOp)
    if isinstance(node.op, ast.Not):
        return lower_not(cx, node)
    got = cx.expr(node.operand)
    if isinstance(got, Struct):  # what the language has a meaning for keeps it
        own = cx.lowering.user_operator(cx, node, node.op, [(node.operand, got)])
        if own is not None:
            return own
    value = cx.scalar_one(node.operand, got)
    if isinstance(node.op, ast.UAdd) and isinstance(value, Value):
        return value
    return apply(cx, node, _UNARY[type(node.op)], [value])


def lower_tuple(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.Tuple)
    nodes = expanded(cx, node.elts)
    return BAD if nodes is None else Several(tuple(cx.expr(e) for e in nodes))
