"""Every builtin, every overload, every float type: values, special values, derivatives.

The lists of what there is come from the registry, what each gives from `tests.oracles`: a
builtin without an oracle or without a domain fails here.
"""

from __future__ import annotations

import inspect
import itertools
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from engine import ad
from engine.builtins.composite import COMPOSITES, Composite
from engine.builtins.special import SPECIAL
from engine.builtins.stubs import BUILTINS, KERNEL_ONLY
from engine.frontend.composites import library_func
from engine.ir import interp
from engine.ir.builder import Builder, Names
from engine.ir.nodes import Call, Const, Function, Store, Var
from engine.ir.ops import OPS, NoDerivative
from engine.lang.types import (
    FLOAT16,
    FLOAT64,
    INT32,
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
)
from tests import oracles
from tests.backend.signatures import OF_THE_LAUNCH, Signature
from tests.backend.signatures import signatures as operation_signatures
from tests.oracles import Oracle

FLOATS = [t for t in SCALARS.values() if t.kind == "f"]
POINTS = 6
SPECIALS = (0.0, math.inf, -math.inf, math.nan)
OPERATIONS = operation_signatures()


# ---- what there is


@dataclass(frozen=True)
class Overload:
    """A composite for argument types."""

    composite: Composite
    types: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.composite.func.__name__}({', '.join(map(str, self.types))})"

    @property
    def function(self) -> Function:
        return library_func(self.composite).instance(self.types)

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
    return [*few, *matrices, VectorType(s, 6), quat_type(s), transform_type(s), ArrayType(s, 1)]


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
SMOOTH = [
    o
    for o in OVERLOADS
    if any(is_float(t) and not isinstance(t, ArrayType) for t in o.types)
    and any(map(is_float, o.function.results))
    and {scalar_of(t) for t in (*o.types, *o.function.results) if is_float(t)} <= {FLOAT64}
]


def test_every_builtin_is_in_the_table() -> None:
    assert set(OPS) - set(OF_THE_LAUNCH) == set(oracles.OPERATIONS)
    public = {name for name in COMPOSITES if not name.startswith("_")}
    assert public == set(oracles.COMPOSED)
    assert {s.op for s in OPERATIONS} == set(oracles.OPERATIONS)
    # What users can call is an operation, a composite, or has tests of its own.
    named = {op.user for op in OPS.values()} | public | set(SPECIAL) | set(KERNEL_ONLY)
    aliases = {"pos", "select", "mul", "inverse_approx"}
    from engine.builtins.made import MADE, NEUTRAL

    assert set(BUILTINS) <= named | aliases | set(MADE) | set(NEUTRAL)


def test_every_derivative_has_a_domain() -> None:
    for name, op in OPS.items():
        if not isinstance(op.derivative, NoDerivative):
            assert op.domain.intervals, name
    for o in SMOOTH:
        assert o.composite.domain.intervals, str(o)


# ---- arguments


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
    return kind.numpy.type(rng.integers(int(low), int(high), endpoint=True))


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
            oracle: Oracle, what: str) -> None:  # fmt: skip
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
        eps = float(np.finfo(kind.numpy).eps)
        with np.errstate(over="ignore"):
            rounded = np.asarray(b, float).astype(kind.numpy).astype(float)
        finite = np.abs(rounded[np.isfinite(rounded)])
        scale = max(float(finite.max(initial=0)), 0.0 if oracle.degree is None else size)
        tiny = float(np.finfo(kind.numpy).tiny)
        np.testing.assert_allclose(
            np.asarray(a, float), rounded, rtol=0, atol=oracle.units * eps * scale + tiny,
            err_msg=what, equal_nan=True,
        )  # fmt: skip


def expected(oracle: Oracle, args: Sequence[Any], results: Sequence[Type], types: Any) -> list[Any]:
    assert oracle.value is not None
    given = list(args) if oracle.raw else [exact(a) for a in args]
    first = next(iter(inspect.signature(oracle.value).parameters), "") if _has_names(oracle) else ""
    with np.errstate(all="ignore"):
        out = oracle.value(*([types] if first == "_type" else []), *given)
    return list(out) if len(results) > 1 else [out]


def _has_names(oracle: Oracle) -> bool:
    try:
        inspect.signature(oracle.value)  # type: ignore[arg-type]
    except ValueError:  # a ufunc or a builtin function
        return False
    return True


def size_of(args: Sequence[Any], degree: int | None) -> float:
    values = [np.abs(np.asarray(a, float)).max(initial=0) for a in args if np.size(a)]
    finite = [v for v in values if np.isfinite(v)]
    return max(1.0, *finite) ** (degree or 0) if finite else 1.0


# ---- values


def awkward(signature: Signature, row: Sequence[Any]) -> bool:
    """Numbers whose products leave the range of their type, or lose it to rounding."""
    floats = [np.ravel(a) for a, t in zip(row, signature.args, strict=False) if is_float(t)]
    if not floats or (len(floats) == 1 and np.size(floats[0]) == 1):
        return False
    values = np.abs(np.concatenate(floats).astype(float))
    half = any(scalar_of(t) == FLOAT16 for t in signature.args)
    low, high = (1e-2, 1e2) if half else (1e-8, 1e8)
    inside = (values == 0) | ~np.isfinite(values) | ((values > low) & (values < high))
    return not bool(np.all(inside))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("signature", OPERATIONS, ids=str)
def test_operation(signature: Signature) -> None:
    """Random, large, small and special arguments of every type."""
    op, oracle = OPS[signature.op], oracles.OPERATIONS[signature.op]
    arguments = signature.arguments()
    tested = 0
    for i in range(len(arguments[0])):
        row = [a[i] for a in arguments[: len(signature.args)]]
        floats = [np.ravel(np.asarray(a, float)) for a, t in zip(row, signature.args, strict=True)
                  if is_float(t)]  # fmt: skip
        plain = bool(np.all(np.isfinite(np.concatenate([*floats, [0.0]]))))
        if awkward(signature, row) or (oracle.special and not plain):
            continue
        if oracle.sample is not None:
            row = oracle.sample(row)
        tested += 1
        got = op.numpy(signature.result, *row) if op.explicit else op.numpy(*row)
        what = f"{signature}({', '.join(str(a.tolist()) for a in row)})"
        if oracle.check is not None:
            scalar = scalar_of(signature.result)
            tolerance = oracle.units * float(np.finfo(scalar.numpy).eps)
            oracle.check([got], [exact(a) for a in row], tolerance)
            continue
        want = expected(oracle, row, (signature.result,), signature.result)
        compare([got], want, [signature.result], size_of(row, oracle.degree), oracle, what)
    assert tested >= 3 or signature.op == "identity"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("overload", OVERLOADS, ids=str)
def test_composite(overload: Overload) -> None:
    """Random arguments, and special ones where the oracle knows them."""
    oracle, fn = overload.oracle, overload.function
    rng = seeded(overload)
    rows = [sample(overload, rng) for _ in range(POINTS)]
    if not oracle.special:
        rows += list(_with_specials(overload, rows[0]))
    for row in rows:
        got = interp.evaluate(fn, row)
        what = f"{overload}: {[np.asarray(a).tolist() for a in row]}"
        if oracle.check is not None:
            scalar = scalar_of(next(t for t in overload.types if is_float(t)))
            tolerance = oracle.units * float(np.finfo(scalar.numpy).eps)
            oracle.check(got, [exact(a) for a in row], tolerance)
            continue
        want = expected(oracle, row, fn.results, overload.types)
        compare(got, want, fn.results, size_of(row, oracle.degree), oracle, what)


def _with_specials(o: Overload, row: Sequence[Any]) -> Iterator[list[Any]]:
    """The arguments with one component of one of them replaced by a special value."""
    for k, t in enumerate(o.types):
        if not is_float(t) or isinstance(t, ArrayType):
            continue
        for x in SPECIALS:
            changed = np.array(row[k])
            changed[(0,) * changed.ndim] = x
            yield [*row[:k], changed[()], *row[k + 1 :]]


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


@pytest.mark.parametrize("overload", SMOOTH, ids=str)
def test_derivatives_of_composite(overload: Overload) -> None:
    """Reverse mode against differences, and forward mode against reverse mode."""
    rng = seeded(overload)
    kernel, wrt = kernel_of(overload)
    names = [p.name for p in kernel.params]
    adjoint = ad.reverse(ad.prepare(kernel), wrt, frozenset())
    tangent = ad.tangent(kernel, wrt)
    assert not adjoint.sites
    results = overload.function.results
    for _ in range(2):
        row = sample(overload, rng)
        g = [rng.normal(size=shape_of(t)) if is_float(t) else None for t in results]
        v = {k: rng.normal(size=np.shape(row[k])) for k, t in enumerate(overload.types)
             if f"p{k}" in wrt}  # fmt: skip
        # Reverse.
        given = memory(overload, row)
        grads = {n: np.zeros_like(a) for n, a in zip(names, given, strict=True) if n in wrt}
        for k, w in enumerate(g):
            if w is not None:
                grads[f"r{k}"][0] = w
        interp.run(adjoint.fn, [*given, *(grads[n] for n in names if n in wrt)], 1)
        for k in v:
            want = differences(overload, row, k, g)
            scale = max(1.0, float(np.abs(want).max(initial=0)))
            np.testing.assert_allclose(grads[f"p{k}"][0], want, rtol=1e-6, atol=1e-6 * scale)
        # Forward.
        given = memory(overload, row)
        moves = {n: np.zeros_like(a) for n, a in zip(names, given, strict=True) if n in wrt}
        for k, d in v.items():
            moves[f"p{k}"][0] = d
        interp.run(tangent, [*given, *(moves[n] for n in names if n in wrt)], 1)
        left = sum(float(np.sum(moves[f"r{k}"][0] * w)) for k, w in enumerate(g) if w is not None)
        right = sum(float(np.sum(grads[f"p{k}"][0] * d)) for k, d in v.items())
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above sees a rule that is off by one part in ten thousand."""
    from dataclasses import replace

    from engine.ir.ops import Elementwise

    o = next(x for x in SMOOTH if x.composite.func.__name__ == "norm_pseudo_huber")
    wrong = Elementwise(lambda a, y: (0.50005 / y,))
    monkeypatch.setitem(OPS, "sqrt", replace(OPS["sqrt"], derivative=wrong))
    with pytest.raises(AssertionError):
        test_derivatives_of_composite(o)
