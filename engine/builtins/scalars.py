"""Scalar functions: trigonometry, exponentials, rounding, choice, interpolation."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.builtins import infer as i
from engine.builtins import numeric as m
from engine.builtins import quantile
from engine.builtins.rules import FLAT, Maybe, by_component, call, choose, nonzero_or_one
from engine.ir.builder import E
from engine.ir.nodes import Const
from engine.ir.ops import Derivative, Domain, Elementwise, NoDerivative, Op, Vjp, register
from engine.lang.types import BOOL

_LINE = (-2.0, 2.0)
_POSITIVE = (0.1, 3.0)
_UNIT = (-0.9, 0.9)

Partials = Callable[[Sequence[E], E], Sequence[Maybe]]


def _float(
    name: str,
    doc: str,
    numpy: Callable[..., Any],
    derivative: Derivative | Partials,
    *intervals: tuple[float, float],
    kinks: tuple[float, ...] = (),
    singular: tuple[float, ...] = (),
) -> Op:
    """A function of floats of one type, one argument for each interval."""
    known = isinstance(derivative, (Elementwise, Vjp, NoDerivative))
    return register(
        Op(
            name=name,
            user=name,
            doc=doc,
            infer=i.same(len(intervals), i.floating),
            c=call(name, len(intervals)),
            numpy=numpy,
            derivative=derivative if known else Elementwise(derivative),  # type: ignore[arg-type]
            domain=Domain(intervals, kinks, singular),
        )
    )


def _inverse_sine(a: Sequence[E]) -> E:
    # (1 - x)(1 + x) keeps its digits near 1, where 1 - x * x loses them.
    square = (1 - a[0]) * (1 + a[0])
    return (square < 0).select(0, 1 / square.call("sqrt"))


_float("sin", "sin(x): sine of an angle in radians.", np.sin,
       lambda a, y: (a[0].call("cos"),), _LINE)  # fmt: skip
_float("cos", "cos(x): cosine of an angle in radians.", np.cos,
       lambda a, y: (-a[0].call("sin"),), _LINE)  # fmt: skip
_float("tan", "tan(x): tangent of an angle in radians.", np.tan,
       lambda a, y: (1 + y * y,), (-1.2, 1.2))  # fmt: skip
_float("asin", "asin(x): angle in [-pi/2, pi/2] whose sine is x; x is clamped to [-1, 1].",
       m.asin, lambda a, y: (_inverse_sine(a),), _UNIT, singular=(-1.0, 1.0))  # fmt: skip
_float("acos", "acos(x): angle in [0, pi] whose cosine is x; x is clamped to [-1, 1].",
       m.acos, lambda a, y: (-_inverse_sine(a),), _UNIT, singular=(-1.0, 1.0))  # fmt: skip
_float("atan", "atan(x): angle in [-pi/2, pi/2] whose tangent is x.", np.arctan,
       lambda a, y: (1 / (1 + a[0] * a[0]),), _LINE)  # fmt: skip


def _atan2_partials(a: Sequence[E], y: E) -> Sequence[Maybe]:
    square = nonzero_or_one(a[0] * a[0] + a[1] * a[1])
    return (a[1] / square, -a[0] / square)


_float("atan2", "atan2(y, x): angle of the point (x, y) in [-pi, pi]; zero gradient at (0, 0).",
       np.arctan2, _atan2_partials, _POSITIVE, _LINE)  # fmt: skip
_float("sinh", "sinh(x): hyperbolic sine.", np.sinh,
       lambda a, y: (a[0].call("cosh"),), _LINE)  # fmt: skip
_float("cosh", "cosh(x): hyperbolic cosine.", np.cosh,
       lambda a, y: (a[0].call("sinh"),), _LINE)  # fmt: skip
_float("tanh", "tanh(x): hyperbolic tangent.", np.tanh,
       lambda a, y: ((1 - y) * (1 + y),), _LINE)  # fmt: skip
_float("exp", "exp(x): e to the power x.", np.exp, lambda a, y: (y,), _LINE)
_float("log", "log(x): natural logarithm; -inf at 0, NaN below.", np.log,
       lambda a, y: (1 / a[0],), _POSITIVE, singular=(0.0,))  # fmt: skip
_float("log2", "log2(x): logarithm to base 2.", np.log2,
       lambda a, y: (1 / (a[0] * math.log(2)),), _POSITIVE, singular=(0.0,))  # fmt: skip
_float("log10", "log10(x): logarithm to base 10.", np.log10,
       lambda a, y: (1 / (a[0] * math.log(10)),), _POSITIVE, singular=(0.0,))  # fmt: skip
_float("sqrt", "sqrt(x): square root; NaN below 0. The derivative at 0 is infinite.", np.sqrt,
       lambda a, y: (0.5 / y,), _POSITIVE, singular=(0.0,))  # fmt: skip
_float("cbrt", "cbrt(x): cube root, also of negative numbers. The derivative at 0 is infinite.",
       np.cbrt, lambda a, y: (1 / (3 * y * y),), _POSITIVE, singular=(0.0,))  # fmt: skip
_float("erf", "erf(x): error function.", m.erf,
       lambda a, y: (2 / math.sqrt(math.pi) * (-a[0] * a[0]).call("exp"),), _LINE)  # fmt: skip
_float("erfc", "erfc(x): 1 - erf(x), accurate for large x.", m.erfc,
       lambda a, y: (-2 / math.sqrt(math.pi) * (-a[0] * a[0]).call("exp"),), _LINE)  # fmt: skip


def _inverse_erf_slope(y: E) -> E:
    return math.sqrt(math.pi) / 2 * (y * y).call("exp")


_float("erfinv", "erfinv(x): the number whose erf is x; infinite at -1 and 1, NaN beyond.",
       quantile.erfinv, lambda a, y: (_inverse_erf_slope(y),), (-0.95, 0.95),
       singular=(-1.0, 1.0))  # fmt: skip
_float("erfcinv", "erfcinv(x): the number whose erfc is x, accurate for small x; infinite at 0 and "
       "2, NaN beyond.", quantile.erfcinv, lambda a, y: (-_inverse_erf_slope(y),), (0.05, 1.95),
       singular=(0.0, 2.0))  # fmt: skip


def _pow_partials(a: Sequence[E], out: E) -> Sequence[Maybe]:
    x, y = a
    # x**0 is constant, though y * x**(y - 1) is 0 * inf at x = 0.
    by_x = y.call("eq", 0).select(0, y * x.call("pow", y - 1))
    if isinstance(y.atom, Const):
        return (by_x, None)
    # 0**y is flat in y for y > 0, though out * log(0) is 0 * -inf.
    flat = x.call("eq", 0).call("land", y >= 0)
    return (by_x, flat.select(0, out * x.call("log")))


# Not np.power: of scalars, it takes sqrt(x) for x**0.5, which is NaN at -inf where C gives inf.
_float("pow", "pow(x, y): x to the power y; NaN for a negative x and a fractional y.", operator.pow,
       _pow_partials, _POSITIVE, _LINE, singular=(0.0,))  # fmt: skip
_float("copysign", "copysign(x, y): the magnitude of x with the sign of y.", np.copysign,
       lambda a, y: (a[0].lit(1).call("copysign", a[0]) * a[0].lit(1).call("copysign", a[1]), None),
       _POSITIVE, _POSITIVE, kinks=(0.0,))  # fmt: skip
_float("frac", "frac(x): the part after the point, x - trunc(x), with the sign of x.", m.frac,
       lambda a, y: (a[0].lit(1),), (0.1, 0.9), kinks=(-1.0, 0.0, 1.0))  # fmt: skip
_float("degrees", "degrees(x): radians to degrees.", m.times(180 / math.pi),
       lambda a, y: (a[0].lit(180 / math.pi),), _LINE)  # fmt: skip
_float("radians", "radians(x): degrees to radians.", m.times(math.pi / 180),
       lambda a, y: (a[0].lit(math.pi / 180),), _LINE)  # fmt: skip
_float("lerp", "lerp(a, b, t): a * (1 - t) + b * t.", m.lerp,
       lambda a, y: (1 - a[2], a[2], a[1] - a[0]), _LINE, _LINE, (0.0, 1.0))  # fmt: skip


def _smoothstep_slopes(a: Sequence[E]) -> tuple[E, E, E, E]:
    """Whether x is between the edges, and the partials by both edges and x if it is."""
    low, high, x = a
    width = high - low
    t = (x - low) / width
    inside = (t > 0).call("land", t < 1)
    slope = 6 * t * (1 - t) / width
    return inside, slope * (t - 1), -slope * t, slope


def _smoothstep_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    inside, *slopes = _smoothstep_slopes(a)
    return [inside.select(g * s, 0) for s in slopes]


def _smoothstep_jvp(tangents: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    inside, *slopes = _smoothstep_slopes(a)
    terms = [t * s for t, s in zip(tangents, slopes, strict=True) if t is not None]
    if not terms:
        return None
    moved = terms[0]
    for t in terms[1:]:
        moved = moved + t
    return inside.select(moved, 0)


_float("smoothstep", "smoothstep(a, b, x): 0 before a, 1 after b, a cubic between; b may be "
       "less than a.",
       m.smoothstep, Vjp(_smoothstep_rule, "general", _smoothstep_jvp),
       (-1.0, -0.5), (1.0, 1.5), (-0.4, 0.9))  # fmt: skip

for _name, _doc, _f in (
    ("floor", "floor(x): the largest integer not above x, as a float.", np.floor),
    ("ceil", "ceil(x): the smallest integer not below x, as a float.", np.ceil),
    ("trunc", "trunc(x): x without the part after the point.", np.trunc),
    ("round", "round(x): the nearest integer, halves away from zero.", m.round_away),
    ("rint", "rint(x): the nearest integer, halves to the even one.", np.rint),
):
    _float(_name, _doc, _f, FLAT, (0.1, 0.4))


def _number(
    name: str,
    doc: str,
    numpy: Callable[..., Any],
    derivative: Derivative,
    *intervals: tuple[float, float],
    kinks: tuple[float, ...] = (),
) -> Op:
    """A function of numbers of one type, integers too."""
    return register(
        Op(
            name=name,
            user=name,
            doc=doc,
            infer=i.same(len(intervals), i.number),
            c=call(name, len(intervals)),
            numpy=numpy,
            derivative=derivative,
            domain=Domain(intervals, kinks),
        )
    )


def _extreme(name: str) -> Vjp:
    """Min or max: the cotangent goes whole to the argument that was chosen."""

    def first(a: Sequence[E]) -> E:
        return a[0].call(name, a[1]).call("lor", a[1].call("ne", a[1]))

    def rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
        cond = first(a)
        return (cond.select(g, 0), cond.select(0, g))

    return Vjp(rule, "general", lambda t, a, y: choose(first(a), t[0], t[1]))


def _clamp_choice(a: Sequence[E]) -> tuple[E, E]:
    """Whether the upper limit is not taken, and whether the lower one is."""
    x, low, high = a
    at_low = (low > x).call("lor", x.call("ne", x))
    below = (low.call("max", x) < high).call("lor", high.call("ne", high))
    return below, at_low


def _clamp_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    below, at_low = _clamp_choice(a)
    under = below.select(g, 0)
    return (at_low.select(0, under), at_low.select(under, 0), below.select(0, g))


def _clamp_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    below, at_low = _clamp_choice(a)
    return choose(below, choose(at_low, t[1], t[0]), t[2])


_ABS = _number("abs", "abs(x): the magnitude. The derivative at 0 is 1.", m.absolute,
               Elementwise(lambda a, y: ((a[0] < 0).select(-1, a[0].lit(1)),)),
               (0.2, 2.0), kinks=(0.0,))  # fmt: skip
_SIGN = _number("sign", "sign(x): -1 where x < 0, else 1.", m.sign, FLAT, (0.2, 2.0))
_MIN = _number("min", "min(a, b): the smaller number; a NaN counts as missing.", m.minimum,
               _extreme("lt"), _LINE, _LINE)  # fmt: skip
_MAX = _number("max", "max(a, b): the larger number; a NaN counts as missing.", m.maximum,
               _extreme("gt"), _LINE, _LINE)  # fmt: skip
_number("step", "step(x): 1 where x < 0, else 0.", m.step, FLAT, (0.2, 2.0))
_number("nonzero", "nonzero(x): 0 where x is 0, else 1.", m.nonzero, FLAT, (0.2, 2.0))
_number("clamp", "clamp(x, low, high): min(max(low, x), high); low for NaN, high where low is "
        "above it.", m.clamp,
        Vjp(_clamp_rule, "general", _clamp_jvp), _LINE, (-1.0, -0.1), (0.1, 1.0))  # fmt: skip

# The same four on vectors, component by component.
for _op in (_ABS, _SIGN, _MIN, _MAX):
    _n = len(_op.domain.intervals)
    register(
        Op(
            name=f"{_op.name}_vec",
            user=_op.name,
            doc=_op.doc.replace(":", ", on vectors: by component,", 1),
            infer=i.same(_n, i.vector),
            c=call(f"{_op.name}_vec", _n),
            numpy=_op.numpy,
            derivative=FLAT if _op is _SIGN else by_component(_op),
            domain=_op.domain,
        )
    )

_TESTS: tuple[tuple[str, str, Callable[..., Any], Callable[..., Any]], ...] = (
    ("isfinite", "x (or every component) is neither NaN nor infinite.", np.isfinite, np.all),
    ("isnan", "x (or any component) is NaN.", np.isnan, np.any),
    ("isinf", "x (or any component) is infinite.", np.isinf, np.any),
)
for _name, _doc, _test, _fold in _TESTS:
    register(
        Op(
            name=_name,
            user=_name,
            doc=f"{_name}(x): true where {_doc}",
            infer=i.same(1, i.floats, BOOL),
            c=call(_name, 1),
            numpy=lambda x, f=_test, fold=_fold: fold(f(x)),
            derivative=NoDerivative("a test is true or false"),
            domain=Domain((_LINE,)),
        )
    )
