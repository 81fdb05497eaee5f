"""Every overload of every composite builtin, with arguments to try it on.

The list comes from the registry: `pool` has types of every kind, and what a composite accepts
of them is an overload.
"""

from __future__ import annotations

import inspect
import itertools
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from engine import ad
from engine.builtins.composite import COMPOSITES, Composite
from engine.frontend import lower_composite
from engine.ir import interp
from engine.ir.builder import Builder, Names
from engine.ir.nodes import Call, Const, Function, Store, Var
from engine.lang.types import (
    FLOAT64,
    INT32,
    INT64,
    SCALARS,
    UINT32,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    VectorType,
    is_float,
    quat_type,
    scalar_of,
    shape_of,
    transform_type,
    with_scalar,
)
from tests import oracles
from tests.backend.signatures import signatures as operation_signatures
from tests.oracles import Oracle

FLOATS = [t for t in SCALARS.values() if t.kind == "f"]
OPERATIONS = operation_signatures()


# ---- what there is


@dataclass(frozen=True)
class Overload:
    """A composite for argument types."""

    composite: Composite
    types: tuple[Type, ...]

    def __str__(self) -> str:
        c = self.composite
        name = c.func.__name__ if c.func.__name__ == c.user else f"{c.user}:{c.func.__name__}"
        return f"{name}({', '.join(map(str, self.types))})"

    @property
    def function(self) -> Function:
        """Its IR."""
        return lower_composite(self.composite, self.types)

    @property
    def oracle(self) -> Oracle:
        return oracles.COMPOSED[self.composite.user]


def pool(s: ScalarType, arity: int) -> list[Type]:
    """Types to try; fewer where there are many arguments."""
    vectors: list[Type] = [VectorType(s, n) for n in (2, 3, 4)]
    few: list[Type] = [s, *vectors, INT32, UINT32]
    if arity > 4:
        return few
    matrices = [MatrixType(s, n, n) for n in (2, 3, 4)]
    few += [*matrices, VectorType(s, 6), quat_type(s), transform_type(s), ArrayType(s, 1)]
    if arity == 4:
        return [*few, ArrayType(INT32, 1)]
    whole = [VectorType(INT32, 3), MatrixType(INT32, 2, 2), ArrayType(INT32, 1), INT64]
    return [*few, MatrixType(s, 2, 3), *whole]


def overloads() -> Iterator[Overload]:
    for name, group in COMPOSITES.items():
        for c in () if name.startswith("_") else group:
            arity = len(inspect.signature(c.func).parameters)
            found: dict[Overload, None] = {}
            for s in FLOATS:
                for types in itertools.product(pool(s, arity), repeat=arity):
                    if c.accepts(types):
                        found[Overload(c, types)] = None
            assert found, f"no types found for {name} ({c.func.__name__})"
            yield from found


OVERLOADS = list(overloads())


def _smooth() -> list[Overload]:
    """Those with derivatives, over float64; one of those that differ in integers alone."""
    found: dict[tuple[Composite, tuple[Type, ...]], Overload] = {}
    for o in OVERLOADS:
        moving = [t for t in o.types if is_float(t) and not isinstance(t, ArrayType)]
        floats = [t for t in (*o.types, *o.function.results) if is_float(t)]
        results = any(map(is_float, o.function.results))
        if moving and results and {scalar_of(t) for t in floats} == {FLOAT64}:
            found.setdefault((o.composite, tuple(moving)), o)
    return list(found.values())


SMOOTH = _smooth()


# ---- arguments


def narrowed(o: Overload, s: ScalarType) -> Overload:
    """The same over another float type."""
    return Overload(
        o.composite,
        tuple(
            with_scalar(t, s) if is_float(t) and not isinstance(t, ArrayType) else t
            for t in o.types
        ),
    )


def seeded(what: object) -> np.random.Generator:
    return np.random.default_rng([20240715, zlib.crc32(str(what).encode())])


def sample(o: Overload, rng: np.random.Generator) -> list[Any]:
    """Random arguments inside the domain, away from its kinks."""
    domain = o.composite.domain
    while True:
        args = [_one(o, k, rng) for k in range(len(o.types))]
        if o.oracle.sample is not None:
            args = o.oracle.sample(args)
        floats = [np.ravel(a) for a, t in zip(args, o.types, strict=True) if is_float(t)]
        flat = np.concatenate([*floats, [9.0]]).astype(float)
        if all(np.min(np.abs(flat - x)) > 1e-3 for x in (*domain.kinks, *domain.singular)):
            return args


def _one(o: Overload, k: int, rng: np.random.Generator) -> Any:
    t, intervals = o.types[k], o.composite.domain.intervals or ((-2.0, 2.0),)
    kind = scalar_of(t)
    if isinstance(t, ArrayType):
        steps = rng.uniform(0.1, 1, 7)
        return (np.cumsum(steps) / steps.sum()).astype(kind.numpy)
    low, high = intervals[min(k, len(intervals) - 1)]
    if kind.kind == "f":
        return rng.uniform(low, high, shape_of(t)).astype(kind.numpy)[()]
    if not o.composite.domain.intervals:
        low, high = (1, 3) if o.composite.user == "lower_bound" else (0, 2**31 - 1)
    return rng.integers(int(low), int(high), shape_of(t), kind.numpy, endpoint=True)[()]


def exact(a: Any) -> Any:
    """The value as the oracles take it."""
    data = np.asarray(a)
    if data.dtype.kind == "f":
        return data.astype(float)[()]
    if data.dtype.kind == "b":
        return data[()] if data.ndim else bool(data)
    return np.array(data.tolist(), object) if data.ndim else int(data)


# ---- comparison


def compare(got: Sequence[Any], want: Sequence[Any], types: Sequence[Type], size: float,
            oracle: Oracle, what: Any) -> None:  # fmt: skip
    assert len(got) == len(want) == len(types), what
    for a, b, t in zip(got, want, types, strict=True):
        kind = scalar_of(t)
        assert np.asarray(a).dtype == kind.numpy, what
        assert np.shape(a) == shape_of(t) == np.shape(b), what  # type: ignore[arg-type]
        if kind.kind in "iu":
            wrapped = [int(x) & (2**kind.bits - 1) for x in np.ravel(np.asarray(b, object))]
            given = [int(x) & (2**kind.bits - 1) for x in np.ravel(a)]
            assert given == wrapped, what
            continue
        if kind.kind == "b":
            assert np.all(np.asarray(a) == np.asarray(b, bool)), what
            continue
        eps, tiny = _RANGE[kind.numpy]
        with np.errstate(over="ignore"):
            rounded = np.asarray(b, float).astype(kind.numpy).astype(float)
        given = np.asarray(a, float)
        sizes = np.abs(rounded)
        scale = max(float(sizes.max(initial=0, where=np.isfinite(sizes))),
                    0.0 if oracle.degree is None else size)  # fmt: skip
        with np.errstate(invalid="ignore"):
            near = np.abs(given - rounded) <= oracle.units * eps * scale + tiny
        same = (given == rounded) | (np.isnan(given) & np.isnan(rounded))
        if not np.all(near | same):
            raise AssertionError(
                f"{what[0]} of {what[1]}: {given.tolist()}, but it is {rounded.tolist()}"
            )


_RANGE = {t.numpy: (float(np.finfo(t.numpy).eps), float(np.finfo(t.numpy).tiny)) for t in FLOATS}


def expected(oracle: Oracle, args: Sequence[Any], results: Sequence[Type], types: Any) -> list[Any]:
    assert oracle.value is not None
    given = list(args) if oracle.raw else [exact(a) for a in args]
    with np.errstate(all="ignore"):
        out = oracle.value(*([types] if _takes_type(oracle.value) else []), *given)
    return list(out) if len(results) > 1 else [out]


@cache
def _takes_type(f: Any) -> bool:
    try:
        return next(iter(inspect.signature(f).parameters), "") == "_type"
    except ValueError:  # a ufunc or a builtin function
        return False


def size_of(args: Sequence[Any], degree: int | None) -> float:
    values = [np.abs(np.asarray(a, float)).max(initial=0) for a in args if np.size(a)]
    finite = [v for v in values if np.isfinite(v)]
    return max(1.0, *finite) ** (degree or 0) if finite else 1.0


# ---- derivatives of composites; those of operations are in test_derivatives.py


def kernel_of(o: Overload) -> tuple[Function, frozenset[str]]:
    """A kernel that calls the composite on its thread's elements, and what has a gradient."""
    fn = o.function
    params = [
        Var(f"p{k}", t if isinstance(t, ArrayType) else ArrayType(t, 1))
        for k, t in enumerate(o.types)
    ]
    outs = [Var(f"r{k}", ArrayType(t, 1)) for k, t in enumerate(fn.results)]
    b = Builder(Names([v.name for v in (*params, *outs)]))
    i = b.op("tid", Const(0, INT32), Const(1, INT32), base="i")
    args = [p if isinstance(t, ArrayType) else b.load(p, [i], [], t)
            for p, t in zip(params, o.types, strict=True)]  # fmt: skip
    dsts = tuple(b.temp(t) for t in fn.results)
    b.add(Call(dsts, fn, tuple(args)))
    for out, d in zip(outs, dsts, strict=True):
        b.add(Store(out, (i,), d))
    kernel = Function(f"call_{o.composite.func.__name__}", (*params, *outs), (), b.block(), True)
    moving = [p for p, t in zip(params, o.types, strict=True) if not isinstance(t, ArrayType)]
    return kernel, frozenset(v.name for v in (*moving, *outs) if is_float(v.type))


def memory(o: Overload, row: Sequence[Any]) -> list[Any]:
    """The arguments and blank results, as the kernel's arrays."""
    given = [np.array(a) if isinstance(t, ArrayType) else np.array([a])
             for a, t in zip(row, o.types, strict=True)]  # fmt: skip
    blank = [np.zeros((1, *shape_of(t)), scalar_of(t).numpy) for t in o.function.results]
    return [*given, *blank]


def differences(o: Overload, row: Sequence[Any], k: int, g: Sequence[Any]) -> Any:
    """The gradient of g . f by argument k: central differences, extrapolated once."""
    fn = o.function
    x = np.asarray(row[k], float)
    out = np.empty(x.shape)

    def weighed(value: Any) -> float:
        got = interp.evaluate(fn, [*row[:k], value[()], *row[k + 1 :]])
        return math.fsum(float(np.sum(a * w)) for a, w in zip(got, g, strict=True) if w is not None)

    for at in np.ndindex(x.shape):
        slopes = []
        for h in (2e-5, 1e-5):
            step = np.zeros(x.shape)
            step[at] = h * max(1.0, abs(x[at]))
            slopes.append((weighed(x + step) - weighed(x - step)) / (2 * step[at]))
        out[at] = (4 * slopes[1] - slopes[0]) / 3
    return out


def gradients(o: Overload, row: Sequence[Any], g: Sequence[Any]) -> dict[str, Any]:
    """The adjoint of the composite, interpreted."""
    kernel, wrt = kernel_of(o)
    adjoint = ad.reverse(ad.prepare(kernel), wrt, frozenset())
    given = memory(o, row)
    names = [p.name for p in kernel.params]
    grads = {n: np.zeros_like(a) for n, a in zip(names, given, strict=True) if n in wrt}
    for k, w in enumerate(g):
        if w is not None:
            grads[f"r{k}"][0] = w
    interp.run(adjoint.fn, [*given, *(grads[n] for n in names if n in wrt)], 1)
    return {n: a[0] for n, a in grads.items() if n.startswith("p")}
