"""Arithmetic between literals, done while lowering, so that the result stays a literal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from engine.frontend.operands.operand import Value, literal, number

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
    whole = isinstance(a, int) and isinstance(b, int)
    if name == "/" and b != 0 and math.isfinite(a) and math.isfinite(b):
        # Between integers `/` truncates toward zero, as everywhere in the language.
        sign = 1 if (a < 0) == (b < 0) else -1
        return sign * (abs(a) // abs(b)) if whole else a / b
    if name == "//" and whole and b != 0:
        return a // b
    if name == "**" and whole and 0 <= b < 64 and abs(a) < 2**16:
        out = 1
        for _ in range(int(b)):
            out *= int(a)
        return out
    return None


def fold(name: str, args: Sequence[Value]) -> Value | None:
    """The literal that an operator between literals gives; None where it is not that."""
    if not all(v.weak for v in args):
        return None
    numbers = [number(v) for v in args]
    if len(numbers) == 1 and name == "-" and numbers[0] is not None:
        return literal(-numbers[0])
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
        return None
    try:
        out = _pair(name, numbers[0], numbers[1])
    except (OverflowError, ValueError):
        return None
    # An integer too long for the language is left to the overflow rules of its type.
    if out is None or (type(out) is int and not -(2**63) <= out < 2**63):
        return None
    return literal(out)
