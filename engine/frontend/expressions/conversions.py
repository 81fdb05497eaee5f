"""Converts values to an expected type: literals adapt, other values are refused."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.context.context import Context
from engine.frontend.operands.kinds import COMPOUND_KINDS, Kind
from engine.frontend.operands.operand import (
    QUOTIENT_HELP,
    UNKNOWN_LITERALS,
    Bad,
    Known,
    Value,
    adapt,
    number,
)
from engine.frontend.operands.type_names import cast_name, type_name
from engine.ir.nodes import Atom
from engine.lang.types import (
    ArrayType,
    ScalarType,
    Type,
)


def coerce(
    cx: Context,
    node: ast.AST,
    v: Value,
    t: Kind,
    what: str,
    code: str = "E104",
    help_text: str = "",
) -> Atom | None:
    """The value as type `t`, or an error that names what it is for."""
    if v.truncated and isinstance(t, ScalarType) and t.kind == "f":
        refuse_quotient(cx, node, [v], code)
        return None
    if v.table == UNKNOWN_LITERALS and isinstance(t, ScalarType) and t.kind == "f" and t != v.type:
        refuse_unknown(cx, node)
        return None
    compound = isinstance(t, (*COMPOUND_KINDS, Known))
    fitted = None if isinstance(t, (*COMPOUND_KINDS, Known)) else adapt(cx.b, v, t)
    if fitted is not None:
        return fitted.atom
    if isinstance(t, ScalarType):
        cx.ask(node, t)
    if not help_text and isinstance(t, ScalarType) and isinstance(v.type, ScalarType):
        help_text = f"convert it: `{cast_name(t, cx.api)}(...)`" + rounding(cx, [v], t)
    elif not help_text and isinstance(v.type, ArrayType) and not compound:
        help_text = "index the array: `a[i]`"
    elif not help_text:
        help_text = f"make a {type_name(t)} of it"
    message = f"{what} has type {type_name(t)}, but this is {type_name(v.type)}"
    cx.error(code, node, message, help_text)
    return None


def rounding(cx: Context, values: Sequence[Value], t: Type) -> str:
    """What to add to the advice to convert values to another type of floats: how constants that
    became float32 at the border of a function stay exact.
    """
    found = [cx.rounded[v.atom] for v in values if v.atom in cx.rounded and v.type != t]
    if not found or not isinstance(t, ScalarType) or t.kind != "f":
        return ""
    return f"; constants are rounded before: to have them exact, annotate {found[0]} with {t.name}"


def refuse_quotient(
    cx: Context, node: ast.AST, values: Sequence[Value], code: str = "E104"
) -> bool:
    """Says so where a value is a truncated quotient, which cannot stand for a float."""
    found = next((v for v in values if v.truncated), None)
    if found is None:
        return False
    if found.table is not None:
        found = next(v for v in found.table.items if v.truncated)
    message = f"a quotient of integers, which is {number(found)} here, stands for a float"
    cx.error(code, node, message, QUOTIENT_HELP)
    return True


def refuse_unknown(cx: Context, node: ast.AST) -> Bad:
    """Says that a value is one of more literals than are kept, so that its type is fixed."""
    return cx.error(
        "E101",
        node,
        "the constants that are chosen at run time have too many combinations here",
        "give one of them a type first, such as `float(...)`",
    )


def integer(cx: Context, node: ast.AST, v: Value | Bad, what: str) -> Atom | None:
    """The value as an integer, for an index or a loop bound."""
    if isinstance(v, Bad):
        return None
    if isinstance(v.type, ScalarType) and v.type.kind in "iu":
        return v.atom
    shown = "an array" if isinstance(v.type, ArrayType) else type_name(v.type)
    cx.error("E104", node, f"{what} must be an integer, but this is {shown}", "write `int(...)`")
    return None
