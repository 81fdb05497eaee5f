"""Shared parts of derivative rules, and builders of C++ spellings."""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.builder import E
from engine.ir.ops import Elementwise, NoDerivative, Op, Vjp
from engine.lang.types import MatrixType, ValueType, VectorType, untagged

Maybe = E | None

FLAT = NoDerivative("piecewise constant: the derivative is zero wherever it exists")


def holes(count: int) -> str:
    """Places for operands: `{0}, {1}, ...`."""
    return ", ".join(f"{{{i}}}" for i in range(count))


def call(name: str, count: int) -> str:
    """The spelling `eng::name({0}, {1}, ...)`."""
    return f"eng::{name}({holes(count)})"


def components(x: E) -> list[E]:
    """All components of a vector or matrix, row by row."""
    t = x.type
    if isinstance(t, VectorType):
        return [x.call("extract", x.index(i)) for i in range(t.length)]
    assert isinstance(t, MatrixType)
    return [x.call("extract", x.index(i), x.index(j)) for i in range(t.rows) for j in range(t.cols)]


def construct(t: ValueType, parts: Sequence[E]) -> E:
    """A vector or matrix from its components, row by row."""
    return parts[0].make("construct", t, *parts[1:])


def plain(x: E) -> E:
    """A quaternion or transform as the vector of its components; anything else as it is."""
    t = x.type
    return x.make("cast", untagged(t)) if isinstance(t, VectorType) and t.tag else x


def inner(a: E, b: E) -> E:
    """The sum of products of all components."""
    a, b = plain(a), plain(b)
    return a.call("dot" if isinstance(a.type, VectorType) else "ddot", b)


def total(terms: Sequence[Maybe]) -> Maybe:
    """The sum of the terms that are there."""
    out: Maybe = None
    for t in terms:
        if t is not None:
            out = t if out is None else out + t
    return out


def zero_like(x: E) -> E:
    return x.full(0)


def or_zero(t: Maybe, like: E) -> E:
    return zero_like(like) if t is None else t


def nonzero_or_one(x: E) -> E:
    """`x`, or 1 where it is 0: a divisor for quotients whose numerator is then 0 too."""
    return x.call("eq", 0).select(1, x)


def choose(cond: E, yes: Maybe, no: Maybe) -> Maybe:
    """select() where a missing value is zero; selecting keeps an untaken NaN out."""
    if yes is None and no is None:
        return None
    return cond.select(0 if yes is None else yes, 0 if no is None else no)


def scalar_vjp(d: Elementwise | Vjp, g: E, args: Sequence[E], out: E) -> list[Maybe]:
    """The adjoints of a scalar operation's arguments."""
    if isinstance(d, Vjp):
        return list(d.rule(g, args, out))
    return [None if p is None else g * p for p in d.partials(args, out)]


def scalar_jvp(d: Elementwise | Vjp, tangents: Sequence[Maybe], args: Sequence[E], out: E) -> Maybe:
    """The tangent of a scalar operation's result."""
    if isinstance(d, Vjp):
        assert d.jvp is not None
        return d.jvp(tangents, args, out)
    parts = d.partials(args, out)
    return total(
        [None if p is None or t is None else t * p for p, t in zip(parts, tangents, strict=True)]
    )


def by_component(scalar: Op) -> Vjp:
    """The derivative of the vector form of a scalar operation."""
    d = scalar.derivative
    assert not isinstance(d, NoDerivative)

    def rule(g: E, args: Sequence[E], out: E) -> list[Maybe]:
        columns = [components(a) for a in args]
        found: list[list[Maybe]] = [
            scalar_vjp(d, gi, list(ai), oi)
            for gi, oi, *ai in zip(components(g), components(out), *columns, strict=True)
        ]
        return [_gather(a, [row[k] for row in found]) for k, a in enumerate(args)]

    def jvp(tangents: Sequence[Maybe], args: Sequence[E], out: E) -> Maybe:
        columns = [components(a) for a in args]
        split = [None if t is None else components(t) for t in tangents]
        found: list[Maybe] = [
            scalar_jvp(d, [None if t is None else t[i] for t in split], [c[i] for c in columns], oi)
            for i, oi in enumerate(components(out))
        ]
        return _gather(out, found)

    return Vjp(rule, "general", jvp)


def _gather(like: E, parts: Sequence[Maybe]) -> Maybe:
    if all(p is None for p in parts):
        return None
    t = like.type
    assert isinstance(t, (VectorType, MatrixType))
    return construct(t, [like.lit(0) if p is None else p for p in parts])
