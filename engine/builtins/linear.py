"""Vectors: products, lengths, componentwise operations, reductions.

Sums run from left to right in NumPy and in C++, so that both give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.builtins import infer as i
from engine.builtins import numeric as m
from engine.builtins.rules import (
    Maybe,
    call,
    construct,
    inner,
    nonzero_or_one,
    total,
    zero_like,
)
from engine.ir.builder import E
from engine.ir.ops import Derivative, Domain, Infer, NoDerivative, Op, Vjp, register
from engine.lang.types import UINT32, Type, VectorType, scalar_of

_LINE = (-2.0, 2.0)
_AWAY = (0.5, 2.0)


def vector_op(
    name: str,
    user: str,
    doc: str,
    infer: Infer,
    numpy: Callable[..., Any],
    derivative: Derivative,
    *intervals: tuple[float, float],
) -> Op:
    """Registers an operation spelled `eng::name`, one argument for each interval."""
    return register(
        Op(
            name=name,
            user=user,
            doc=doc,
            infer=infer,
            c=call(name, len(intervals)),
            numpy=numpy,
            derivative=derivative,
            domain=Domain(intervals),
        )
    )


def dot(a: Any, b: Any) -> Any:
    """The sum of products of two flat arrays, from left to right."""
    products = a * b
    out = products[0]
    for k in range(1, len(products)):
        out = out + products[k]
    return out


def cross(a: Any, b: Any) -> Any:
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
        a.dtype,
    )


def length(v: Any) -> Any:
    return np.sqrt(dot(v, v))


def normalize(v: Any) -> Any:
    size = length(v)
    return np.zeros_like(v) if size == 0 else v / size


def _fold(f: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def apply(v: Any) -> Any:
        out = v[0]
        for x in v[1:]:
            out = f(out, x)
        return out

    return apply


def _arg(better: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def apply(v: Any) -> Any:
        best = 0
        for k in range(1, len(v)):
            missing = v[best] != v[best] and v[k] == v[k]
            if better(v[k], v[best]) or missing:
                best = k
        return np.uint32(best)

    return apply


# Products with a scalar, and component by component.


def _unscale_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    return (g.call("unscale", a[1]), -inner(g, y) / a[1])


def _unscale_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    moved = None if t[1] is None else y.call("scale", -t[1])
    top = total([t[0], moved])
    return None if top is None else top.call("unscale", a[1])


def _cw_div_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    by_a = g.call("cw_div", a[1])
    return (by_a, -by_a.call("cw_mul", y))


def _cw_div_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    moved = None if t[1] is None else -y.call("cw_mul", t[1])
    top = total([t[0], moved])
    return None if top is None else top.call("cw_div", a[1])


vector_op(
    "scale", "mul", "mul(x, s): a vector, matrix, quaternion or transform times a number.",
    i.scaled, np.multiply,
    Vjp(lambda g, a, y: (g.call("scale", a[1]), inner(g, a[0])), "multilinear"), _LINE, _LINE,
)  # fmt: skip
vector_op(
    "unscale", "div",
    "div(x, s): a vector, matrix, quaternion or transform divided by a number.", i.scaled, m.div,
    Vjp(_unscale_rule, "general", _unscale_jvp), _LINE, _AWAY,
)  # fmt: skip
vector_op(
    "cw_mul", "cw_mul", "cw_mul(a, b): the product component by component.",
    i.same(2, i.tensor), np.multiply,
    Vjp(lambda g, a, y: (g.call("cw_mul", a[1]), g.call("cw_mul", a[0])), "multilinear"),
    _LINE, _LINE,
)  # fmt: skip
vector_op(
    "cw_div", "cw_div", "cw_div(a, b): the quotient component by component.",
    i.same(2, i.tensor), m.div, Vjp(_cw_div_rule, "general", _cw_div_jvp), _LINE, _AWAY,
)  # fmt: skip


def _lerp_types(types: Sequence[Type]) -> Type | None:
    fits = len(types) == 3 and types[0] == types[1] and not i.floating(types[0])
    fits = fits and i.floats(types[0]) and types[2] == scalar_of(types[0])
    return types[0] if fits else None


def _lerp_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    return (g.call("scale", 1 - a[2]), g.call("scale", a[2]), inner(g, a[1] - a[0]))


def _lerp_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    low = None if t[0] is None else t[0].call("scale", 1 - a[2])
    high = None if t[1] is None else t[1].call("scale", a[2])
    along = None if t[2] is None else (a[1] - a[0]).call("scale", t[2])
    return total([low, high, along])


vector_op(
    "lerp_vec", "lerp",
    "lerp(a, b, t): a * (1 - t) + b * t of vectors, matrices, quaternions or transforms.",
    _lerp_types, m.lerp, Vjp(_lerp_rule, "general", _lerp_jvp), _LINE, _LINE, (0.0, 1.0),
)  # fmt: skip

# Inner products and lengths.


def _length_rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
    # At v = 0 the quotient is 0 / 1: a zero subgradient instead of NaN.
    return (a[0].call("scale", g / nonzero_or_one(y)),)


def _length_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    return None if t[0] is None else a[0].call("dot", t[0]) / nonzero_or_one(y)


def _normalize_pull(g: E, a: Sequence[E], y: E) -> E:
    """(g - y (y . g)) / |v|: the Jacobian is symmetric, so this serves both modes."""
    size = a[0].call("length")
    flat = g - y.call("scale", y.call("dot", g))
    inverse = size.call("eq", 0).select(0, 1 / nonzero_or_one(size))
    return flat.call("scale", inverse)


def _normalize_jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
    return None if t[0] is None else _normalize_pull(t[0], a, y)


vector_op(
    "dot", "dot", "dot(a, b): the inner product of two vectors or quaternions.",
    i.to_scalar(2, i.vector_or_quaternion), dot,
    Vjp(lambda g, a, y: (a[1].call("scale", g), a[0].call("scale", g)), "multilinear"),
    _LINE, _LINE,
)  # fmt: skip
vector_op(
    "ddot", "ddot", "ddot(a, b): the sum of products of all components of two matrices.",
    i.to_scalar(2, i.matrix), lambda a, b: dot(a.ravel(), b.ravel()),
    Vjp(lambda g, a, y: (a[1].call("scale", g), a[0].call("scale", g)), "multilinear"),
    _LINE, _LINE,
)  # fmt: skip
vector_op(
    "cross", "cross", "cross(a, b): the vector product, in three dimensions.",
    i.same(2, i.vector3), cross,
    Vjp(lambda g, a, y: (a[1].call("cross", g), g.call("cross", a[0])), "multilinear"),
    _LINE, _LINE,
)  # fmt: skip
vector_op(
    "length_sq", "length_sq", "length_sq(v): the square of the length.",
    i.to_scalar(1, i.vector_or_quaternion), lambda v: dot(v, v),
    Vjp(
        lambda g, a, y: (a[0].call("scale", g + g),),
        "general",
        lambda t, a, y: None if t[0] is None else 2 * a[0].call("dot", t[0]),
    ), _LINE,
)  # fmt: skip
vector_op(
    "length", "length", "length(v): the Euclidean length. The gradient at 0 is zero.",
    i.to_scalar(1, i.float_vector_or_quaternion), length,
    Vjp(_length_rule, "general", _length_jvp), _LINE,
)  # fmt: skip
vector_op(
    "normalize", "normalize",
    "normalize(v): v divided by its length. The zero vector stays, with a zero gradient.",
    i.same(1, i.float_vector), normalize,
    Vjp(lambda g, a, y: (_normalize_pull(g, a, y),), "general", _normalize_jvp), _LINE,
)  # fmt: skip

# Reductions.


def _component_type(types: Sequence[Type]) -> Type | None:
    return UINT32 if len(types) == 1 and i.vector(types[0]) else None


def _reduction(name: str, user: str, doc: str, arg: str, f: Callable[[Any, Any], Any]) -> None:
    def rule(g: E, a: Sequence[E], y: E) -> Sequence[Maybe]:
        return (zero_like(a[0]).call("insert", a[0].call(arg), g),)

    def jvp(t: Sequence[Maybe], a: Sequence[E], y: E) -> Maybe:
        return None if t[0] is None else t[0].call("extract", a[0].call(arg))

    vector_op(name, user, doc, i.to_scalar(1, i.vector), _fold(f), Vjp(rule, "general", jvp), _LINE)


for _name, _doc, _better in (
    ("argmin", "argmin(v): index of the first smallest component; NaNs are skipped.", np.less),
    ("argmax", "argmax(v): index of the first largest component; NaNs are skipped.", np.greater),
):
    vector_op(
        _name, _name, _doc, _component_type, _arg(_better),
        NoDerivative("an index is an integer"), _LINE,
    )  # fmt: skip
_reduction("min_of", "min", "min(v): the smallest component; NaNs are skipped.", "argmin",
           m.minimum)  # fmt: skip
_reduction("max_of", "max", "max(v): the largest component; NaNs are skipped.", "argmax",
           m.maximum)  # fmt: skip


# Skew-symmetric matrices belong to vectors of length 3.


def skew_components(g: E) -> E:
    """The adjoint of skew(): differences of the components across the diagonal."""

    def at(r: int, c: int) -> E:
        return g.call("extract", g.index(r), g.index(c))

    parts = [at(2, 1) - at(1, 2), at(0, 2) - at(2, 0), at(1, 0) - at(0, 1)]
    return construct(VectorType(scalar_of(g.type), 3), parts)
