"""Spatial vectors: a twist (angular, linear velocity) or a wrench (torque, force) as 6 numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.builtins import infer as i
from engine.builtins import language as wp
from engine.builtins.composite import composite
from engine.ir.ops import Domain
from engine.lang.types import MatrixType, Type, VectorType, scalar_of

_LINE = (-2.0, 2.0)


def _spatial(t: Type) -> bool:
    return isinstance(t, VectorType) and t.length == 6 and i.float_vector(t)


def _one(types: Sequence[Type]) -> bool:
    return len(types) == 1 and _spatial(types[0])


def _two(types: Sequence[Type]) -> bool:
    return len(types) == 2 and _spatial(types[0]) and types[0] == types[1]


def _blocks(types: Sequence[Type]) -> bool:
    t = types[0] if len(types) == 2 and types[0] == types[1] else None
    return isinstance(t, MatrixType) and (t.rows, t.cols) == (3, 3) and i.float_tensor(t)


def _and_offset(types: Sequence[Type]) -> bool:
    fits = len(types) == 2 and _spatial(types[0])
    return fits and types[1] == VectorType(scalar_of(types[0]), 3)


@composite("spatial_top(s): the first three components: angular velocity, or torque.", _one,
           domain=Domain((_LINE,)))  # fmt: skip
def spatial_top(s: Any) -> Any:
    return s[:3]


@composite("spatial_bottom(s): the last three components: linear velocity, or force.", _one,
           domain=Domain((_LINE,)))  # fmt: skip
def spatial_bottom(s: Any) -> Any:
    return s[3:]


@composite("spatial_dot(a, b): the inner product; of a wrench and a twist, the power.", _two,
           domain=Domain((_LINE, _LINE)))  # fmt: skip
def spatial_dot(a: Any, b: Any) -> Any:
    return wp.dot(a, b)


@composite("spatial_cross(a, b): the rate of change of the twist b that moves with the twist a.",
           _two, domain=Domain((_LINE, _LINE)))  # fmt: skip
def spatial_cross(a: Any, b: Any) -> Any:
    w = wp.cross(a[:3], b[:3])
    v = wp.cross(a[3:], b[:3]) + wp.cross(a[:3], b[3:])
    return wp.vector(w[0], w[1], w[2], v[0], v[1], v[2])


@composite("spatial_cross_dual(a, b): the rate of change of the wrench b that moves with the "
           "twist a.", _two, domain=Domain((_LINE, _LINE)))  # fmt: skip
def spatial_cross_dual(a: Any, b: Any) -> Any:
    n = wp.cross(a[:3], b[:3]) + wp.cross(a[3:], b[3:])
    f = wp.cross(a[:3], b[3:])
    return wp.vector(n[0], n[1], n[2], f[0], f[1], f[2])


@composite("spatial_adjoint(r, s): the 6x6 matrix of blocks r, 0 over s, r.", _blocks,
           domain=Domain((_LINE, _LINE)))  # fmt: skip
def spatial_adjoint(r: Any, s: Any) -> Any:
    o = r.dtype(0.0)
    return wp.matrix(
        r[0, 0], r[0, 1], r[0, 2], o, o, o,
        r[1, 0], r[1, 1], r[1, 2], o, o, o,
        r[2, 0], r[2, 1], r[2, 2], o, o, o,
        s[0, 0], s[0, 1], s[0, 2], r[0, 0], r[0, 1], r[0, 2],
        s[1, 0], s[1, 1], s[1, 2], r[1, 0], r[1, 1], r[1, 2],
        s[2, 0], s[2, 1], s[2, 2], r[2, 0], r[2, 1], r[2, 2],
        shape=(6, 6),
    )  # fmt: skip


@composite("velocity_at_point(s, r): the velocity of the point at r of a body with twist s.",
           _and_offset, domain=Domain((_LINE, _LINE)))  # fmt: skip
def velocity_at_point(s: Any, r: Any) -> Any:
    return wp.cross(s[:3], r) + s[3:]
