"""Derivatives where formulas break: kinks, zeros, infinities, branches not taken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import engine.builtins  # noqa: F401
from engine.ir.nodes import Const
from engine.ir.ops import OPS
from engine.lang.types import BOOL, FLOAT64, MatrixType, Type, VectorType, shape_of

INF, NAN = math.inf, math.nan
F = FLOAT64

# (operation, arguments, cotangent, expected adjoints), all scalars.
CASES: list[tuple[str, tuple[float, ...], float, tuple[float | None, ...]]] = [
    ("abs", (0.0,), 2.0, (2.0,)),
    ("sqrt", (0.0,), 1.0, (INF,)),
    ("cbrt", (0.0,), 1.0, (INF,)),
    ("log", (0.0,), 1.0, (INF,)),
    ("pow", (0.0, 2.0), 1.0, (0.0, 0.0)),
    ("pow", (0.0, 1.0), 1.0, (1.0, 0.0)),
    ("pow", (0.0, 0.0), 1.0, (0.0, 0.0)),
    ("pow", (-2.0, 2.0), 1.0, (-4.0, NAN)),
    ("pow", (-2.0, 0.0), 1.0, (0.0, NAN)),
    ("atan2", (0.0, 0.0), 1.0, (0.0, 0.0)),
    # One argument takes it all, even an infinite cotangent; ties go to the second.
    ("min", (1.0, 2.0), INF, (INF, 0.0)),
    ("min", (1.0, 1.0), 1.0, (0.0, 1.0)),
    ("max", (1.0, 1.0), 1.0, (0.0, 1.0)),
    ("max", (1.0, 2.0), INF, (0.0, INF)),
    ("min", (NAN, 2.0), 1.0, (0.0, 1.0)),
    ("max", (2.0, NAN), 1.0, (1.0, 0.0)),
    ("clamp", (5.0, 0.0, 1.0), INF, (0.0, 0.0, INF)),
    ("clamp", (-5.0, 0.0, 1.0), INF, (0.0, INF, 0.0)),
    ("clamp", (0.5, 0.0, 1.0), INF, (INF, 0.0, 0.0)),
    ("clamp", (0.0, 0.0, 1.0), 1.0, (1.0, 0.0, 0.0)),
    ("smoothstep", (1.0, 1.0, 2.0), 1.0, (0.0, 0.0, 0.0)),
    ("smoothstep", (0.0, 1.0, 5.0), INF, (0.0, 0.0, 0.0)),
    ("copysign", (3.0, -0.0), 1.0, (-1.0, None)),
    ("tanh", (50.0,), 1.0, (0.0,)),
    ("atan", (1e200,), 1.0, (0.0,)),
    # trunc(a / b) rounds up to 3 here; the exact quotient is below it.
    ("mod", (math.nextafter(0.3, 0.0), 0.1), 1.0, (1.0, -2.0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "g", "expected"), CASES)
def test_adjoint(name: str, args: Any, g: float, expected: Any, pull: Any) -> None:
    values = [np.float64(a) for a in args]
    got = pull(name, [F] * len(args), F, values, np.float64(g))
    for a, b in zip(got, expected, strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            np.testing.assert_array_equal(a, b)  # 0 equals -0, NaN equals NaN


def test_remainder_near_a_multiple() -> None:
    """The quotient that the derivative uses belongs to the remainder that fmod gives."""
    a, b = np.float64(math.nextafter(0.3, 0.0)), np.float64(0.1)
    assert np.rint((a - OPS["mod"].numpy(a, b)) / b) == 2.0


def test_constant_exponent_has_no_logarithm(pull: Any) -> None:
    got = pull("pow", [F, F], F, [np.float64(-2.0), Const(3.0, F)], np.float64(1.0))
    assert got == [12.0, None]


def test_choice_keeps_an_untaken_infinity_out(pull: Any) -> None:
    for cond, expected in ((True, [INF, 0.0]), (False, [0.0, INF])):
        args = [np.bool_(cond), np.float64(1.0), np.float64(NAN)]
        assert pull("select", [BOOL, F, F], F, args, np.float64(INF)) == [None, *expected]


V3 = VectorType(F, 3)


@pytest.mark.parametrize(("name", "result"), [("length", F), ("normalize", V3), ("length_sq", F)])
def test_zero_vector_has_a_zero_gradient(name: str, result: Type, pull: Any, push: Any) -> None:
    zero, one = np.zeros(3), np.ones(shape_of(result))[()]  # type: ignore[arg-type]
    (got,) = pull(name, [V3], result, [zero], one)
    np.testing.assert_array_equal(got, zero)
    assert not np.any(push(name, [V3], result, [zero], [np.ones(3)]))


def test_singular_matrices_have_finite_gradients(pull: Any) -> None:
    for n in (2, 3, 4):
        t = MatrixType(F, n, n)
        a = np.ones((n, n))
        a[0] = np.arange(n)
        (got,) = pull("determinant", [t], F, [a], np.float64(1.0))
        assert np.all(np.isfinite(got))
        (got,) = pull("inverse", [t], t, [np.ones((n, n))], np.ones((n, n)))
        assert not np.any(got)
    (got,) = pull("determinant", [MatrixType(F, 2, 2)], F, [np.ones((2, 2))], np.float64(1.0))
    np.testing.assert_array_equal(got, [[1, -1], [-1, 1]])


def test_min_of_a_vector_goes_to_its_place(pull: Any) -> None:
    (got,) = pull("min_of", [V3], F, [np.array([2.0, NAN, 1.0])], np.float64(5.0))
    np.testing.assert_array_equal(got, [0, 0, 5])
