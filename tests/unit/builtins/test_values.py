"""Results of every operation: values, dtypes, and corner cases of integers and floats."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import engine.builtins  # noqa: F401
from engine.ir.ops import OPS, NoDerivative, Op, register
from engine.lang.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    SCALARS,
    UINT8,
    UINT64,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    VectorType,
    is_float,
    scalar_of,
    shape_of,
)
from tests.packed import packed_types

INF, NAN = math.inf, math.nan
I32 = np.iinfo(np.int32)

# (operation, arguments, expected), in float64.
FLOATS: list[tuple[str, tuple[float, ...], float]] = [
    ("add", (1.5, 2.0), 3.5), ("sub", (1.5, 2.0), -0.5), ("mul", (1.5, 2.0), 3.0),
    ("div", (3.0, 2.0), 1.5), ("div", (1.0, 0.0), INF), ("div", (0.0, 0.0), NAN),
    ("mod", (5.5, 2.0), 1.5), ("mod", (-5.5, 2.0), -1.5), ("mod", (1.0, 0.0), NAN),
    ("floordiv", (5.5, 2.0), 2.0), ("floordiv", (-5.5, 2.0), -3.0), ("neg", (1.5,), -1.5),
    ("pow", (2.0, 3.0), 8.0), ("pow", (0.0, 0.0), 1.0), ("pow", (-8.0, 1 / 3), NAN),
    ("sin", (0.5,), math.sin(0.5)), ("cos", (0.5,), math.cos(0.5)), ("tan", (0.5,), math.tan(0.5)),
    ("asin", (0.5,), math.asin(0.5)), ("acos", (0.5,), math.acos(0.5)),
    ("asin", (2.0,), math.pi / 2), ("acos", (-2.0,), math.pi), ("asin", (NAN,), NAN),
    ("atan", (0.5,), math.atan(0.5)), ("atan2", (1.0, -2.0), math.atan2(1, -2)),
    ("sinh", (0.5,), math.sinh(0.5)), ("cosh", (0.5,), math.cosh(0.5)),
    ("tanh", (0.5,), math.tanh(0.5)), ("exp", (0.5,), math.exp(0.5)), ("exp", (1e4,), INF),
    ("log", (0.5,), math.log(0.5)), ("log", (0.0,), -INF), ("log", (-1.0,), NAN),
    ("log2", (8.0,), 3.0), ("log10", (0.001,), -3.0), ("sqrt", (2.0,), math.sqrt(2)),
    ("sqrt", (-1.0,), NAN), ("cbrt", (-8.0,), -2.0), ("erf", (0.5,), math.erf(0.5)),
    ("erfc", (3.0,), math.erfc(3.0)), ("erfinv", (0.5,), 0.4769362762044699),
    ("erfinv", (1.0,), INF), ("erfinv", (-1.0,), -INF), ("erfinv", (1.5,), NAN),
    ("erfcinv", (0.5,), 0.4769362762044699), ("erfcinv", (1.5,), -0.4769362762044699),
    ("erfcinv", (0.0,), INF), ("erfcinv", (2.0,), -INF), ("erfcinv", (-0.5,), NAN),
    ("copysign", (3.0, -0.0), -3.0),
    ("frac", (2.75,), 0.75), ("frac", (-2.75,), -0.75), ("degrees", (math.pi,), 180.0),
    ("radians", (180.0,), math.pi), ("lerp", (1.0, 3.0, 0.25), 1.5),
    ("smoothstep", (0.0, 2.0, 0.5), 0.15625), ("smoothstep", (0.0, 2.0, 3.0), 1.0),
    ("smoothstep", (0.0, 2.0, -3.0), 0.0), ("smoothstep", (2.0, 0.0, 0.5), 0.84375),
    ("floor", (-1.5,), -2.0), ("ceil", (-1.5,), -1.0), ("trunc", (-1.5,), -1.0),
    ("round", (2.5,), 3.0), ("round", (-2.5,), -3.0), ("round", (0.49999999999999994,), 0.0),
    ("rint", (2.5,), 2.0), ("rint", (3.5,), 4.0), ("round", (INF,), INF), ("round", (NAN,), NAN),
    ("abs", (-1.5,), 1.5), ("sign", (-2.0,), -1.0), ("sign", (0.0,), 1.0), ("sign", (NAN,), 1.0),
    ("step", (-2.0,), 1.0), ("step", (0.0,), 0.0), ("nonzero", (0.0,), 0.0),
    ("nonzero", (NAN,), 1.0), ("min", (1.0, 2.0), 1.0), ("max", (1.0, 2.0), 2.0),
    ("min", (NAN, 2.0), 2.0), ("min", (2.0, NAN), 2.0), ("max", (NAN, NAN), NAN),
    ("max", (NAN, 2.0), 2.0), ("max", (2.0, NAN), 2.0), ("clamp", (5.0, 0.0, 1.0), 1.0),
    ("clamp", (-5.0, 0.0, 1.0), 0.0), ("clamp", (0.5, 0.0, 1.0), 0.5),
    ("clamp", (NAN, 0.0, 1.0), 0.0), ("copy", (2.0,), 2.0), ("replayed", (2.5, 7.5), 2.5),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "args", "expected"), FLOATS)
def test_float_value(name: str, args: tuple[float, ...], expected: float, dtype: Any) -> None:
    got = OPS[name].numpy(*(dtype(a) for a in args))
    assert got.dtype == dtype
    close = 1e-15 if dtype is np.float64 else 1e-6
    if dtype is np.float32 and args == (0.49999999999999994,):
        return  # rounds to 0.5 already
    np.testing.assert_allclose(got, expected, rtol=close, atol=close)


def test_every_float_function_has_a_value() -> None:
    listed = {name for name, _, _ in FLOATS}
    scalars = {
        name for name, op in OPS.items()
        if not op.explicit
        and any(op.infer([FLOAT64] * k) == FLOAT64 for k in (1, 2, 3))
    }  # fmt: skip
    assert scalars <= listed


INTEGERS: list[tuple[str, Any, tuple[int, ...], int]] = [
    ("add", np.int32, (I32.max, 1), I32.min), ("sub", np.uint8, (0, 1), 255),
    ("mul", np.int32, (1 << 20, 1 << 20), 0), ("mul", np.int64, (1 << 62, 2), -(1 << 63)),
    ("neg", np.int32, (I32.min,), I32.min), ("abs", np.int32, (I32.min,), I32.min),
    ("neg", np.uint8, (1,), 255), ("abs", np.int8, (-5,), 5),
    ("div", np.int32, (-7, 2), -3), ("div", np.int32, (7, 0), 0),
    ("div", np.int32, (I32.min, -1), I32.min), ("div", np.uint64, (2**64 - 1, 2), 2**63 - 1),
    ("mod", np.int32, (-7, 3), -1), ("mod", np.int32, (7, -3), 1), ("mod", np.int32, (7, 0), 0),
    ("mod", np.int32, (I32.min, -1), 0), ("floordiv", np.int32, (5, -3), -2),
    ("floordiv", np.int32, (-5, 0), 0), ("floordiv", np.int32, (I32.min, -1), I32.min),
    ("min", np.int32, (3, -4), -4), ("max", np.uint8, (3, 250), 250),
    ("clamp", np.int32, (9, 0, 5), 5), ("sign", np.int32, (-9,), -1), ("sign", np.uint8, (9,), 1),
    ("step", np.int32, (-9,), 1), ("nonzero", np.int32, (-9,), 1),
    ("bitand", np.int32, (12, 10), 8), ("bitor", np.int32, (12, 10), 14),
    ("bitxor", np.int32, (12, 10), 6), ("invert", np.int32, (0,), -1),
    ("invert", np.uint8, (0,), 255),
    ("shl", np.int32, (1, 31), I32.min), ("shl", np.int32, (1, 33), 2), ("shl", np.int8, (1, 8), 1),
    ("shr", np.int32, (-8, 1), -4), ("shr", np.uint8, (128, 7), 1), ("shr", np.int32, (8, -31), 4),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "dtype", "args", "expected"), INTEGERS)
def test_integer_value(name: str, dtype: Any, args: tuple[int, ...], expected: int) -> None:
    got = OPS[name].numpy(*(dtype(a) for a in args))
    assert got.dtype == dtype
    assert int(got) == expected


CASTS: list[tuple[Any, ScalarType, Any]] = [
    (np.float64(2.9), INT32, 2), (np.float64(-2.9), INT32, -2), (np.float64(NAN), INT32, 0),
    (np.float64(1e30), INT32, I32.max), (np.float64(-1e30), INT32, I32.min),
    (np.float64(INF), INT64, 2**63 - 1), (np.float32(2.0**63), INT64, 2**63 - 1),
    (np.float64(-1.5), UINT8, 0), (np.float64(300.0), UINT8, 255), (np.float64(255.9), UINT8, 255),
    (np.float64(2.0**64), UINT64, 2**64 - 1), (np.float64(2147483647.5), INT32, I32.max),
    (np.int32(-1), UINT8, 255), (np.int32(300), INT8, 44), (np.bool_(True), FLOAT32, 1.0),
    (np.float64(NAN), BOOL, True), (np.float64(0.0), BOOL, False), (np.int32(2), BOOL, True),
    (np.float64(1e300), FLOAT32, INF), (np.int32(3), FLOAT64, 3.0),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("value", "to", "expected"), CASTS)
def test_cast(value: Any, to: ScalarType, expected: Any) -> None:
    got = OPS["cast"].numpy(to, value)
    assert got.dtype == to.numpy
    assert got == expected
    many = OPS["cast"].numpy(VectorType(to, 2), np.array([value, value]))
    assert many.dtype == to.numpy
    assert list(many) == [got, got]


def values_of(t: Type, rng: Any) -> Any:
    assert not isinstance(t, ArrayType)
    s = scalar_of(t)
    if s.kind == "f":
        return rng.uniform(0.1, 0.9, shape_of(t)).astype(s.numpy)[()]
    return np.asarray(rng.integers(0, 2, shape_of(t))).astype(s.numpy)[()]


def every_type() -> list[Type]:
    out: list[Type] = [*SCALARS.values(), MatrixType(FLOAT32, 2, 2)]
    for s in (FLOAT32, FLOAT64, INT32, UINT8):
        out += [VectorType(s, 3), MatrixType(s, 3, 3), VectorType(s, 2), MatrixType(s, 2, 3)]
    return out


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(OPS))
def test_result_type_is_the_inferred_one(name: str) -> None:
    """For every overload over every scalar type: dtype and shape of the NumPy meaning."""
    op = OPS[name]
    if op.explicit or name in ("tid", "thread", "shape"):
        return
    rng = np.random.default_rng(7)
    found = 0
    usual = (itertools.product(every_type(), repeat=count) for count in (1, 2, 3))
    packed = [packed_types(name, s) for s in (FLOAT32, FLOAT64)]
    for types in itertools.chain(*usual, *packed):
        result = op.infer(types)
        if result is None or isinstance(result, ArrayType):
            continue
        found += 1
        got = op.numpy(*(values_of(t, rng) for t in types))
        assert got.dtype == scalar_of(result).numpy, types
        assert got.shape == shape_of(result), types
        spelling = op.spelling(types, result)
        # The size in `within` is for kernels that are watched: they have a text of their own.
        used = range(1) if name == "within" else range(len(types))
        assert all(spelling.count(f"{{{k}}}") for k in used)
        assert spelling.format(*"abc"[: len(types)])
        if is_float(result) and not any(is_float(t) for t in types):
            assert isinstance(op.derivative, NoDerivative)
    assert found


def test_linear_algebra_agrees_with_numpy() -> None:
    rng = np.random.default_rng(3)
    for n in (2, 3, 4):
        a, b = rng.normal(size=(2, n, n))
        v, w = rng.normal(size=(2, n))
        close = {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose(OPS["determinant"].numpy(a), np.linalg.det(a), **close)
        np.testing.assert_allclose(OPS["inverse"].numpy(a), np.linalg.inv(a), rtol=1e-9)
        np.testing.assert_allclose(OPS["matmul"].numpy(a, b), a @ b, **close)
        np.testing.assert_allclose(OPS["matvec"].numpy(a, v), a @ v, **close)
        np.testing.assert_allclose(OPS["vecmat"].numpy(v, a), v @ a, **close)
        np.testing.assert_allclose(OPS["outer"].numpy(v, w), np.outer(v, w), **close)
        np.testing.assert_allclose(OPS["trace"].numpy(a), np.trace(a), **close)
        np.testing.assert_allclose(OPS["ddot"].numpy(a, b), np.sum(a * b), **close)
        np.testing.assert_allclose(OPS["length"].numpy(v), np.linalg.norm(v), **close)
    np.testing.assert_allclose(OPS["cross"].numpy(v[:3], w[:3]), np.cross(v[:3], w[:3]))
    np.testing.assert_allclose(OPS["skew"].numpy(v[:3]) @ w[:3], np.cross(v[:3], w[:3]))
    assert not OPS["inverse"].numpy(np.ones((3, 3))).any()
    assert not OPS["normalize"].numpy(np.zeros(3)).any()


def test_reductions_skip_nan() -> None:
    v = np.array([NAN, 2.0, 1.0, 1.0])
    assert OPS["argmin"].numpy(v) == 2
    assert OPS["argmax"].numpy(v) == 1
    assert OPS["min_of"].numpy(v) == 1.0
    assert OPS["max_of"].numpy(v) == 2.0
    assert OPS["argmin"].numpy(np.array([NAN, NAN])) == 0


def test_component_out_of_range() -> None:
    with pytest.raises(IndexError):
        OPS["extract"].numpy(np.zeros(3), np.int32(3))
    with pytest.raises(IndexError):
        OPS["insert"].numpy(np.zeros((2, 2)), np.int32(0), np.int32(-1), 1.0)


def test_insert_leaves_its_argument_alone() -> None:
    v = np.zeros(3)
    assert OPS["insert"].numpy(v, np.int32(1), np.float64(2.0))[1] == 2.0
    assert not v.any()


def test_incomplete_entries_are_refused() -> None:
    sin = OPS["sin"]
    with pytest.raises(ValueError, match="twice"):
        register(sin)
    with pytest.raises(ValueError, match="no doc"):
        register(Op("fresh", "", sin.infer, sin.c, sin.numpy, sin.derivative))
    with pytest.raises(ValueError, match="does not say why"):
        register(Op("fresh", "doc", sin.infer, sin.c, sin.numpy, NoDerivative("")))
    assert "fresh" not in OPS
