"""Arithmetic between literals, done while lowering, so that the result stays a literal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

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
    """The literal that an operator between literals gives; None where it is not that."""
    if not all(v.weak for v in args):
        return None
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
