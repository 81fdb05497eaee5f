"""Operators and calls of the operation table, with literals adapted to their neighbours."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.builtins.composite import COMPOSITES
from engine.builtins.resolve import resolve, suggest
from engine.frontend import fold
from engine.frontend.context import Context
from engine.frontend.kinds import AbsentKind, Kind, StructKind, ViewKind, as_view
from engine.frontend.operands import (
    BAD,
    Absent,
    Bad,
    Known,
    Value,
    View,
    adapt,
    is_scalar,
    literal,
    number,
)
from engine.frontend.typenames import cast_name, type_name, type_names
from engine.ir.builder import const
from engine.ir.nodes import Atom
from engine.ir.ops import OPS
from engine.lang.types import (
    BOOL,
    INT32,
    INT64,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    ValueType,
    VectorType,
)


def apply(cx: Context, node: ast.AST, name: str, args: Sequence[Value | Bad]) -> Value | Bad:
    """`name(args)` for an operator or a builtin; E104 where no overload takes the types."""
    values = [a for a in args if isinstance(a, Value)]
    if len(values) != len(args):
        return BAD
    folded = fold.fold(name, values)
    if folded is not None:
        return folded
    types = [v.type for v in values]
    weak = [v.weak for v in values]
    got = resolve(name, types, weak)
    if got is None and name in COMPOSITES:
        from engine.frontend.composites import call_composite

        composed = call_composite(cx, name, values)
        if isinstance(composed, Value):
            return composed
    if got is None:
        return _refuse(cx, node, name, values)
    atoms: list[Atom] = []
    for v, cast in zip(values, got.casts, strict=True):
        fitted = v if cast is None else adapt(v, cast)
        if fitted is None:
            return _refuse(cx, node, name, values)
        atoms.append(fitted.atom)
    ordered = [atoms[k] for k in got.order]
    result = got.result if OPS[got.op].explicit else None
    return Value(cx.b.op(got.op, *ordered, result=result))


def _refuse(cx: Context, node: ast.AST, name: str, values: Sequence[Value]) -> Bad:
    types = [v.type for v in values]
    function = name.isidentifier() and name not in ("and", "or", "not")
    if function:
        what = f"`{name}` does not take ({type_names(types)})"
    elif len(types) == 1:
        what = f"`{name}` cannot be applied to {type_name(types[0])}"
    else:
        what = f"`{name}` cannot combine {type_name(types[0])} and {type_name(types[1])}"
    advice = _meant_as_float(cx, node, values) or suggest(name, types)
    if not function and (not advice or advice.startswith("expected")):
        advice = _operand_advice(cx, types)
    return cx.error("E104", node, what, advice)


def _operand_advice(cx: Context, types: Sequence[Type]) -> str:
    """Advice for an operator whose operands have no operation together."""
    for t, other in zip(types, reversed(types), strict=True):
        if isinstance(t, VectorType) and isinstance(other, ScalarType):
            return f"make a vector of the number: `{cx.api}.{type_name(t)}(s)`"
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


def condition(cx: Context, node: ast.expr) -> Value | Bad:
    """Lowers an expression that decides something."""
    got = cx.expr(node)
    if isinstance(got, Absent):
        return literal(False)
    view = as_view(got)
    return truth(cx, node, cx.one(node, got) if view is None else _filled(cx, view))


def _filled(cx: Context, view: View) -> Value:
    """Whether an array has elements: `None` is passed as an array without any."""
    from engine.frontend.views import size

    found = size(cx, view, 0) if view.ndim else const(1, INT32)
    return Value(cx.b.op("gt", found, const(0, INT32)))


def truth(cx: Context, node: ast.AST, v: Value | Bad) -> Value | Bad:
    """The value as a condition: a bool, or a number compared with zero."""
    if isinstance(v, Bad) or v.type == BOOL:
        return v
    n = number(v)
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
    compound = isinstance(t, (StructKind, ViewKind, AbsentKind, Known))
    fitted = None if isinstance(t, (StructKind, ViewKind, AbsentKind, Known)) else adapt(v, t)
    if fitted is not None:
        return fitted.atom
    if not help_text and isinstance(t, ScalarType) and isinstance(v.type, ScalarType):
        help_text = f"convert it: `{cast_name(t, cx.api)}(...)`"
    elif not help_text and isinstance(v.type, ArrayType) and not compound:
        help_text = "index the array: `a[i]`"
    elif not help_text:
        help_text = f"make a {type_name(t)} of it"
    message = f"{what} has type {type_name(t)}, but this is {type_name(v.type)}"
    cx.error(code, node, message, help_text)
    return None


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
        for index in indices(t):
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


def indices(t: ValueType) -> list[tuple[Atom, ...]]:
    """Constant indices of every component, row by row."""
    if isinstance(t, VectorType):
        return [(literal(i).atom,) for i in range(t.length)]
    if isinstance(t, MatrixType):
        return [(literal(i).atom, literal(j).atom) for i in range(t.rows) for j in range(t.cols)]
    return []


def integer(cx: Context, node: ast.AST, v: Value | Bad, what: str) -> Atom | None:
    """The value as an integer, for an index or a loop bound."""
    if isinstance(v, Bad):
        return None
    if isinstance(v.type, ScalarType) and v.type.kind in "iu":
        return v.atom
    shown = "an array" if isinstance(v.type, ArrayType) else type_name(v.type)
    cx.error("E104", node, f"{what} must be an integer, but this is {shown}", "write `int(...)`")
    return None
