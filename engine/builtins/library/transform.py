"""Transforms: a translation `p` after a rotation `q`; and 4x4 matrices that do the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.builtins import infer as i
from engine.builtins import language as wp
from engine.builtins.composite import composite
from engine.ir.ops import Domain
from engine.lang.types import MatrixType, Type, VectorType, quat_type, scalar_of

_LINE = (-2.0, 2.0)
_SIZE = (0.5, 2.0)


def _one(types: Sequence[Type]) -> bool:
    return len(types) == 1 and i.transform(types[0])


def _two(types: Sequence[Type]) -> bool:
    return len(types) == 2 and i.transform(types[0]) and types[0] == types[1]


def _mat44(t: Type) -> bool:
    return isinstance(t, MatrixType) and (t.rows, t.cols) == (4, 4) and i.float_tensor(t)


def _matrix(types: Sequence[Type]) -> bool:
    return len(types) == 1 and _mat44(types[0])


def _and_vector(n: int) -> Any:
    def accepts(types: Sequence[Type]) -> bool:
        fits = len(types) == 2 and i.transform(types[0])
        return fits and types[1] == VectorType(scalar_of(types[0]), n)

    return accepts


def _matrix_and_vector(types: Sequence[Type]) -> bool:
    fits = len(types) == 2 and _mat44(types[0])
    return fits and types[1] == VectorType(scalar_of(types[0]), 3)


def _and_rotation(types: Sequence[Type]) -> bool:
    fits = len(types) == 2 and i.transform(types[0])
    return fits and types[1] == quat_type(scalar_of(types[0]))


def _parts(types: Sequence[Type]) -> bool:
    if len(types) != 3 or not i.quaternion(types[1]):
        return False
    three = VectorType(scalar_of(types[1]), 3)
    return types[0] == three == types[2]


_PRODUCT = "the motion b, followed by the motion a."


@composite(f"mul(a, b): {_PRODUCT}", _two, user="*", domain=Domain((_LINE, _LINE)))
@composite(f"mul(a, b): {_PRODUCT}", _two, user="mul", domain=Domain((_LINE, _LINE)))
@composite(f"transform_multiply(a, b): {_PRODUCT}", _two, domain=Domain((_LINE, _LINE)))
def transform_multiply(a: Any, b: Any) -> Any:
    return wp.transformation(wp.quat_rotate(a.q, b.p) + a.p, a.q * b.q)


@composite("transform_inverse(t): the motion back; the rotation must have length 1.", _one,
           domain=Domain((_LINE,)))  # fmt: skip
def transform_inverse(t: Any) -> Any:
    return wp.transformation(-wp.quat_rotate_inv(t.q, t.p), wp.quat_inverse(t.q))


@composite("transform_get_translation(t): t.p.", _one, domain=Domain((_LINE,)))
def transform_get_translation(t: Any) -> Any:
    return t.p


@composite("transform_get_rotation(t): t.q.", _one, domain=Domain((_LINE,)))
def transform_get_rotation(t: Any) -> Any:
    return t.q


@composite("transform_set_translation(t, p): changes the translation of the variable t.",
           _and_vector(3), updates=(0,), domain=Domain((_LINE, _LINE)))  # fmt: skip
def transform_set_translation(t: Any, p: Any) -> Any:
    return wp.transformation(p, t.q)


@composite("transform_set_rotation(t, q): changes the rotation of the variable t.",
           _and_rotation, updates=(0,), domain=Domain((_LINE, _LINE)))  # fmt: skip
def transform_set_rotation(t: Any, q: Any) -> Any:
    return wp.transformation(t.p, q)


@composite("transform_point(t, x): the position x moved by t.", _and_vector(3),
           domain=Domain((_LINE, _LINE)))  # fmt: skip
def transform_point(t: Any, x: Any) -> Any:
    return wp.quat_rotate(t.q, x) + t.p


@composite("transform_vector(t, v): the direction v turned by t.", _and_vector(3),
           domain=Domain((_LINE, _LINE)))  # fmt: skip
def transform_vector(t: Any, v: Any) -> Any:
    return wp.quat_rotate(t.q, v)


@composite("transform_point(m, x): the first three components of m * (x, 1).", _matrix_and_vector,
           user="transform_point", domain=Domain((_LINE, _LINE)))  # fmt: skip
def matrix_point(m: Any, x: Any) -> Any:
    return wp.vector(
        m[0, 0] * x[0] + m[0, 1] * x[1] + m[0, 2] * x[2] + m[0, 3],
        m[1, 0] * x[0] + m[1, 1] * x[1] + m[1, 2] * x[2] + m[1, 3],
        m[2, 0] * x[0] + m[2, 1] * x[1] + m[2, 2] * x[2] + m[2, 3],
    )


@composite("transform_vector(m, v): the first three components of m * (v, 0).", _matrix_and_vector,
           user="transform_vector", domain=Domain((_LINE, _LINE)))  # fmt: skip
def matrix_vector(m: Any, v: Any) -> Any:
    return wp.vector(
        m[0, 0] * v[0] + m[0, 1] * v[1] + m[0, 2] * v[2],
        m[1, 0] * v[0] + m[1, 1] * v[1] + m[1, 2] * v[2],
        m[2, 0] * v[0] + m[2, 1] * v[1] + m[2, 2] * v[2],
    )


# ---- matrices


@composite("transform_compose(p, q, s): the 4x4 matrix that scales by s, turns by q and moves by "
           "p, in this order.", _parts, domain=Domain((_LINE, _LINE, _SIZE)))  # fmt: skip
def transform_compose(p: Any, q: Any, s: Any) -> Any:
    r = wp.quat_to_matrix(q)
    none, one = q.dtype(0.0), q.dtype(1.0)
    return wp.matrix(
        r[0, 0] * s[0], r[0, 1] * s[1], r[0, 2] * s[2], p[0],
        r[1, 0] * s[0], r[1, 1] * s[1], r[1, 2] * s[2], p[1],
        r[2, 0] * s[0], r[2, 1] * s[1], r[2, 2] * s[2], p[2],
        none, none, none, one,
        shape=(4, 4),
    )  # fmt: skip


@composite(
    "transform_decompose(m): translation, rotation and scales of a 4x4 matrix made from these; "
    "scales are positive.",
    _matrix,
    domain=Domain((_LINE,)),
)
def transform_decompose(m: Any) -> Any:
    x, y, z = m[:3, 0], m[:3, 1], m[:3, 2]
    s = wp.vector(wp.length(x), wp.length(y), wp.length(z))
    r = wp.matrix_from_cols(wp.normalize(x), wp.normalize(y), wp.normalize(z))
    return m[:3, 3], wp.quat_from_matrix(r), s


@composite("transform_from_matrix(m): the transform of a 4x4 matrix without scaling.", _matrix,
           domain=Domain((_LINE,)))  # fmt: skip
def transform_from_matrix(m: Any) -> Any:
    return wp.transformation(m[:3, 3], wp.quat_from_matrix(m))


@composite("transform_to_matrix(t): the 4x4 matrix of the motion t.", _one,
           domain=Domain((_LINE,)))  # fmt: skip
def transform_to_matrix(t: Any) -> Any:
    r = wp.quat_to_matrix(t.q)
    p = t.p
    none, one = t.dtype(0.0), t.dtype(1.0)
    return wp.matrix(
        r[0, 0], r[0, 1], r[0, 2], p[0],
        r[1, 0], r[1, 1], r[1, 2], p[1],
        r[2, 0], r[2, 1], r[2, 2], p[2],
        none, none, none, one,
        shape=(4, 4),
    )  # fmt: skip


# ---- twists and wrenches: spatial vectors, seen from another frame


@composite("transform_twist(t, x): the twist (w, v) as seen from the frame that t leads to.",
           _and_vector(6), domain=Domain((_LINE, _LINE)))  # fmt: skip
def transform_twist(t: Any, x: Any) -> Any:
    w = wp.quat_rotate(t.q, x[:3])
    v = wp.quat_rotate(t.q, x[3:]) + wp.cross(t.p, w)
    return wp.vector(w[0], w[1], w[2], v[0], v[1], v[2])


@composite("transform_wrench(t, x): the wrench (torque, force) as seen from the frame that t "
           "leads to.", _and_vector(6), domain=Domain((_LINE, _LINE)))  # fmt: skip
def transform_wrench(t: Any, x: Any) -> Any:
    f = wp.quat_rotate(t.q, x[3:])
    n = wp.quat_rotate(t.q, x[:3]) + wp.cross(t.p, f)
    return wp.vector(n[0], n[1], n[2], f[0], f[1], f[2])
