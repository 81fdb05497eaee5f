"""The meaning of scalar operations on NumPy values.

Arguments are NumPy scalars, or arrays for the forms that work on components;
results keep their dtype. Integers wrap and never trap. Callers silence NumPy's
floating-point warnings: overflow and NaN are ordinary results here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.lang.numbers import number_kind
from engine.lang.types import Type, scalar_of


def wrap(value: int, dtype: np.dtype[Any]) -> int:
    """An integer reduced to the range of a dtype, as two's complement does."""
    bits = dtype.itemsize * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def integers(f: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    """A function of two Python integers, made to work on NumPy integers of one dtype."""

    def apply(a: Any, b: Any) -> Any:
        if isinstance(a, np.generic) and isinstance(b, np.generic):
            return a.dtype.type(wrap(f(int(a), int(b)), a.dtype))
        x, y = np.broadcast_arrays(a, b)
        dtype = x.dtype
        out = [wrap(f(int(i), int(j)), dtype) for i, j in zip(x.flat, y.flat, strict=True)]
        return np.array(out, dtype).reshape(x.shape)[()]

    return apply


def _truncated(a: int, b: int) -> int:
    if b == 0:
        return 0
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


_div = integers(_truncated)
_mod = integers(lambda a, b: 0 if b == 0 else a - b * _truncated(a, b))
_floordiv = integers(lambda a, b: 0 if b == 0 else a // b)


def div(a: Any, b: Any) -> Any:
    return np.divide(a, b) if number_kind(a.dtype) == "f" else _div(a, b)


def mod(a: Any, b: Any) -> Any:
    return np.fmod(a, b) if number_kind(a.dtype) == "f" else _mod(a, b)


def floordiv(a: Any, b: Any) -> Any:
    return np.floor(np.divide(a, b)) if number_kind(a.dtype) == "f" else _floordiv(a, b)


def shl(a: Any, b: Any) -> Any:
    bits = a.dtype.itemsize * 8
    return integers(lambda x, n: x << (n % bits))(a, b)


def shr(a: Any, b: Any) -> Any:
    bits = a.dtype.itemsize * 8
    return integers(lambda x, n: x >> (n % bits))(a, b)


def where(cond: Any, a: Any, b: Any) -> Any:
    """Component by component; `[()]` makes NumPy scalars of 0-d arrays."""
    return np.where(cond, a, b)[()]


def minimum(a: Any, b: Any) -> Any:
    """The smaller; a NaN counts as missing, a tie gives `b`."""
    return where((a < b) | (b != b), a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger; a NaN counts as missing, a tie gives `b`."""
    return where((a > b) | (b != b), a, b)


def clamp(x: Any, low: Any, high: Any) -> Any:
    return minimum(maximum(low, x), high)


def absolute(x: Any) -> Any:
    return np.abs(x)


def sign(x: Any) -> Any:
    # Two's complement: -1 wraps in unsigned types, where it is never chosen.
    one = x.dtype.type(1)
    return where(x < 0, np.negative(one), one)


def step(x: Any) -> Any:
    return where(x < 0, x.dtype.type(1), x.dtype.type(0))


def nonzero(x: Any) -> Any:
    return where(x != 0, x.dtype.type(1), x.dtype.type(0))


def round_away(x: Any) -> Any:
    """To the nearest integer, halves away from zero. `x - trunc(x)` is exact, `x + 0.5` is not."""
    t = np.trunc(x)
    return where(np.abs(x - t) >= x.dtype.type(0.5), t + np.copysign(x.dtype.type(1), x), t)


def frac(x: Any) -> Any:
    return x - np.trunc(x)


def times(factor: float) -> Callable[[Any], Any]:
    return lambda x: x * x.dtype.type(factor)


def lerp(a: Any, b: Any, t: Any) -> Any:
    return a * (t.dtype.type(1) - t) + b * t


def smoothstep(a: Any, b: Any, x: Any) -> Any:
    n = x.dtype.type
    t = clamp((x - a) / (b - a), n(0), n(1))
    return (t * t) * (n(3) - n(2) * t)


def through_math(f: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of Python's math module, rounded to the argument's dtype."""
    return lambda x: x.dtype.type(f(float(x)))


erf = through_math(math.erf)
erfc = through_math(math.erfc)


def cast(to: Type, x: Any) -> Any:
    """Conversion of a value: float to integer truncates and saturates, NaN gives 0."""
    value = np.asarray(x)
    target = scalar_of(to)
    dtype = target.numpy
    if target.kind == "b":
        return (value != 0)[()]
    if target.kind == "f" or number_kind(value.dtype) != "f":
        return value.astype(dtype)[()]
    info = np.iinfo(dtype)
    # The upper limit is 2**n, exact in every float type; max itself may not be.
    high = value >= value.dtype.type(2.0) ** (target.bits - (target.kind == "i"))
    low = value <= value.dtype.type(info.min)
    inside = np.where(high | low | np.isnan(value), 0, value).astype(dtype)
    out = np.where(high, dtype.type(info.max), np.where(low, dtype.type(info.min), inside))
    return out.astype(dtype)[()]


def asin(x: Any) -> Any:
    return np.arcsin(np.clip(x, x.dtype.type(-1), x.dtype.type(1)))


def acos(x: Any) -> Any:
    return np.arccos(np.clip(x, x.dtype.type(-1), x.dtype.type(1)))
