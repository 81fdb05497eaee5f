"""Quaternions: components x, y, z, w; rotations are those of length 1.

Products, conjugates and rotations are defined for all quaternions, as polynomials of the
components. What asks for angles depends on the direction of the quaternion alone, so that
its derivative along the quaternion itself is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.builtins import infer as i
from engine.builtins import language as wp
from engine.builtins.composite import composite, helper
from engine.ir.ops import Domain
from engine.lang.types import INT8, INT16, INT32, INT64, MatrixType, Type, scalar_of

_LINE = (-2.0, 2.0)
_ANGLE = (-3.0, 3.0)
_UNIT = (0.0, 1.0)
_SIGNED = (INT8, INT16, INT32, INT64)


def one(types: Sequence[Type]) -> bool:
    """A quaternion."""
    return len(types) == 1 and i.quaternion(types[0])


def two(types: Sequence[Type]) -> bool:
    """Two quaternions over one scalar."""
    return len(types) == 2 and i.quaternion(types[0]) and types[1] == types[0]


def _vec3(t: Type) -> bool:
    return i.vector3(t) and i.float_vector(t)


def _with_vector(types: Sequence[Type]) -> bool:
    fits = len(types) == 2 and i.quaternion(types[0]) and _vec3(types[1])
    return fits and scalar_of(types[0]) == scalar_of(types[1])


def _axis_and(types: Sequence[Type]) -> bool:
    return _with_vector(types[::-1])


def _axis_and_angle(types: Sequence[Type]) -> bool:
    return len(types) == 2 and _vec3(types[0]) and types[1] == scalar_of(types[0])


def _slerp(types: Sequence[Type]) -> bool:
    return two(types[:2]) and len(types) == 3 and types[2] == scalar_of(types[0])


def _axis_angle_out(types: Sequence[Type]) -> bool:
    return len(types) == 3 and one(types[:1]) and _axis_and_angle(types[1:]) and (
        scalar_of(types[0]) == types[2]
    )  # fmt: skip


def _angles(types: Sequence[Type]) -> bool:
    return len(types) == 3 and i.floating(types[0]) and len(set(types)) == 1


def _euler(first: Any) -> Any:
    return lambda types: (
        len(types) == 4 and first(types[0]) and types[1] in _SIGNED and len(set(types[1:])) == 1
    )


def _matrix(types: Sequence[Type]) -> bool:
    t = types[0] if len(types) == 1 else None
    return isinstance(t, MatrixType) and i.small_square(t) and t.rows in (3, 4)


def _number_and(types: Sequence[Type]) -> bool:
    return len(types) == 2 and i.quaternion(types[1]) and types[0] == scalar_of(types[1])


def _vectors(types: Sequence[Type]) -> bool:
    return len(types) == 2 and _vec3(types[0]) and types[0] == types[1]


# ---- arithmetic


@composite("mul(a, b): the product of two quaternions; as rotations, b comes first.", two,
           user="*", domain=Domain((_LINE, _LINE)))  # fmt: skip
@composite("mul(a, b): the product of two quaternions; as rotations, b comes first.", two,
           user="mul", domain=Domain((_LINE, _LINE)))  # fmt: skip
def product(a: Any, b: Any) -> Any:
    return wp.quaternion(
        a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
        a.w * b.y + a.y * b.w + a.z * b.x - a.x * b.z,
        a.w * b.z + a.z * b.w + a.x * b.y - a.y * b.x,
        a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
    )


@composite("div(s, q): the number divided by each component of a quaternion.", _number_and,
           user="/", domain=Domain((_LINE, (0.5, 2.0))))  # fmt: skip
@composite("div(s, q): the number divided by each component of a quaternion.", _number_and,
           user="div", domain=Domain((_LINE, (0.5, 2.0))))  # fmt: skip
def quotient(s: Any, q: Any) -> Any:
    return wp.quaternion(s / q.x, s / q.y, s / q.z, s / q.w)


@composite("normalize(q): q divided by its length; the identity for 0, with a zero gradient.", one,
           domain=Domain((_LINE,)))  # fmt: skip
def normalize(q: Any) -> Any:
    size = wp.length(q)
    if size == 0.0:
        return wp.quat_identity(dtype=q.dtype)
    return q / size


@composite("quat_inverse(q): the conjugate, which is the inverse of a rotation.", one,
           domain=Domain((_LINE,)))  # fmt: skip
def quat_inverse(q: Any) -> Any:
    return wp.quaternion(-q.x, -q.y, -q.z, q.w)


# ---- rotating


@composite("quat_rotate(q, v): the vector, rotated by q.", _with_vector,
           domain=Domain((_LINE, _LINE)))  # fmt: skip
def quat_rotate(q: Any, v: Any) -> Any:
    u = q[:3]
    w = q.w
    return v * (2.0 * w * w - 1.0) + wp.cross(u, v) * (2.0 * w) + u * (2.0 * wp.dot(u, v))


@composite("quat_rotate_inv(q, v): the vector, rotated by the inverse of q.", _with_vector,
           domain=Domain((_LINE, _LINE)))  # fmt: skip
def quat_rotate_inv(q: Any, v: Any) -> Any:
    u = q[:3]
    w = q.w
    return v * (2.0 * w * w - 1.0) - wp.cross(u, v) * (2.0 * w) + u * (2.0 * wp.dot(u, v))


@composite("quat_to_matrix(q): the 3x3 matrix of the rotation q.", one,
           domain=Domain((_LINE,)))  # fmt: skip
def quat_to_matrix(q: Any) -> Any:
    x = q.x + q.x
    y = q.y + q.y
    z = q.z + q.z
    w = q.w + q.w
    d = w * q.w - 1.0
    return wp.matrix(
        d + x * q.x, x * q.y - w * q.z, x * q.z + w * q.y,
        x * q.y + w * q.z, d + y * q.y, y * q.z - w * q.x,
        x * q.z - w * q.y, y * q.z + w * q.x, d + z * q.z,
        shape=(3, 3),
    )  # fmt: skip


@composite("quat_from_matrix(m): the rotation of the upper left 3x3 block of m.", _matrix,
           domain=Domain((_LINE,)))  # fmt: skip
def quat_from_matrix(m: Any) -> Any:
    # One of the components is at least 1/2 in size: found first, it divides the others
    # (Shepperd, 1978). Each is 4 times the product of it with the component there.
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    xw = m[2, 1] - m[1, 2]
    yw = m[0, 2] - m[2, 0]
    zw = m[1, 0] - m[0, 1]
    xy = m[0, 1] + m[1, 0]
    yz = m[1, 2] + m[2, 1]
    zx = m[2, 0] + m[0, 2]
    if trace >= 0.0:
        return wp.normalize(wp.quaternion(xw, yw, zw, 1.0 + trace))
    if m[0, 0] >= m[1, 1] and m[0, 0] >= m[2, 2]:
        return wp.normalize(wp.quaternion(1.0 + m[0, 0] - m[1, 1] - m[2, 2], xy, zx, xw))
    if m[1, 1] >= m[2, 2]:
        return wp.normalize(wp.quaternion(xy, 1.0 + m[1, 1] - m[0, 0] - m[2, 2], yz, yw))
    return wp.normalize(wp.quaternion(zx, yz, 1.0 + m[2, 2] - m[0, 0] - m[1, 1], zw))


# ---- axes and angles


@composite("quat_from_axis_angle(axis, angle): the rotation about an axis of length 1.",
           _axis_and_angle, domain=Domain((_LINE, _ANGLE)))  # fmt: skip
def quat_from_axis_angle(axis: Any, angle: Any) -> Any:
    half = 0.5 * angle
    return wp.quaternion(axis * wp.sin(half), wp.cos(half))


@composite(
    "quat_to_axis_angle(q): the axis, of length 1, and the angle, from 0 to pi; the axis of no "
    "rotation is 0.",
    one,
    domain=Domain((_LINE,)),
)
def quat_to_axis_angle(q: Any) -> Any:
    u = q[:3]
    axis = wp.normalize(u)
    if q.w < 0.0:
        axis = -axis
    return axis, 2.0 * wp.atan2(wp.length(u), wp.abs(q.w))


@composite(
    "quat_to_axis_angle(q, axis, angle): stores the axis and the angle of q in two variables.",
    _axis_angle_out,
    user="quat_to_axis_angle",
    updates=(1, 2),
    domain=Domain((_LINE,)),
)
def axis_angle_of(q: Any, axis: Any, angle: Any) -> Any:
    axis, angle = wp.quat_to_axis_angle(q)
    return axis, angle


@composite("quat_between_vectors(a, b): the shortest rotation from the direction of a to that "
           "of b; half a turn about some axis if they are opposite, none if one is 0.",
           _vectors, domain=Domain((_LINE, _LINE)))  # fmt: skip
def quat_between_vectors(a: Any, b: Any) -> Any:
    along = wp.dot(a, b)
    axis = wp.cross(a, b)
    if along < 0.0 and wp.norm_l1(axis) == 0.0:
        # Half a turn, about any axis across a: not the one nearest to a.
        side = wp.vector(a.dtype(0.0), a.z, -a.y)
        if wp.abs(a.x) > wp.abs(a.z):
            side = wp.vector(a.y, -a.x, a.dtype(0.0))
        return wp.normalize(wp.quaternion(side, a.dtype(0.0)))
    return wp.normalize(wp.quaternion(axis, wp.length(a) * wp.length(b) + along))


# ---- roll, pitch, yaw and other sequences of angles


@composite("quat_rpy(roll, pitch, yaw): the rotation about the fixed axes x, then y, then z.",
           _angles, domain=Domain((_ANGLE, _ANGLE, _ANGLE)))  # fmt: skip
def quat_rpy(roll: Any, pitch: Any, yaw: Any) -> Any:
    a = 0.5 * roll
    b = 0.5 * pitch
    c = 0.5 * yaw
    sa, ca = wp.sin(a), wp.cos(a)
    sb, cb = wp.sin(b), wp.cos(b)
    sc, cc = wp.sin(c), wp.cos(c)
    return wp.quaternion(
        sa * cb * cc - ca * sb * sc,
        ca * sb * cc + sa * cb * sc,
        ca * cb * sc - sa * sb * cc,
        ca * cb * cc + sa * sb * sc,
    )


@composite("quat_to_rpy(q): roll, pitch (from -pi/2 to pi/2) and yaw, as quat_rpy takes them.", one,
           domain=Domain((_LINE,)))  # fmt: skip
def quat_to_rpy(q: Any) -> Any:
    x, y, z, w = q.x, q.y, q.z, q.w
    # Twice the sine and cosine of each angle, those of roll and yaw times cos(pitch).
    sr, cr = 2.0 * (w * x + y * z), w * w - x * x - y * y + z * z
    sy, cy = 2.0 * (w * z + x * y), w * w + x * x - y * y - z * z
    level = wp.length(wp.vector(sr, cr))
    if level < 1e-6 * wp.length_sq(q):
        # Straight up or down, where roll and yaw are one rotation: all of it is yaw.
        sr, cr = q.dtype(0.0), q.dtype(1.0)
        sy, cy = 2.0 * w * z, w * w - z * z
    return wp.vector(wp.atan2(sr, cr), wp.atan2(2.0 * (w * y - z * x), level), wp.atan2(sy, cy))


@helper
def _component(v: Any, axis: Any) -> Any:
    # Chosen, not indexed: an axis other than 0, 1 and 2 reads nothing foreign.
    return wp.where(axis == 0, v[0], wp.where(axis == 1, v[1], v[2]))


@helper
def _turn(axis: Any, angle: Any) -> Any:
    none = type(angle)(0.0)
    s = wp.sin(0.5 * angle)
    return wp.quaternion(
        wp.where(axis == 0, s, none),
        wp.where(axis == 1, s, none),
        wp.where(axis == 2, s, none),
        wp.cos(0.5 * angle),
    )


@composite(
    "quat_from_euler(e, i, j, k): the rotation by e[i] about the fixed axis i, then by e[j] "
    "about j, then by e[k] about k; axes are 0, 1 and 2.",
    _euler(_vec3),
    domain=Domain((_ANGLE,)),
)
def quat_from_euler(e: Any, i: Any, j: Any, k: Any) -> Any:
    first = _turn(i, _component(e, i))
    second = _turn(j, _component(e, j))
    third = _turn(k, _component(e, k))
    return third * (second * first)


@composite(
    "quat_to_euler(q, i, j, k): the angles of q about the fixed axes i, j and k, by axis; where "
    "i is k, the third angle stands in the place of the axis that is left over.",
    _euler(i.quaternion),
    domain=Domain((_LINE,)),
)
def quat_to_euler(q: Any, i: Any, j: Any, k: Any) -> Any:
    # Bernardes and Viollet, Quaternion to Euler angles conversion: a direct, general and
    # computationally efficient method (PLoS ONE 17(11), 2022). The middle angle by atan2.
    proper = i == k
    last = wp.where(proper, 3 - i - j, k)
    parity = (i - j) * (j - last) * (last - i) / 2
    sign = q.dtype(parity)
    u = q[:3]
    ui, uj, uk = _component(u, i), _component(u, j), _component(u, last) * sign
    a, b, c, d = q.w, ui, uj, uk
    if not proper:
        a, b, c, d = q.w - uj, ui + uk, uj + q.w, uk - ui
    middle = 2.0 * wp.atan2(wp.length(wp.vector(c, d)), wp.length(wp.vector(a, b)))
    half_sum, half_diff = wp.atan2(b, a), wp.atan2(d, c)
    first, third = half_sum - half_diff, half_sum + half_diff
    # Where the outer axes are one line, only the sum or difference of their angles is known.
    if middle < 1e-6:
        first, third = q.dtype(0.0), 2.0 * half_sum
    elif middle > 3.141592653589793 - 1e-6:
        first, third = q.dtype(0.0), 2.0 * half_diff
    if not proper:
        third *= sign
        middle -= 1.5707963267948966
    return wp.vector(
        wp.where(j == 0, middle, wp.where(last == 0, third, first)),
        wp.where(j == 1, middle, wp.where(last == 1, third, first)),
        wp.where(j == 2, middle, wp.where(last == 2, third, first)),
    )


# ---- between rotations


@composite("quat_slerp(a, b, t): from a at t = 0 on the shortest way to b at t = 1, at constant "
           "speed, and on beyond them.", _slerp, domain=Domain((_LINE, _LINE, _UNIT)))  # fmt: skip
def quat_slerp(a: Any, b: Any, t: Any) -> Any:
    # a (a^-1 b)^t, with the power (u sin(t h) / |u|, cos(t h)) of (u, w), h the half angle.
    r = wp.quat_inverse(a) * b
    if r.w < 0.0:
        r = -r
    u = r[:3]
    w = r.w
    if wp.length_sq(u) < 1e-4 * w * w:
        # In powers of x = (|u| / w)^2, where the quotient would lose digits in derivatives.
        x = wp.length_sq(u) / (w * w)
        tt = t * t
        p = t / w * (
            1.0 - x * ((2.0 + tt) / 6.0 - x * ((24.0 + tt * (20.0 + tt)) / 120.0
            - x * (720.0 + tt * (784.0 + tt * (70.0 + tt))) / 5040.0))
        )  # fmt: skip
        c = 1.0 - tt * x * (0.5 - x * ((8.0 + tt) / 24.0 - x * (184.0 + tt * (40.0 + tt)) / 720.0))
        return a * wp.quaternion(u * p, c)
    size = wp.length(u)
    half = t * wp.atan2(size, w)
    return a * wp.quaternion(u * (wp.sin(half) / size), wp.cos(half))


@composite("quat_twist(axis, q): the part of q that turns about an axis of length 1.", _axis_and,
           domain=Domain((_LINE, _LINE)))  # fmt: skip
def quat_twist(axis: Any, q: Any) -> Any:
    return wp.normalize(wp.quaternion(axis * wp.dot(axis, q[:3]), q.w))


@composite(
    "quat_twist_angle(axis, q): the size of the angle by which q turns about an axis of length 1, "
    "from 0 to 2 pi.",
    _axis_and,
    domain=Domain((_LINE, _LINE)),
)
def quat_twist_angle(axis: Any, q: Any) -> Any:
    return 2.0 * wp.atan2(wp.abs(wp.dot(axis, q[:3])), q.w)


@composite(
    "quat_twist_angle_signed(axis, q): the angle by which q turns about an axis of length 1, from "
    "-2 pi to 2 pi.",
    _axis_and,
    domain=Domain((_LINE, _LINE)),
)
def quat_twist_angle_signed(axis: Any, q: Any) -> Any:
    return 2.0 * wp.atan2(wp.dot(axis, q[:3]), q.w)
