"""Folds literals during lowering, so that the result is a literal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from engine.builtins.resolve import resolve
from engine.frontend.operands.kinds import LiteralKind
from engine.frontend.operands.operand import (
    LiteralTable,
    Value,
    adapts,
    common_type,
    float_literal,
    is_exact,
    literal,
    number,
    place_in,
)
from engine.ir.builder import Builder
from engine.ir.nodes import Atom, Const
from engine.ir.ops import OPS
from engine.lang.types import FLOAT32, FLOAT64, INT32, INT64, ScalarType

Number = int | float

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _pair(name: str, a: Number, b: Number) -> Number | None:
    if name in _COMPARE:
        return _COMPARE[name](a, b)
    if name in _ARITHMETIC:
        return _ARITHMETIC[name](a, b)
    if name == "/" and b != 0 and math.isfinite(a) and math.isfinite(b):
        # Between integers `/` truncates toward zero, as everywhere in the language.
        sign = 1 if (a < 0) == (b < 0) else -1
        return sign * (abs(a) // abs(b)) if _whole(a, b) else a / b
    if name == "/" and not _whole(a, b):
        return float(np.divide(float(a), float(b)))  # IEEE, where Python raises
    if name == "//" and _whole(a, b) and b != 0:
        return a // b
    if name == "**" and _whole(a, b) and 0 <= b < 64 and abs(a) < 2**16:
        out = 1
        for _ in range(int(b)):
            out *= int(a)
        return out
    if name == "**" and not _whole(a, b):
        try:
            power = float(a) ** float(b)
        except (OverflowError, ZeroDivisionError):
            power = complex()
        # IEEE where Python raises, or leaves the real numbers.
        return power if isinstance(power, float) else float(np.power(float(a), float(b)))
    return None


def _whole(*numbers: Number) -> bool:
    return all(isinstance(n, int) for n in numbers)


def fold(name: str, args: Sequence[Value]) -> Value | None:
    """The literal that an operator or builtin gives for constant literals; else None."""
    if not all(v.weak for v in args):
        return None
    return _operator(name, args) or _builtin(name, args)


def _operator(name: str, args: Sequence[Value]) -> Value | None:
    numbers = [n for v in args if (n := number(v)) is not None]
    truncated = any(v.truncated for v in args)
    if len(numbers) != len(args) or (truncated and not _whole(*numbers)):
        return None  # a float is wanted, which a truncated quotient is not
    if len(numbers) == 1 and name == "-":
        return _literal(-numbers[0], truncated)
    if len(numbers) != 2:
        return None
    a, b = numbers
    try:
        with np.errstate(all="ignore"):
            out = _pair(name, a, b)
    except (OverflowError, ValueError):
        return None
    # An integer too long for the language is left to the overflow rules of its type.
    if out is None or (type(out) is int and not -(2**63) <= out < 2**63):
        return None
    return _literal(out, truncated or (name == "/" and _whole(a, b) and a % b != 0))


def _literal(n: Number, truncated: bool) -> Value:
    out = literal(n)
    return replace(out, truncated=truncated and out.weak)


def _builtin(name: str, args: Sequence[Value]) -> Value | None:
    """The same by the table of operations: of floats in double precision, of integers exactly."""
    numbers = [n for v in args if (n := number(v)) is not None]
    got = resolve(name, [v.type for v in args], [v.weak for v in args])
    if got is None or len(numbers) != len(args) or OPS[got.op].explicit:
        return None
    types = {v.type if cast is None else cast for v, cast in zip(args, got.casts, strict=True)}
    truncated = any(v.truncated for v in args)
    if types != {got.result} or (truncated and got.result == FLOAT32):
        return None
    given = [numbers[k] for k in got.order]
    if got.result == FLOAT32:
        out = _computed(got.op, given, FLOAT64)
        return None if out is None else literal(float(out))
    if got.result != INT32:
        return None
    out = _computed(got.op, given, INT32)
    # What depends on the width, such as an overflow or a count of bits, is that of the type.
    same = out is not None and out == _computed(got.op, given, INT64)
    return _literal(int(out), truncated) if out is not None and same else None


def _computed(op: str, numbers: Sequence[Number], t: ScalarType) -> Number | None:
    try:
        with np.errstate(all="ignore"):
            out = OPS[op].numpy(*(t.numpy.type(n) for n in numbers))
    except (ArithmeticError, TypeError, ValueError):
        return None
    return out.item() if isinstance(out, np.generic) else None


# ---- literals that are chosen at run time

# More combinations of such are not written down.
MOST = 4096


class TooMany(Exception):
    """The literals that meet have more combinations than a table holds."""


def tabulate(
    values: Sequence[Value],
    compute: Callable[[Sequence[Value]], Value | None],
    exact: bool = False,
) -> LiteralTable | None:
    """What is computed of literals of which some are chosen at run time, for each choice.

    compute: takes constants. exact: it rounds once at most. None where one has no result, or
    results have no common type. Raises TooMany.
    """
    axes: dict[Atom, int] = {}
    for v in values:
        for axis, count in v.table.axes if v.table is not None else ():
            axes[axis] = min(count, axes.get(axis, count))
    if len(axes) > 1 and math.prod(axes.values()) > MOST:
        raise TooMany
    items: list[Value] = []
    for place in itertools.product(*map(range, axes.values())):
        at = dict(zip(axes, place, strict=True))
        found = compute([_item(v, at) for v in values])
        if found is None:
            return None
        items.append(found)
    t = common_type(items)
    if t is None or not all(isinstance(v.atom, Const) for v in items):
        return None
    assert isinstance(t, ScalarType)
    every = tuple(_as(v, t) for v in items)
    exact &= all(map(is_exact, (*values, *every)))
    return LiteralTable(tuple(axes.items()), every, exact)


def chosen_among(place: Atom, values: Sequence[Value], exact: bool = True) -> LiteralTable | None:
    """The literal that an atom chooses among others; None where they have no common type.

    exact: whether the values are what they were before they were taken apart. Raises TooMany.
    """
    places = tuple(literal(k) for k in range(len(values)))
    number_of = Value(place, table=LiteralTable(((place, len(values)),), places, exact=True))
    return tabulate(
        [number_of, *values], lambda items: items[1 + int(number(items[0]) or 0)], exact
    )


def _item(v: Value, at: dict[Atom, int]) -> Value:
    """The constant that a literal is where the axes have chosen."""
    if v.table is None:
        return v
    k = 0
    for axis, count in v.table.axes:
        k = k * count + at[axis]
    return v.table.items[k]


def _as(v: Value, t: ScalarType) -> Value:
    n = number(v)
    assert n is not None and adapts(v, t)
    return replace(v, atom=Const(float(n) if t.kind == "f" else n, t))


# ---- literals that are given to functions, or returned


def literal_kind(values: Sequence[Value]) -> LiteralKind | None:
    """The kind of a literal of floats that is one of these; None where one is none, or too many."""
    if not values or not all(v.weak for v in values) or common_type(values) != FLOAT32:
        return None
    items: dict[tuple[Const, ...], None] = {}
    for v in values:
        own = (v,) if v.table is None else v.table.items
        items[tuple(_as(i, FLOAT32).atom for i in own)] = None  # type: ignore[misc]
    every = tuple(c for own in items for c in own)
    exact = all(map(is_exact, (*values, *(Value(c, True) for c in every))))
    return LiteralKind(every, exact) if len(every) <= MOST else None


def literal_atoms(b: Builder, v: Value, kind: LiteralKind) -> tuple[Atom, ...] | None:
    """What a literal is made of as one of a kind; None where it is none of its literals."""
    if literal_kind([v, literal(0.0)]) is None:
        return None
    v = v if v.type == FLOAT32 else float_literal(b, v)
    own = () if (found := literal_kind([v])) is None else found.items
    starts = range(len(kind.items) - len(own) + 1)
    start = next((k for k in starts if kind.items[k : k + len(own)] == own), None)
    if start is None:
        return None
    if len(kind.items) == 1:
        return (v.atom,)
    if v.table is None:
        return v.atom, Const(start, INT32)
    place = place_in(b, v.table)
    return v.atom, b.op("add", place, Const(start, INT32)) if start else place
