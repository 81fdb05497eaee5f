"""Errors of operators between values for which they have no meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.lang import types as t


class OperandError(LaunchError, TypeError):
    """An operator is not defined for its operands."""


def told(symbol: str, own: Any, other: object, found: Any, swapped: bool = False) -> Any:
    """What an operator method found. own: its value; swapped: the value is the right operand.

    Raises OperandError (E104) for NotImplemented, where nobody else can know a meaning: Python
    asks the right operand last, and numbers know none.
    """
    if found is not NotImplemented:
        return found
    kind = getattr(type(other), "__ir_type__", None)
    if isinstance(kind, (t.VectorType, t.MatrixType)):
        last = swapped or type(other) is type(own)
    else:
        last = other is None or isinstance(other, (bool, int, float, np.number, np.bool_))
    if not last:
        return NotImplemented
    names = [type(own).__name__, "None" if other is None else type(other).__name__]
    left, right = reversed(names) if swapped else names
    message = f"`{left} {symbol} {right}` has no meaning"
    raise OperandError(Diagnostic("E104", message, call_span(), _help(symbol, own, other)))


def _help(symbol: str, own: Any, other: object) -> str:
    name, kind = type(own).__name__, own.__ir_type__
    if type(other) is type(own) and isinstance(kind, t.VectorType):
        if kind.tag:
            return ""
        if symbol in "*@":
            return "write dot(a, b), cw_mul(a, b) or cross(a, b)"
        return "write cw_div(a, b)" if symbol == "/" else ""
    if isinstance(other, (int, float)):
        return f"write {name}(x) for a value that has it in all components"
    return "convert one of them: both need one type of components, and shapes that fit"
