"""Every builtin, every overload, every float type: values, special values, derivatives.

The lists of what there is come from the registry, what each gives from `tests.oracles`: a
builtin without an oracle or without a domain fails here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine import ad
from engine.builtins.composite import COMPOSITES
from engine.builtins.queries import QUERIES
from engine.builtins.special import SPECIAL
from engine.builtins.stubs import BUILTINS, KERNEL_ONLY
from engine.ir import interp
from engine.ir.ops import OPS, Elementwise, NoDerivative
from engine.lang.types import FLOAT16, FLOAT32, ArrayType, ScalarType, is_float, scalar_of, shape_of
from tests import oracles
from tests.backend.signatures import OF_THE_LAUNCH, Signature
from tests.backend.signatures import signatures as operation_signatures
from tests.overloads import (
    OVERLOADS,
    SMOOTH,
    Overload,
    compare,
    differences,
    exact,
    expected,
    gradients,
    kernel_of,
    memory,
    narrowed,
    sample,
    seeded,
    size_of,
)

OPERATIONS = operation_signatures()
POINTS = 6
# Without the largest, whose parts are tested alone.
SMALL = [o for o in SMOOTH if o.composite.user != "curlnoise"]
SPECIALS = (0.0, -0.0, math.inf, -math.inf, math.nan)


def test_every_builtin_is_in_the_table() -> None:
    assert set(OPS) - set(OF_THE_LAUNCH) == set(oracles.OPERATIONS)
    public = {name for name in COMPOSITES if not name.startswith("_")}
    assert public == set(oracles.COMPOSED)
    assert {s.op for s in OPERATIONS} == set(oracles.OPERATIONS)
    # What users can call is an operation, a composite, or has tests of its own.
    named = (
        {op.user for op in OPS.values()} | public | set(SPECIAL) | set(KERNEL_ONLY) | set(QUERIES)
    )
    aliases = {"pos", "select", "mul", "inverse_approx"}
    from engine.builtins.generic_constructors import GENERIC_CONSTRUCTORS, IDENTITIES

    assert set(BUILTINS) <= named | aliases | set(GENERIC_CONSTRUCTORS) | set(IDENTITIES)


@pytest.mark.parametrize(("table", "like"), [(OPS, "sin"), (COMPOSITES, "norm_l1")])
def test_a_builtin_without_an_oracle_is_missed(
    table: dict[str, Any], like: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(table, "novel", table[like])
    with pytest.raises(AssertionError):
        test_every_builtin_is_in_the_table()


def test_every_derivative_has_a_domain() -> None:
    for name, op in OPS.items():
        if not isinstance(op.derivative, NoDerivative):
            assert op.domain.intervals, name
    for o in SMOOTH:
        assert o.composite.domain.intervals, str(o)


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
        what = (signature, row)
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
        what = (overload, row)
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


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("overload", SMOOTH, ids=str)
def test_composite_tells_of_nan(overload: Overload) -> None:
    """NaN in a component that counts comes out again; types and shapes stay with infinities."""
    o, fn = overload, overload.function
    row = sample(o, seeded(o))

    def given(k: int, at: Any, x: Any) -> list[Any]:
        changed = np.array(row[k])
        changed[at] = x
        got = interp.evaluate(fn, [*row[:k], changed[()], *row[k + 1 :]])
        assert [np.asarray(g).dtype for g in got] == [scalar_of(r).numpy for r in fn.results]
        assert [np.shape(g) for g in got] == [shape_of(r) for r in fn.results]  # type: ignore[arg-type]
        return [np.asarray(g) for g, r in zip(got, fn.results, strict=True) if is_float(r)]

    for k, t in enumerate(o.types):
        if not is_float(t) or isinstance(t, ArrayType):
            continue
        for at in np.ndindex(shape_of(t)):
            x = np.asarray(row[k])[at]
            given(k, at, math.inf)
            given(k, at, -math.inf)
            counts = [
                not np.array_equal(a, b)
                for y in (x + 0.01, 0.7 * x)
                for a, b in zip(given(k, at, x), given(k, at, y), strict=True)
            ]
            if any(counts):
                assert any(np.isnan(g).any() for g in given(k, at, math.nan)), (k, at)


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


@pytest.mark.parametrize("scalar", [FLOAT32, FLOAT16], ids=str)
@pytest.mark.parametrize("overload", SMALL, ids=str)
def test_derivatives_in_narrow_types(overload: Overload, scalar: ScalarType) -> None:
    """The adjoint keeps the type, and is the float64 one up to its rounding."""
    narrow = narrowed(overload, scalar)
    assert narrow in OVERLOADS
    rng = seeded(overload)
    row = sample(narrow, rng)
    g = [rng.choice([-1.0, 0.5, 2.0], shape_of(t)) if is_float(t) else None
         for t in overload.function.results]  # fmt: skip
    wide = [np.asarray(a, float)[()] if is_float(t) else a
            for a, t in zip(row, overload.types, strict=True)]  # fmt: skip
    exact_ones = gradients(overload, wide, g)
    scale = max(1.0, *(float(np.max(np.abs(a))) for a in exact_ones.values()))
    for name, got in gradients(narrow, row, g).items():
        assert got.dtype == scalar.numpy
        eps = float(np.finfo(scalar.numpy).eps)
        np.testing.assert_allclose(
            got.astype(float), exact_ones[name], rtol=0, atol=256 * eps * scale
        )


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above sees a rule that is off by one part in ten thousand."""

    o = next(x for x in SMOOTH if x.composite.func.__name__ == "norm_pseudo_huber")
    wrong = Elementwise(lambda a, y: (0.50005 / y,))
    monkeypatch.setitem(OPS, "sqrt", replace(OPS["sqrt"], derivative=wrong))
    with pytest.raises(AssertionError):
        test_derivatives_of_composite(o)
