"""Names, constants and arithmetic."""

from __future__ import annotations

import ast
import builtins

from engine.frontend.aggregates import tree_of
from engine.frontend.context import EXPR, Context
from engine.frontend.fence_table import CONSTANTS
from engine.frontend.kinds import AbsentKind, StructKind, ViewKind
from engine.frontend.logic import lower_not
from engine.frontend.members import unknown
from engine.frontend.operands import BAD, Bad, Known, Operand, Several, Value, literal, number
from engine.frontend.ops import apply
from engine.frontend.scope import MISSING, describe, operand_of
from engine.ir.builder import const
from engine.ir.nodes import Atom
from engine.lang.types import ScalarType

_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_UNARY: dict[type[ast.AST], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}


def lower_constant(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.Constant)
    value = node.value
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return cx.error("E101", node, "this integer has more than 64 bits", "use a float")
    if not isinstance(value, (bool, int, float)):
        what, help_text = CONSTANTS.get(type(value).__name__, ("this constant", ""))
        return cx.error("E101", node, f"{what} is not supported in kernels", help_text)
    return literal(value)


def lower_name(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.Name)
    name = node.id
    if name in cx.plan.assigned:
        return _local(cx, node, name)
    found = cx.scope.lookup(name)
    if found is MISSING:
        others = [*cx.plan.assigned, *cx.scope.names(), *vars(builtins)]
        return unknown(cx, node, name, True, others, name)
    got = operand_of(found)
    if got is None:
        what, help_text = describe(found)
        return cx.error(
            "E107", node, f"`{name}` is {what}, which a kernel cannot capture", help_text
        )
    return got


def _local(cx: Context, node: ast.Name, name: str) -> Operand:
    if name in cx.bound:
        return cx.bound[name]
    if name in cx.types:
        kind = cx.types[name]
        if isinstance(kind, (StructKind, ViewKind, AbsentKind)):
            return tree_of(cx, name, kind)
        assert not isinstance(kind, Known)  # those are bound
        var = cx.variable(name, kind)
        # An assignment inside the same expression may change the variable after this read.
        return Value(cx.frozen(var) if name in cx.plan.walrus else var)
    if any(name in cx.plan.stored_in[id(loop)] for loop in cx.loops):
        # Assigned further down in a loop: its type is known after this round.
        cx.deferred.setdefault(name, node)
        return BAD
    return unassigned(cx, node, name)


def unassigned(cx: Context, node: ast.AST, name: str) -> Bad:
    """E102 for a local variable without a value."""
    notes = []
    if cx.scope.lookup(name) is not MISSING:
        notes.append(f"`{name}` is assigned in this function, which hides the one outside")
    return cx.error(
        "E102",
        node,
        f"`{name}` is read before it has a value",
        f"assign it first, for example `{name} = 0.0`",
        notes,
    )


def binary(
    cx: Context, node: ast.AST, op: ast.operator, left: Value | Bad, right: Value | Bad
) -> Value | Bad:
    """`left op right`."""
    if isinstance(left, Bad) or isinstance(right, Bad):
        return BAD
    symbol = _BINARY[type(op)]
    if symbol == "**" and isinstance(left.type, ScalarType) and left.type.kind in "iu":
        power = number(right)
        if isinstance(power, int) and 0 <= power <= 16 and not left.weak:
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
    left, right = cx.scalar_value(node.left), cx.scalar_value(node.right)
    return binary(cx, node, node.op, left, right)


def lower_unary(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.UnaryOp)
    if isinstance(node.op, ast.Not):
        return lower_not(cx, node)
    value = cx.scalar_value(node.operand)
    if isinstance(node.op, ast.UAdd) and isinstance(value, Value):
        return value
    return apply(cx, node, _UNARY[type(node.op)], [value])


def lower_tuple(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.Tuple)
    return Several(tuple(cx.expr(e) for e in node.elts))


EXPR.update(
    {
        ast.Constant: lower_constant,
        ast.Name: lower_name,
        ast.BinOp: lower_binary,
        ast.UnaryOp: lower_unary,
        ast.Tuple: lower_tuple,
    }
)
