"""Every derivative rule against float64 central differences, and forward against reverse mode."""

from __future__ import annotations

import itertools
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import engine.builtins  # noqa: F401
from engine.ir.builder import E
from engine.ir.ops import OPS, Elementwise, NoDerivative, Op, Vjp
from engine.lang.types import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT32,
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
from tests.packed import index_limit, packed_types

RNG_SEED = 20240607


def pool(s: ScalarType) -> list[Type]:
    return [
        s,
        VectorType(s, 2), VectorType(s, 3), VectorType(s, 4), VectorType(s, 5),
        MatrixType(s, 2, 2), MatrixType(s, 3, 3), MatrixType(s, 4, 4), MatrixType(s, 2, 3),
        MatrixType(s, 3, 2), quat_type(s), transform_type(s),
    ]  # fmt: skip


def signatures(s: ScalarType) -> list[tuple[str, tuple[Type, ...], Type]]:
    """(operation, argument types, result type) of every differentiable overload over a float."""
    out: list[tuple[str, tuple[Type, ...], Type]] = []
    v3, m23 = VectorType(s, 3), MatrixType(s, 2, 3)
    explicit: dict[str, list[tuple[tuple[Type, ...], Type]]] = {
        "cast": [
            ((t,), u)
            for o in (FLOAT32, FLOAT64)
            for t, u in (
                (s, o),
                (v3, VectorType(o, 3)),
                (m23, MatrixType(o, 2, 3)),
                (quat_type(s), VectorType(o, 4)),
            )
        ],
        "construct": [((s,) * 3, v3), ((s,) * 6, m23)],
        "fill": [((s,), v3), ((s,), m23)],
        "extract": [((v3, INT32), s), ((quat_type(s), INT32), s), ((m23, INT32, INT32), s)],
        "extract_row": [((m23, INT32), v3)],
        "insert": [
            ((v3, INT32, s), v3),
            ((m23, INT32, INT32, s), m23),
            ((transform_type(s), INT32, s), transform_type(s)),
        ],
        "insert_row": [((m23, INT32, v3), m23)],
    }
    for name, op in OPS.items():
        if isinstance(op.derivative, NoDerivative):
            continue
        if name in explicit:
            out += [(name, args, result) for args, result in explicit[name]]
            continue
        for packed in packed_types(name, s):
            result = op.infer(packed)
            assert result is not None
            out.append((name, packed, result))
        conditions: list[Type] = [BOOL, INT32]
        kinds = [pool(s)] * len(op.domain.intervals)
        if name in ("select", "where_int"):
            kinds = [conditions, *kinds[1:]]
        for types in itertools.product(*kinds):
            result = op.infer(types)
            if result is not None:
                out.append((name, types, result))
    return out


def differentiable(s: ScalarType) -> list[Any]:
    return [
        pytest.param(name, types, result, id=f"{name}({','.join(map(str, types))})->{result}")
        for name, types, result in signatures(s)
    ]


def _apart(values: Any) -> bool:
    """Whether no two are close, neither with the same sign nor with different ones."""
    v = np.abs(values)
    return bool(np.min(np.abs(v[:, None] - v) + 9 * np.eye(len(v))) > 0.2)


def _symmetric_apart(a: Any) -> bool:
    return _apart(np.linalg.eigvalsh(a + a.T))


def _singular_apart(a: Any) -> bool:
    return _apart(np.linalg.svd(a)[1])


DECOMPOSED = {
    "svd2": _singular_apart,
    "svd3": _singular_apart,
    "eig3": _symmetric_apart,
    "qr3": lambda a: abs(np.linalg.det(a)) > 0.5,
}


def sample(name: str, types: tuple[Type, ...], rng: Any, dtype: Any = np.float64) -> list[Any]:
    """Random arguments inside the operation's domain, away from ties and singular matrices."""
    while True:
        args = [_one(name, types, k, rng, dtype) for k in range(len(types))]
        if _safe(name, args):
            return args


def _one(name: str, types: tuple[Type, ...], k: int, rng: Any, dtype: Any) -> Any:
    t = types[k]
    if t == BOOL:
        return np.bool_(rng.random() < 0.5)
    if t == INT32:
        limit = shape_of(types[0])[k - 1] if k else 2  # type: ignore[arg-type]
        limit = index_limit(name) or limit
        return np.int32(rng.integers(limit))
    intervals = OPS[name].domain.intervals
    low, high = intervals[min(k, len(intervals) - 1)]
    return rng.uniform(low, high, shape_of(t)).astype(dtype)[()]  # type: ignore[arg-type]


def _safe(name: str, given: list[Any]) -> bool:
    args = [a.astype(float) if a.dtype.kind == "f" else a for a in given]
    if name in ("determinant", "inverse"):
        return bool(0.5 < abs(np.linalg.det(args[0])))
    if name in DECOMPOSED:
        return DECOMPOSED[name](args[0])
    if name.startswith(("min", "max", "clamp")):
        values = np.sort(np.stack(args, -1) if len(args) > 1 else args[0], -1)
        return bool(np.all(np.diff(values, axis=-1) > 1e-2))
    return True


def cotangent(t: Type, rng: Any, dtype: Any) -> Any:
    return rng.uniform(-1, 1, shape_of(t)).astype(dtype)[()]  # type: ignore[arg-type]


def meaning(name: str, result: Type, args: list[Any]) -> Any:
    op = OPS[name]
    return op.numpy(result, *args) if op.explicit else op.numpy(*args)


def differences(name: str, result: Type, args: list[Any], g: Any, k: int) -> Any:
    """The gradient of g . f by argument k, by central differences."""
    x = np.asarray(args[k], np.float64)
    out = np.empty(x.shape)
    for at in np.ndindex(x.shape):
        h = 1e-5 * max(1.0, abs(x[at]))
        ends = []
        for step in (h, -h):
            moved = x.copy()
            moved[at] += step
            value = meaning(name, result, [*args[:k], moved[()], *args[k + 1 :]])
            ends.append(np.sum(np.asarray(value) * g))
        out[at] = (ends[0] - ends[1]) / (2 * h)
    return out


def seeded(name: str) -> Any:
    return np.random.default_rng([RNG_SEED, zlib.crc32(name.encode())])


@pytest.mark.parametrize(("name", "types", "result"), differentiable(FLOAT64))
def test_adjoint_against_differences(
    name: str, types: tuple[Type, ...], result: Type, pull: Any
) -> None:
    # A cast to float32 rounds: differences see the rounding, so they are coarse there.
    close = 1e-6 if scalar_of(result) == FLOAT64 else 2e-2
    rng = seeded(name)
    for _ in range(5):
        args = sample(name, types, rng)
        g = cotangent(result, rng, np.float64)
        got = pull(name, types, result, args, g)
        for k, t in enumerate(types):
            if not is_float(t):
                assert got[k] is None
                continue
            expected = differences(name, result, args, g, k)
            value = np.zeros_like(expected) if got[k] is None else got[k]
            scale = max(1.0, float(np.max(np.abs(expected))))
            np.testing.assert_allclose(value, expected, rtol=close, atol=1e-2 * close * scale)


@pytest.mark.parametrize(
    ("name", "types", "result"), [*differentiable(FLOAT32), *differentiable(FLOAT16)]
)
def test_adjoint_in_narrow_types(
    name: str, types: tuple[Type, ...], result: Type, pull: Any
) -> None:
    """The same rule in float32 or float16 keeps the dtype and comes close to the float64 one."""
    rng = seeded(name)
    narrow = next(scalar_of(t).numpy for t in types if is_float(t))
    close = 2e-4 if narrow == np.float32 else 0.1
    args = sample(name, types, rng, narrow)
    g = cotangent(result, rng, scalar_of(result).numpy)
    got = pull(name, types, result, args, g)
    wide = tuple(_widened(t) for t in types)
    wide_args = [
        a.astype(np.float64) if is_float(t) else a for a, t in zip(args, types, strict=True)
    ]
    exact = pull(name, wide, _widened(result), wide_args, g.astype(np.float64))
    for a, b, t in zip(got, exact, types, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == scalar_of(t).numpy
            scale = max(1, np.max(np.abs(b)))
            np.testing.assert_allclose(a, b, rtol=close, atol=0.1 * close * scale)


def _widened(t: Type) -> Type:
    if not is_float(t):
        return t
    if isinstance(t, VectorType):
        return VectorType(FLOAT64, t.length)
    return MatrixType(FLOAT64, t.rows, t.cols) if isinstance(t, MatrixType) else FLOAT64


@pytest.mark.parametrize(("name", "types", "result"), differentiable(FLOAT64))
def test_forward_mode_is_the_transpose(
    name: str, types: tuple[Type, ...], result: Type, pull: Any, push: Any
) -> None:
    """g . (J t) = (J' g) . t, for all arguments together and one by one."""
    rng = seeded(name)
    floats = [k for k, t in enumerate(types) if is_float(t)]
    for moving in (floats, *[[k] for k in floats]):
        args = sample(name, types, rng)
        g = cotangent(result, rng, scalar_of(result).numpy)
        t = [
            cotangent(types[k], rng, np.float64) if k in moving else None for k in range(len(types))
        ]
        back = pull(name, types, result, args, g)
        forth = push(name, types, result, args, t)
        left = 0.0 if forth is None else np.sum(g * np.asarray(forth))
        right = sum(np.sum(back[k] * t[k]) for k in moving if back[k] is not None)
        close = 1e-5 if scalar_of(result) == FLOAT32 else 1e-11
        np.testing.assert_allclose(left, right, rtol=close, atol=close)


def test_every_operation_is_covered() -> None:
    covered = {name for name, _, _ in signatures(FLOAT64)}
    rules = {name for name, op in OPS.items() if isinstance(op.derivative, (Elementwise, Vjp))}
    assert covered == rules


def spoiled(d: Elementwise | Vjp, forward: bool) -> Elementwise | Vjp:
    """The rule, off by one part in ten thousand in one of its modes."""

    def off(e: E | None) -> E | None:
        if e is None:
            return None
        return e * 1.0001 if isinstance(e.type, ScalarType) else e.call("scale", e.lit(1.0001))

    if isinstance(d, Elementwise):
        return Elementwise(lambda a, y: [off(p) for p in d.partials(a, y)])
    if not forward:
        return Vjp(lambda g, a, y: [off(p) for p in d.rule(g, a, y)], d.kind, d.jvp)
    jvp = d.jvp
    assert jvp is not None
    return Vjp(d.rule, d.kind, lambda t, a, y: off(jvp(t, a, y)))


RULES = list({s[0]: s for s in signatures(FLOAT64)}.values())


@pytest.mark.parametrize(("name", "types", "result"), RULES, ids=[s[0] for s in RULES])
def test_spoiled_rules_are_found(
    name: str, types: tuple[Type, ...], result: Type, pull: Any, push: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    op = OPS[name]
    d = op.derivative
    assert isinstance(d, (Elementwise, Vjp))
    result = _widened(result)
    monkeypatch.setitem(OPS, name, replace(op, derivative=spoiled(d, forward=False)))
    with pytest.raises(AssertionError):
        test_adjoint_against_differences(name, types, result, pull)
    if isinstance(d, Vjp) and d.jvp is not None:
        monkeypatch.setitem(OPS, name, replace(op, derivative=spoiled(d, forward=True)))
        with pytest.raises(AssertionError):
            test_forward_mode_is_the_transpose(name, types, result, pull, push)


FLAT = [
    (name, op) for name, op in OPS.items()
    if isinstance(op.derivative, NoDerivative) and op.domain.intervals
]  # fmt: skip


@pytest.mark.parametrize(("name", "op"), FLAT, ids=[name for name, _ in FLAT])
def test_without_derivative_is_flat(name: str, op: Op) -> None:
    """What is said to have no derivative is constant around random points."""
    count = len(op.domain.intervals)
    tested = 0
    for types in itertools.product(pool(FLOAT64), repeat=count):
        result = op.infer(types)
        if result is None:
            continue
        rng = seeded(name)
        args = sample(name, types, rng)
        before = meaning(name, result, args)
        after = meaning(name, result, [a + 1e-9 for a in args])
        np.testing.assert_array_equal(before, after)
        tested += 1
    assert tested
