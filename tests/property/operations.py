"""Every differentiable operation and composite, for random programs to choose from.

Values in random programs lie between -1 and 1, component by component: an operation's
arguments are moved from there into its domain, its result is squashed back.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from engine.builtins.composite import COMPOSITES, Composite
from engine.frontend import lower_composite
from engine.ir import nodes as n
from engine.ir.builder import Builder, const
from engine.ir.ops import OPS, Domain, NoDerivative
from engine.lang.types import (
    FLOAT64,
    INT32,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    VectorType,
    is_float,
    scalar_of,
)

F = FLOAT64
V3 = VectorType(F, 3)
M22 = MatrixType(F, 2, 2)
V2 = VectorType(F, 2)
M33 = MatrixType(F, 3, 3)
HELD: tuple[Type, ...] = (F, V3, M22)  # what programs have variables of
QUAT = VectorType(F, 4, tag="quat")
TRANSFORM = VectorType(F, 7, tag="transform")
POOL: tuple[Type, ...] = (*HELD, V2, M33, QUAT, TRANSFORM)  # what operations are tried on

# Types of arguments by the operation alone: programs make their components one by one.
_LEFT_OUT = {"select", "where_int", "copy", "insert", "insert_row", "extract", "extract_row"}
# Its derivative is not that of its meaning: what the user's replay says counts there.
_LEFT_OUT |= {"replayed"}
# Matrices of these are kept away from singular ones.
_REGULAR = {"determinant", "inverse"}
# And of these from ones with equal singular values or eigenvalues, where the factors have no
# derivative: the factors of a factor, scaled, would always be such ones.
_SPREAD = {"svd2", "svd3", "eig3"}


@dataclass(frozen=True)
class Choice:
    """One operation or composite for certain argument types."""

    name: str
    types: tuple[Type, ...]
    result: Type
    domain: Domain
    emit: Callable[[Builder, Sequence[n.Atom]], n.Atom]


@functools.cache
def choices() -> dict[Type, list[Choice]]:
    """All of them, by the type of the result, in an order that never changes."""
    out: dict[Type, list[Choice]] = {t: [] for t in HELD}
    for c in (*_operations(), *_composites()):
        if c.result in HELD:
            out[c.result].append(c)
        else:
            out[F].append(replace(c, result=F, emit=functools.partial(_size, c)))
    return out


def _size(c: Choice, b: Builder, args: Sequence[n.Atom]) -> n.Atom:
    """A number for a result that there are no variables of."""
    got = c.emit(b, args)
    if isinstance(got.type, MatrixType):
        return b.op("ddot", got, got)
    assert isinstance(got.type, VectorType)
    total: n.Atom = const(0.0, F)
    for k in range(got.type.length):
        part = b.op("extract", got, const(k, INT32))
        total = b.op("add", total, b.op("mul", part, part))
    return total


def _tried(arity: int) -> Iterator[tuple[Type, ...]]:
    return itertools.product(POOL if arity < 4 else (F, V3), repeat=arity)


def _operations() -> list[Choice]:
    out = []
    for name, op in sorted(OPS.items()):
        if op.explicit or name in _LEFT_OUT or isinstance(op.derivative, NoDerivative):
            continue
        for types in _tried(len(op.domain.intervals)):
            result = op.infer(types)
            if result is not None and _carries(result):
                out.append(Choice(name, types, result, op.domain, functools.partial(_op, name)))
    return out


def _op(name: str, b: Builder, args: Sequence[n.Atom]) -> n.Atom:
    return b.op(name, *args)


def _composites() -> list[Choice]:
    out = []
    for name, group in sorted(COMPOSITES.items()):
        for c in group if not name.startswith("_") else ():
            arity = len(inspect.signature(c.func).parameters)
            for types in _tried(arity):
                if not c.updates and c.accepts(types):
                    fn = lower_composite(c, types)
                    if fn.results and _carries(fn.results[0]) and scalar_of(fn.results[0]) == F:
                        call = functools.partial(_call, c)
                        out.append(Choice(name, types, fn.results[0], c.domain, call))
    return out


def _call(c: Composite, b: Builder, args: Sequence[n.Atom]) -> n.Atom:
    fn = lower_composite(c, [a.type for a in args])
    dsts = tuple(b.temp(t) for t in fn.results)
    b.add(n.Call(dsts, fn, tuple(args), b.span))
    return dsts[0]


def _carries(t: Type) -> bool:
    return not isinstance(t, ArrayType) and is_float(t)


def apply(b: Builder, c: Choice, args: Sequence[n.Atom]) -> n.Atom:
    """The operation on values between -1 and 1; so is its result."""
    moved = []
    for k, a in enumerate(args):
        intervals = c.domain.intervals or ((-2.0, 2.0),)
        low, high = intervals[min(k, len(intervals) - 1)]
        moved.append(_into(b, a, low, high))
        if c.name in _REGULAR:
            assert isinstance(a.type, MatrixType)
            five = const(5.0, VectorType(F, a.type.rows))
            moved[k] = b.op("add", moved[k], b.op("diag", five))
        if c.name in _SPREAD:
            assert isinstance(a.type, MatrixType)
            apart = n.Const((3.0, 1.0, 7.0)[: a.type.rows], VectorType(F, a.type.rows))
            moved[k] = b.op("add", moved[k], b.op("diag", apart))
    return squash(b, c.emit(b, moved))


def _into(b: Builder, a: n.Atom, low: float, high: float) -> n.Atom:
    middle, half = (low + high) / 2, 0.45 * (high - low)
    scaled = b.op("mul" if isinstance(a.type, ScalarType) else "scale", a, const(half, F))
    return b.op("add", scaled, const(middle, a.type)) if middle else scaled  # type: ignore[arg-type]


def squash(b: Builder, x: n.Atom) -> n.Atom:
    """A smooth function into -1 to 1."""
    if isinstance(x.type, ScalarType):
        return b.op("sin", x)
    size = b.op("dot" if isinstance(x.type, VectorType) else "ddot", x, x)
    return b.op("unscale", x, b.op("sqrt", b.op("add", size, const(1.0, F))))
