"""Arithmetic, comparisons, bits and functions of numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from engine.lang.types import Type, scalar_of, shape_of
from tests.oracles import Oracle


def whole(*values: Any) -> bool:
    """Whether the values are integers."""
    return all(np.asarray(v).dtype.kind in "iuO" for v in values)


def by_number(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function of numbers, component by component."""

    def apply(*args: Any) -> Any:
        if all(np.ndim(a) == 0 for a in args):
            return f(*args)
        rows = np.broadcast(*args)
        out = [f(*(int(x) if whole(x) else x for x in row)) for row in rows]
        kind = object if whole(*out) else float
        return np.array(out, kind).reshape(rows.shape)

    return apply


def truncated(a: int, b: int) -> int:
    return 0 if b == 0 else int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))


@by_number
def div(a: Any, b: Any) -> Any:
    return truncated(a, b) if whole(a, b) else np.divide(a, b)


@by_number
def mod(a: Any, b: Any) -> Any:
    if whole(a, b):
        return 0 if b == 0 else a - b * truncated(a, b)
    return np.fmod(a, b)


@by_number
def floordiv(a: Any, b: Any) -> Any:
    if whole(a, b):
        return 0 if b == 0 else a // b
    return np.floor(np.divide(a, b))


def trips(start: int, stop: int, step: int) -> int:
    return 0 if step == 0 else max(0, math.ceil(Fraction(stop - start, step)))


def shift(_type: Type, move: Callable[[int, int], int]) -> Callable[..., Any]:
    bits = scalar_of(_type).bits
    return by_number(lambda a, b: move(a, b % bits))


@by_number
def minimum(a: Any, b: Any) -> Any:
    """A NaN counts as missing; of equals, such as the two zeros, the second."""
    if a != a:
        return b
    return a if b != b or a < b else b


@by_number
def maximum(a: Any, b: Any) -> Any:
    if a != a:
        return b
    return a if b != b or a > b else b


def clamp(x: Any, low: Any, high: Any) -> Any:
    return minimum(maximum(low, x), high)


def smoothstep(a: Any, b: Any, x: Any) -> Any:
    t = clamp((x - a) / (b - a), 0.0, 1.0)
    return 3 * t**2 - 2 * t**3


def round_away(x: Any) -> Any:
    return x if not np.isfinite(x) else math.copysign(math.floor(abs(x) + 0.5), x)


def power(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.float64(x) ** np.float64(y)


def bit_count(x: Any) -> Any:
    return np.int32(np.unpackbits(np.atleast_1d(x).view(np.uint8)).sum())


def reinterpret(_type: Type, x: Any) -> Any:
    return np.atleast_1d(x).ravel().view(scalar_of(_type).numpy).reshape(shape_of(_type))


def cast(_type: Type, x: Any) -> Any:
    kind = scalar_of(_type)
    if kind.kind == "b":
        return np.asarray(x) != 0
    if kind.kind == "f":
        return np.asarray(x, float)
    low, high = np.iinfo(kind.numpy).min, np.iinfo(kind.numpy).max

    def one(v: Any) -> Any:
        if isinstance(v, (int, bool)):
            return int(v)  # wraps
        return 0 if math.isnan(v) else int(min(max(v, low), high)) if abs(v) < 1e300 else (
            high if v > 0 else low)  # fmt: skip

    return np.array([one(v) for v in np.asarray(x, object).ravel()], object).reshape(
        shape_of(_type)
    )


OPERATIONS: dict[str, Any] = {
    "add": Oracle(operator.add, units=4, degree=1),
    "sub": Oracle(operator.sub, units=4, degree=1),
    "mul": Oracle(operator.mul, units=4),
    "div": Oracle(div, units=4),
    "mod": Oracle(mod, units=4),
    "floordiv": Oracle(floordiv, units=4),
    "trips": Oracle(trips),
    "neg": operator.neg,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
    "land": lambda a, b: bool(a and b),
    "lor": lambda a, b: bool(a or b),
    "lnot": operator.not_,
    "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor,
    "shl": lambda _type, a, b: shift(_type, operator.lshift)(a, b),
    "shr": lambda _type, a, b: shift(_type, operator.rshift)(a, b),
    "invert": operator.invert,
    "mod_vec": Oracle(mod, units=4),
    "bitand_vec": operator.and_, "bitor_vec": operator.or_, "bitxor_vec": operator.xor,
    "shl_vec": lambda _type, a, b: shift(_type, operator.lshift)(a, b),
    "shr_vec": lambda _type, a, b: shift(_type, operator.rshift)(a, b),
    "invert_vec": lambda a: by_number(operator.invert)(a),
    "bit_count": Oracle(bit_count, raw=True),
    "reinterpret": Oracle(reinterpret, raw=True),
    "cast": cast,
    "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": lambda x: np.arcsin(np.clip(x, -1, 1)),
    "acos": lambda x: np.arccos(np.clip(x, -1, 1)),
    "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "exp": np.exp, "log": np.log, "log2": np.log2, "log10": np.log10,
    "sqrt": np.sqrt, "cbrt": special.cbrt,
    "erf": special.erf, "erfc": special.erfc,
    "erfinv": special.erfinv, "erfcinv": special.erfcinv,
    "pow": power,
    "copysign": np.copysign,
    "frac": lambda x: x - np.trunc(x),
    "degrees": np.rad2deg, "radians": np.deg2rad,
    "lerp": Oracle(lambda a, b, t: a * (1 - t) + b * t, degree=2),
    "smoothstep": smoothstep,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "round": round_away,
    "abs": abs, "abs_vec": lambda x: abs(x),
    "sign": by_number(lambda x: -1 if x < 0 else 1),
    "sign_vec": by_number(lambda x: -1 if x < 0 else 1),
    "step": lambda x: 1 if x < 0 else 0,
    "nonzero": lambda x: 1 if x != 0 else 0,
    "min": minimum, "max": maximum, "min_vec": minimum, "max_vec": maximum,
    "clamp": clamp,
    "isfinite": lambda x: bool(np.all(np.isfinite(x))),
    "isnan": lambda x: bool(np.any(np.isnan(x))),
    "isinf": lambda x: bool(np.any(np.isinf(x))),
    "copy": lambda x: x,
    "select": lambda c, a, b: a if c else b,
    "where_int": lambda c, a, b: a if c else b,
    "wrap_index": lambda i, n: i + n if i < 0 else i,
    "within": lambda i, n: i,
}  # fmt: skip
COMPOSED: dict[str, Any] = {
    "/": Oracle(div, units=4),
    "div": Oracle(div, units=4),
    "div_approx": Oracle(div, units=4),
}
