"""Comparisons of numbers, by value whatever their types, and of vectors and matrices.

A literal beside a variable changes no type: `n > 0.5` asks whether the integer is at least 1.
"""

from __future__ import annotations

import ast
import math

import numpy as np

from engine.frontend.context.context import Context
from engine.frontend.expressions.conversions import refuse_quotient
from engine.frontend.expressions.operators import apply
from engine.frontend.operands.lvalues import component_indices
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    Operand,
    Several,
    Value,
    adapt,
    fits,
    is_scalar,
    literal,
    number,
)
from engine.ir.builder import const
from engine.ir.nodes import Atom
from engine.lang.types import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    MatrixType,
    ScalarType,
    VectorType,
)

_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_MIRROR = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# The integers that each type of floats holds, all of them up to 2 to this power.
_MANTISSA = {BFLOAT16: 8, FLOAT16: 11, FLOAT32: 24, FLOAT64: 53}


def lower_compare(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.Compare) and len(node.ops) == 1
    left = cx.scalar_value(node.left)
    if isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return _within(cx, node, left, isinstance(node.ops[0], ast.In))
    right = cx.scalar_value(node.comparators[0])
    return compare(cx, node, _SYMBOLS[type(node.ops[0])], left, right)


def _within(cx: Context, node: ast.Compare, left: Value | Bad, wanted: bool) -> Value | Bad:
    """`x in (a, b)` and `x not in (a, b)`: whether the value is equal to an item."""
    items = cx.expr(node.comparators[0])
    if isinstance(left, Bad) or isinstance(items, Bad):
        return BAD
    if not isinstance(items, Several):
        return cx.error(
            "E101",
            node,
            f"`{'in' if wanted else 'not in'}` asks for the items of tuples only",
            "compare with each value: `x == a or x == b`, or write a loop",
        )
    found: Value = literal(False)
    for item in items.items:
        same = compare(cx, node, "==", left, cx.scalar_one(node.comparators[0], item))
        if isinstance(same, Bad):
            return BAD
        if number(found) is not None or number(same) is not None:
            found = found if number(found) or number(same) is False else same
        else:
            found = Value(cx.b.op("lor", found.atom, same.atom))
    known = number(found)
    if known is not None:
        return literal(bool(known) == wanted)
    return found if wanted else Value(cx.b.op("lnot", found.atom))


def compare(
    cx: Context, node: ast.AST, symbol: str, left: Value | Bad, right: Value | Bad
) -> Value | Bad:
    """A comparison. Vectors and matrices have `==` and `!=`: all components, or any."""
    if isinstance(left, Bad) or isinstance(right, Bad):
        return BAD
    t = left.type
    if symbol in ("==", "!=") and isinstance(t, (VectorType, MatrixType)) and t == right.type:
        same: Atom | None = None
        for index in component_indices(t):
            one = cx.b.op("eq", *(cx.b.op("extract", v.atom, *index) for v in (left, right)))
            same = one if same is None else cx.b.op("land", same, one)
        if same is None:  # without components
            return literal(symbol == "==")
        return Value(same if symbol == "==" else cx.b.op("lnot", same))
    a, b = left.type, right.type
    if not (isinstance(a, ScalarType) and isinstance(b, ScalarType)) or (left.weak and right.weak):
        return apply(cx, node, symbol, [left, right])
    if any(v.weak and v.truncated for v in (left, right)) and "f" in (a.kind, b.kind):
        refuse_quotient(cx, node, [left, right])
        return BAD
    left, right = _settled(cx, left, b), _settled(cx, right, a)
    if a.kind == b.kind == "b" and symbol not in ("==", "!="):
        left, right = _cast(cx, left, INT32), _cast(cx, right, INT32)
    elif a.kind == "b" and b.kind != "b":
        left = _cast(cx, left, INT32 if right.weak else b)
    elif b.kind == "b" and a.kind != "b":
        right = _cast(cx, right, INT32 if left.weak else a)
    if left.weak:
        return _with_literal(cx, node, _MIRROR[symbol], right, left)
    if right.weak:
        return _with_literal(cx, node, symbol, left, right)
    return _two_types(cx, node, symbol, left, right)


def _settled(cx: Context, v: Value, other: ScalarType) -> Value:
    """A literal that is chosen at run time, in a type in which it is what it says.

    Beside a float it takes that one's type, as all literals do.
    """
    if v.table is None or not v.weak:
        return v
    if not is_scalar(v.type, "f") or v.table.exact:
        return Value(v.atom)
    return adapt(cx.b, v, other if other.kind == "f" else FLOAT64) or v


def _cast(cx: Context, v: Value, t: ScalarType) -> Value:
    if v.type == t:
        return v
    n = number(v)
    return Value(const(n, t) if isinstance(n, bool) else cx.b.op("cast", v.atom, result=t))


# ---- a literal


def _with_literal(cx: Context, node: ast.AST, symbol: str, v: Value, given: Value) -> Value | Bad:
    """`v symbol given` for a literal `given`."""
    n = number(given)
    assert n is not None and isinstance(v.type, ScalarType)
    if v.type.kind == "f":
        sides = None if isinstance(n, float) or given.truncated else _around(int(n), v.type)
        if sides is None:
            return apply(cx, node, symbol, [v, given])
        if symbol in ("==", "!="):
            return literal(symbol == "!=")
        below = symbol in ("<", "<=")
        nearest = Value(const(sides[0] if below else sides[1], v.type))
        return apply(cx, node, "<=" if below else ">=", [v, nearest])
    if isinstance(n, float):
        found = _threshold(symbol, n)
        if isinstance(found, bool):
            return literal(found)
        symbol, n = found
    if not fits(int(n), v.type):  # every number of the type is on one side of it
        return literal(symbol == "!=" or (symbol in ("<", "<=") and n > 0) or (
            symbol in (">", ">=") and n < 0))  # fmt: skip
    return apply(cx, node, symbol, [v, Value(const(int(n), v.type))])


def _threshold(symbol: str, x: float) -> tuple[str, int] | bool:
    """A comparison of any integer with x as one with an integer, or its answer."""
    if math.isnan(x):
        return symbol == "!="
    if math.isinf(x):
        return symbol == "!=" or ((symbol in ("<", "<=")) == (x > 0) and symbol != "==")
    if x == int(x):
        return symbol, int(x)
    if symbol in ("==", "!="):
        return symbol == "!="
    return ("<=", math.floor(x)) if symbol in ("<", "<=") else (">=", math.ceil(x))


def _around(n: int, t: ScalarType) -> tuple[float, float] | None:
    """The floats of a type next to an integer that is none of them; None where it is one."""
    kind = t.numpy.type
    with np.errstate(over="ignore"):
        nearest = kind(n)
        if float(nearest) == n:
            return None
        above = float(nearest) > n
        other = np.nextafter(nearest, kind(-np.inf if above else np.inf))
    pair = (other, nearest) if above else (nearest, other)
    return float(pair[0]), float(pair[1])


# ---- two variables


def _two_types(cx: Context, node: ast.AST, symbol: str, left: Value, right: Value) -> Value | Bad:
    a, b = left.type, right.type
    assert isinstance(a, ScalarType) and isinstance(b, ScalarType)
    if a == b:
        return apply(cx, node, symbol, [left, right])
    if is_scalar(a, "iu") and is_scalar(b, "f") and a.bits == 64:
        return Value(_exactly(cx, symbol, left, right))
    if is_scalar(b, "iu") and is_scalar(a, "f") and b.bits == 64:
        return Value(_exactly(cx, _MIRROR[symbol], right, left))
    common = _common(a, b)
    if common is not None:
        left, right = _cast(cx, left, common), _cast(cx, right, common)
    return apply(cx, node, symbol, [left, right])


def _common(a: ScalarType, b: ScalarType) -> ScalarType | None:
    """A type that holds every number of two types; None for uint64 and a signed one."""
    if a.kind == "f" and b.kind == "f":
        return a if a.bits > b.bits else b
    for f, n in ((a, b), (b, a)):
        if f.kind == "f":
            digits = n.bits - (n.kind == "i")
            return next(t for t, most in _MANTISSA.items() if t.bits >= f.bits and digits <= most)
    wide, narrow = (a, b) if a.bits >= b.bits else (b, a)
    if wide.kind == narrow.kind or (wide.kind == "i" and wide.bits > narrow.bits):
        return wide
    return INT64 if wide.bits < 64 else None


def _exactly(cx: Context, symbol: str, whole: Value, x: Value) -> Atom:
    """`whole symbol x` for a 64-bit integer, which no type of floats holds.

    Rounded to a float64, it is on the same side of x unless it comes to lie on x. There x is
    an integer; that of 2**63 (or 2**64), to which the largest integers are rounded, is more.
    """
    t = whole.type
    assert isinstance(t, ScalarType)
    b, word = cx.b, {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[symbol]
    wide = _cast(cx, x, FLOAT64).atom
    rounded = b.op("cast", whole.atom, result=FLOAT64)
    beyond = b.op("ge", wide, const(2.0 ** (63 if t.kind == "i" else 64), FLOAT64))
    tie: Atom = b.op(word, whole.atom, b.op("cast", wide, result=t))
    if symbol in ("<", "<=", "!="):
        tie = b.op("lor", beyond, tie)
    else:
        tie = b.op("land", b.op("lnot", beyond), tie)
    out = b.op("select", b.op("eq", rounded, wide), tie, b.op(word, rounded, wide))
    assert out.type == BOOL
    return out
