"""Builtins at the edges of their domains agree with their docs, slopes included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.builtins.composite import COMPOSITES
from engine.lang.types import FLOAT64, MatrixType, Type, VectorType, quat_type, shape_of
from tests.overloads import Overload, gradients

INF, NAN = math.inf, math.nan
HALF = math.sqrt(0.5)
Q, V, M = wp.quatd, wp.vec3d, wp.mat33d
TURN = Q(0.0, 0.0, HALF, HALF)  # a quarter turn about z
F = wp.float64


def values(x: Any) -> list[Any]:
    """A result, or several, as NumPy arrays."""
    return [np.asarray(v, float) for v in (x if isinstance(x, tuple) else (x,))]


# (builtin, arguments, what it gives)
CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("normalize", (V(),), V()),
    ("normalize", (Q(0.0, 0.0, 0.0, 0.0),), Q(0.0, 0.0, 0.0, 1.0)),
    ("length", (V(),), 0.0),
    ("length", (V(INF, 0.0, 0.0),), INF),
    ("smooth_normalize", (V(), F(1.0)), V()),
    ("norm_huber", (V(3.0, 0.0, 4.0), F(5.0)), 12.5),  # at the width itself
    ("norm_huber", (V(3.0, 0.0, 4.0), F(1.0)), 4.5),
    ("norm_huber", (V(3.0, 0.0, 4.0), F(0.0)), 0.0),
    ("norm_huber", (V(),), 0.0),
    ("norm_pseudo_huber", (V(), F(2.0)), 2.0),
    ("quat_to_axis_angle", (Q(0.0, 0.0, 0.0, 1.0),), (V(), 0.0)),
    ("quat_to_axis_angle", (Q(0.0, 0.0, 0.0, -1.0),), (V(), 0.0)),
    ("quat_to_axis_angle", (Q(0.0, 0.0, 1.0, 0.0),), (V(0.0, 0.0, 1.0), math.pi)),
    ("quat_to_axis_angle", (-TURN,), (V(0.0, 0.0, 1.0), math.pi / 2)),
    ("quat_from_axis_angle", (V(1.0, 0.0, 0.0), F(0.0)), Q(0.0, 0.0, 0.0, 1.0)),
    ("quat_between_vectors", (V(0.0, 2.0, 0.0), V(0.0, 5.0, 0.0)), Q(0.0, 0.0, 0.0, 1.0)),
    ("quat_between_vectors", (V(), V(0.0, 5.0, 0.0)), Q(0.0, 0.0, 0.0, 1.0)),
    ("quat_from_matrix", (wp.diag(V(1.0, -1.0, -1.0)),), Q(1.0, 0.0, 0.0, 0.0)),
    ("quat_from_matrix", (wp.diag(V(-1.0, 1.0, -1.0)),), Q(0.0, 1.0, 0.0, 0.0)),
    ("quat_from_matrix", (wp.diag(V(-1.0, -1.0, 1.0)),), Q(0.0, 0.0, 1.0, 0.0)),
    ("quat_slerp", (TURN, TURN, F(0.3)), TURN),
    ("quat_slerp", (TURN, -TURN, F(0.3)), TURN),  # the same rotation: there is no way to go
    ("quat_slerp", (Q(0.0, 0.0, 0.0, 1.0), TURN, F(0.0)), Q(0.0, 0.0, 0.0, 1.0)),
    ("quat_slerp", (Q(0.0, 0.0, 0.0, 1.0), TURN, F(1.0)), TURN),
    ("quat_slerp", (Q(0.0, 0.0, 0.0, 1.0), TURN, F(2.0)), Q(0.0, 0.0, 1.0, 0.0)),
    ("quat_twist", (V(0.0, 0.0, 1.0), Q(1.0, 0.0, 0.0, 0.0)), Q(0.0, 0.0, 0.0, 1.0)),
    ("quat_twist_angle", (V(0.0, 0.0, 1.0), -TURN), 3 * math.pi / 2),
    ("quat_twist_angle_signed", (V(0.0, 0.0, 1.0), -TURN), -3 * math.pi / 2),
    ("determinant", (M(),), 0.0),
    ("inverse", (M(),), M()),
    ("inverse", (M(*map(float, range(9))),), M()),
    ("svd3", (M(),), (np.eye(3), np.zeros(3), np.eye(3))),
    ("eig3", (M(),), (np.eye(3), np.zeros(3))),
    ("qr3", (M(),), (np.eye(3), np.zeros((3, 3)))),
    ("noise", (wp.uint32(5), V(3.0, -2.0, 7.0)), 0.0),  # lattice points
    ("pnoise", (wp.uint32(5), V(3.0, -2.0, 7.0), 2, 0, -1), 0.0),
    ("curlnoise", (wp.uint32(5), V(0.3, 0.4, 0.5), wp.uint32(0)), V()),
    ("randi", (wp.uint32(5), 7, 7), 7),
    ("randu", (wp.uint32(5), wp.uint32(7), wp.uint32(7)), 7),
    ("poisson", (wp.uint32(5), wp.float32(0.0)), 0),
    ("lerp", (F(1.0), F(3.0), F(2.0)), 5.0),
    ("clamp", (F(0.5), F(1.0), F(-1.0)), -1.0),
    ("smoothstep", (F(1.0), F(1.0), F(2.0)), 1.0),
    ("div", (7, 0), 0), ("mod", (7, 0), 0), ("floordiv", (7, 0), 0),
    ("argmax", (wp.vec3d(NAN, NAN, NAN),), 0), ("argmax", (wp.vec3d(NAN, 1.0, INF),), 2),
    ("argmin", (wp.vec3d(2.0, 2.0, 2.0),), 0),
    ("step", (F(-0.0),), 0.0), ("sign", (F(-0.0),), 1.0), ("nonzero", (F(-0.0),), 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "want"), CASES)
def test_value(name: str, args: tuple[Any, ...], want: Any) -> None:
    got = values(getattr(wp, name)(*args))
    for a, b in zip(got, values(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-15)


def test_half_a_turn_between_opposite_vectors() -> None:
    for x in (V(1.0, 2.0, 3.0), V(0.0, 0.0, 2.0), V(0.0, 1.0, 0.0), V(-3.0, 0.0, 0.0)):
        q = wp.quat_between_vectors(x, -x)
        np.testing.assert_allclose(np.asarray(wp.quat_rotate(q, x)), -np.asarray(x), atol=1e-14)


# (operation, arguments, partial derivatives): all numbers.
# Others are in test_special.py.
SLOPES: list[tuple[str, tuple[float, ...], tuple[float, ...]]] = [
    ("abs", (INF,), (1.0,)), ("sqrt", (INF,), (0.0,)), ("sqrt", (-1.0,), (NAN,)),
    ("cbrt", (-8.0,), (1 / 12,)), ("log", (INF,), (0.0,)), ("log2", (0.0,), (INF,)),
    ("log10", (0.0,), (INF,)), ("exp", (-INF,), (0.0,)), ("exp", (INF,), (INF,)),
    ("asin", (1.0,), (INF,)), ("asin", (-1.0,), (INF,)), ("asin", (2.0,), (0.0,)),
    ("acos", (1.0,), (-INF,)), ("acos", (-2.0,), (0.0,)), ("atan", (INF,), (0.0,)),
    ("tanh", (INF,), (0.0,)), ("tanh", (-40.0,), (0.0,)), ("erf", (INF,), (0.0,)),
    ("erfinv", (1.0,), (INF,)), ("erfcinv", (0.0,), (-INF,)),
    ("pow", (0.0, 0.5), (INF, 0.0)), ("pow", (-2.0, 3.0), (12.0, NAN)),
    ("pow", (2.0, 0.0), (0.0, math.log(2))), ("clamp", (1.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
    ("smoothstep", (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)), ("frac", (2.0,), (1.0,)),
    ("div", (1.0, 0.0), (INF, -INF)), ("mod", (5.5, 2.0), (1.0, -2.0)),
    ("mod", (-5.5, 2.0), (1.0, 2.0)), ("copysign", (0.0, -1.0), (-1.0, 0.0)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "args", "want"), SLOPES)
def test_slope(name: str, args: tuple[float, ...], want: tuple[float, ...], pull: Any) -> None:
    types = [FLOAT64] * len(args)
    got = pull(name, types, FLOAT64, [np.float64(a) for a in args], np.float64(1.0))
    np.testing.assert_allclose([0.0 if g is None else g for g in got], want, rtol=1e-14)


V3, M3, Q4 = VectorType(FLOAT64, 3), MatrixType(FLOAT64, 3, 3), quat_type(FLOAT64)
EYE, ZERO = np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3)
# Composites where a formula divides by zero: the gradient of the sum of all results is finite,
# and zero where the doc says so. (function, types, arguments, the argument that is looked at, it)
EDGES: list[tuple[str, tuple[Type, ...], list[Any], int, Any]] = [
    ("norm_l2", (V3,), [ZERO], 0, ZERO),
    ("norm_l1", (V3,), [ZERO], 0, np.ones(3)),  # abs has the slope 1 at 0
    ("norm_huber", (V3, FLOAT64), [ZERO, 1.0], 0, ZERO),
    ("norm_pseudo_huber", (V3, FLOAT64), [ZERO, 1.0], 0, ZERO),
    ("smooth_normalize", (V3, FLOAT64), [ZERO, 0.5], 0, 2 * np.ones(3)),
    ("normalize", (Q4,), [np.zeros(4)], 0, np.zeros(4)),
    ("quat_to_axis_angle", (Q4,), [EYE], 0, None),
    ("quat_between_vectors", (V3, V3), [np.eye(3)[0], np.eye(3)[0]], 0, None),
    ("quat_between_vectors", (V3, V3), [ZERO, np.eye(3)[0]], 0, ZERO),
    ("quat_between_vectors", (V3, V3), [ZERO, np.eye(3)[0]], 1, ZERO),
    ("quat_slerp", (Q4, Q4, FLOAT64), [EYE, EYE, 0.25], 0, 0.75 * np.ones(4)),
    ("quat_slerp", (Q4, Q4, FLOAT64), [EYE, EYE, 0.25], 1, 0.25 * np.ones(4)),
    ("quat_to_rpy", (Q4,), [np.array([0.0, HALF, 0.0, HALF])], 0, None),
    ("svd3", (M3,), [np.zeros((3, 3))], 0, None),
    ("svd3", (M3,), [np.eye(3)], 0, None),
    ("eig3", (M3,), [np.eye(3)], 0, None),
    ("qr3", (M3,), [np.zeros((3, 3))], 0, None),
    ("transform_decompose", (MatrixType(FLOAT64, 4, 4),), [np.zeros((4, 4))], 0, None),
]


@pytest.mark.parametrize(("name", "types", "args", "which", "want"), EDGES)
def test_gradient_at_the_edge(
    name: str, types: tuple[Type, ...], args: list[Any], which: int, want: Any
) -> None:
    o = Overload(next(c for c in COMPOSITES[name] if c.accepts(types)), types)
    row = [np.float64(a) if np.ndim(a) == 0 else a for a in args]
    ones = [np.ones(shape_of(t)) for t in o.function.results]  # type: ignore[arg-type]
    got = gradients(o, row, ones)[f"p{which}"]
    assert np.isfinite(got).all()
    if want is not None:
        if name == "quat_slerp":  # along the rotations: across them the power is no rotation
            got = got - EYE * np.dot(EYE, got)
            want = want - EYE * np.dot(EYE, want)
        np.testing.assert_allclose(got, want, atol=1e-14)
