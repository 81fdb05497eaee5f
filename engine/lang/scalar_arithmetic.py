"""Arithmetic of scalar values on the host: two of one type give that type, as in kernels.

So integers wrap, their quotients lose the fraction, and floats are rounded to their width. With
all else, Python's own arithmetic is done. A zero divisor raises what Python raises.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np


def _quotient(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": _quotient,
    "floordiv": operator.floordiv,
    "mod": lambda a, b: a - b * _quotient(a, b),
}
_FLOATS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.fmod,
}


def give_arithmetic(cls: type, python: type, plain: type | None, width: Any = None) -> None:
    """Adds the operators to a scalar class.

    python: `int` or `float`, what the class is made from. plain: the same class where Python's own
    numbers stand for this type, as `int` does for int32; results are then Python's, too. width: of
    floats, the NumPy type to compute in.
    """
    for name, compute in (_INTEGERS if python is int else _FLOATS).items():
        for spelled, swap in ((f"__{name}__", False), (f"__r{name}__", True)):
            made = _operator(cls, python, plain, width, getattr(python, spelled), compute, swap)
            made.__name__ = spelled
            setattr(cls, spelled, made)
    setattr(cls, "__neg__", _negation(cls, python, plain))  # noqa: B010


def _negation(cls: Any, python: Any, plain: Any) -> Callable[[Any], Any]:
    def negative(self: Any) -> Any:
        found = cls(-python(self))
        return found if plain is None else plain(found)

    return negative


def _operator(
    cls: type, python: type, plain: type | None, width: Any, otherwise: Any, compute: Any,
    swap: bool,
) -> Callable[[Any, Any], Any]:  # fmt: skip
    def apply(self: Any, other: Any) -> Any:
        if type(other) is not cls and (plain is None or type(other) is not plain):
            return otherwise(self, other)
        a, b = (python(other), python(self)) if swap else (python(self), python(other))
        if not b and compute in _DIVIDE:
            return otherwise(self, other)
        if width is not None:
            with np.errstate(all="ignore"):
                found = cls(compute(width(a), width(b)))
        else:
            found = cls(compute(a, b))
        return found if plain is None else plain(found)

    return apply


_DIVIDE = [t[k] for t in (_INTEGERS, _FLOATS) for k in ("truediv", "floordiv", "mod")]
