"""Operators and calls of the operation table, with literals adapted to their neighbours."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from engine.builtins.composite import COMPOSITES
from engine.builtins.resolve import resolve, suggest
from engine.frontend.context.context import Context
from engine.frontend.expressions.conversions import refuse_quotient, refuse_unknown, rounding
from engine.frontend.operands.folding import TooMany, fold, tabulate
from engine.frontend.operands.operand import (
    BAD,
    UNKNOWN_LITERALS,
    Bad,
    LiteralTable,
    Value,
    adapt,
    is_exact,
    is_scalar,
    look_up,
    zero,
)
from engine.frontend.operands.type_names import type_name, type_names
from engine.ir.nodes import Atom
from engine.ir.ops import OPS
from engine.lang.types import (
    BOOL,
    FLOAT32,
    ArrayType,
    ScalarType,
    Type,
    VectorType,
    scalar_of,
)

# What gives the same of numbers of a type as of the same numbers in double precision, rounded.
_ROUND_ONCE = ("+", "-", "*", "<", "<=", ">", ">=", "==", "!=")


def apply(cx: Context, node: ast.AST, name: str, args: Sequence[Value | Bad]) -> Value | Bad:
    """`name(args)` for an operator or a builtin; E104 where no overload takes the types."""
    values = [a for a in args if isinstance(a, Value)]
    if len(values) != len(args):
        return BAD
    folded = fold(name, values)
    if folded is not None:
        return folded
    types = [v.type for v in values]
    weak = [v.weak for v in values]
    got = resolve(name, types, weak)
    if got is None and name in COMPOSITES:
        composed = cx.lowering.call_library(cx, name, values)
        if isinstance(composed, Value):
            return composed
    if got is None:
        return _refuse(cx, node, name, values)
    atoms: list[Atom] = []
    for v, cast in zip(values, got.casts, strict=True):
        fitted = v if cast is None else adapt(cx.b, v, cast)
        if fitted is None:
            if refuse_quotient(cx, node, [v]):
                return BAD
            return _refuse(cx, node, name, values)
        atoms.append(fitted.atom)
    nothing = any(isinstance(a.type, VectorType) and not a.type.length for a in atoms)
    if nothing and not isinstance(got.result, ArrayType):
        return Value(zero(got.result))  # nothing is computed of no components
    ordered = [atoms[k] for k in got.order]
    result = got.result if OPS[got.op].explicit else None
    out = Value(cx.b.op(got.op, *ordered, result=result))
    if not all(v.weak for v in values) or all(v.table is None for v in values):
        unknown = [v for v in values if v.table == UNKNOWN_LITERALS]
        if not unknown or not all(v.weak or v in unknown for v in values):
            return out
        return Value(out.atom, table=UNKNOWN_LITERALS if is_scalar(out.type, "f") else None)
    once = name in _ROUND_ONCE
    if out.type == BOOL and once and all(map(is_exact, values)):
        return out  # as it is for the literals themselves
    return tabled(cx, node, out, lambda: tabulate(values, lambda items: fold(name, items), once))


def tabled(
    cx: Context, node: ast.AST, got: Value, make: Callable[[], LiteralTable | None]
) -> Value | Bad:
    """The value of literals, as a literal itself where it has a table."""
    try:
        table = make()
    except TooMany:
        if got.type == BOOL:
            return refuse_unknown(cx, node)
        return Value(got.atom, table=UNKNOWN_LITERALS if is_scalar(got.type, "f") else None)
    if table is None:
        return got
    if got.type != table.type or got.type == BOOL:
        got = Value(look_up(cx.b, table, table.constants))
    if got.type == BOOL:
        return got
    return Value(got.atom, True, any(v.truncated for v in table.items), table=table)


def _refuse(cx: Context, node: ast.AST, name: str, values: Sequence[Value]) -> Bad:
    types = [v.type for v in values]
    if any(v.table == UNKNOWN_LITERALS for v in values):
        return refuse_unknown(cx, node)
    ask_for(cx, node, types)
    function = name.isidentifier() and name not in ("and", "or", "not")
    if function:
        what = f"`{name}` does not take ({type_names(types)})"
    elif len(types) == 1:
        what = f"`{name}` cannot be applied to {type_name(types[0])}"
    else:
        what = f"`{name}` cannot combine {type_name(types[0])} and {type_name(types[1])}"
    advice = _meant_as_float(cx, node, values) or suggest(name, types)
    if advice.startswith("convert"):
        advice += "".join(rounding(cx, values, t) for t in {*types} if t != FLOAT32)
    if not function and (not advice or advice.startswith("expected")):
        advice = _operand_advice(cx, types)
    return cx.error("E104", node, what, advice)


def ask_for(cx: Context, node: ast.AST, types: Sequence[Type]) -> None:
    """Wants what literals have started in the type of the floats beside it."""
    for t in types:
        if not isinstance(t, ArrayType):
            cx.ask(node, scalar_of(t))


def _operand_advice(cx: Context, types: Sequence[Type]) -> str:
    """Advice for an operator whose operands have no operation together."""
    for t, other in zip(types, reversed(types), strict=True):
        if isinstance(t, VectorType) and isinstance(other, ScalarType):
            return f"make a vector of the number: `{cx.api}.{type_name(t)}(s)`"
    if len(types) == 2 and types[0] == types[1]:
        return "write it for each component"
    if len(types) == 2:
        return "both operands must have one type"
    return "use a number of another type"


def _meant_as_float(cx: Context, node: ast.AST, values: Sequence[Value]) -> str:
    """Where an integer variable got its type from a literal that was meant as a float."""
    if not any(is_scalar(v.type, "f") for v in values):
        return ""
    for n in ast.iter_child_nodes(node):
        name = n.id if isinstance(n, ast.Name) else ""
        if name in cx.literals and _is_integer(cx.types.get(name)):
            line = cx.literals[name]
            return f"line {line} makes `{name}` an integer: write `{name} = 0.0` there for a float"
    return ""


def _is_integer(t: object) -> bool:
    return isinstance(t, ScalarType) and t.kind == "i"
