"""Quaternions, transforms and spatial vectors: every builtin of theirs."""

import engine as wp
from tests.corpus.case import arr, case, inout, out
from tests.corpus.parts import of
from tests.corpus.values import matrix, vector

ALL = {"low": -1.5, "high": 1.5}


@wp.func
def put(y, i, k, v):
    """Writes the components of v to row i of y from column k on."""
    for c in range(len(v)):
        y[i, k + c] = v[c]


@wp.func
def put_matrix(y, i, k, m):
    for r in range(len(m)):
        for c in range(len(m[0])):
            y[i, k + r * len(m[0]) + c] = m[r, c]


@case(3, arr(3, element="q", **ALL), arr(3, element="q", **ALL), arr(3, element="v3", **ALL),
      arr(3), out(3, 51))  # fmt: skip
def quaternion_algebra(T):
    Q, V3 = of(T, wp.quat), vector(T, 3)

    @wp.kernel
    def quaternion_algebra(
        a: wp.array(dtype=Q), b: wp.array(dtype=Q), v: wp.array(dtype=V3), s: wp.array(dtype=T),
        y: wp.array2d(dtype=T),
    ):  # fmt: skip
        i = wp.tid()
        put(y, i, 0, a[i] * b[i])
        put(y, i, 4, wp.mul(b[i], a[i]))
        put(y, i, 8, s[i] / a[i])
        put(y, i, 12, wp.normalize(a[i]))
        put(y, i, 16, wp.quat_inverse(b[i]))
        put(y, i, 20, wp.quat_rotate(a[i], v[i]))
        put(y, i, 23, wp.quat_rotate_inv(b[i], v[i]))
        put_matrix(y, i, 26, wp.quat_to_matrix(b[i]))
        put(y, i, 35, a[i] * s[i] - b[i] / s[i] + s[i] * b[i])
        put(y, i, 39, wp.lerp(a[i], b[i], s[i]))
        y[i, 43] = wp.dot(a[i], b[i]) * wp.length(a[i]) + wp.length_sq(b[i])
        put(y, i, 44, wp.quat_between_vectors(v[i], a[i][:3]))
        c = wp.quat_identity(dtype=T)
        for _k in range(3):
            c = c * a[i]
        y[i, 48] = c.x
        y[i, 49] = c.y
        y[i, 50] = c.w

    return quaternion_algebra


@case(4, arr(4, element="q", **ALL), arr(4, element="q", **ALL), arr(4, element="v3", **ALL),
      arr(4, low=0.1, high=0.9), out(4, 42))  # fmt: skip
def angles(T):
    Q, V3 = of(T, wp.quat), vector(T, 3)

    @wp.kernel
    def angles(
        a: wp.array(dtype=Q), b: wp.array(dtype=Q), v: wp.array(dtype=V3), s: wp.array(dtype=T),
        y: wp.array2d(dtype=T),
    ):  # fmt: skip
        i = wp.tid()
        put(y, i, 0, wp.quat_from_axis_angle(wp.normalize(v[i]), s[i]))
        axis, angle = wp.quat_to_axis_angle(a[i])
        put(y, i, 4, axis)
        y[i, 7] = angle
        angle = T(0.0)
        for k in range(2):
            wp.quat_to_axis_angle(b[i] * a[i], axis, angle)
            axis *= angle * s[i] + T(k)
        put(y, i, 8, axis)
        y[i, 11] = angle
        put(y, i, 12, wp.quat_rpy(v[i].x, v[i].y, s[i]))
        put(y, i, 16, wp.quat_to_rpy(a[i]))
        put(y, i, 19, wp.quat_slerp(a[i], b[i], s[i]))
        put(y, i, 23, wp.quat_twist(wp.normalize(v[i]), a[i]))
        y[i, 27] = wp.quat_twist_angle(v[i], a[i])
        y[i, 28] = wp.quat_twist_angle_signed(v[i], b[i])
        put(y, i, 29, wp.quat_from_euler(v[i], i % 3, (i + 1) % 3, (i + 2) % 3))
        put(y, i, 33, wp.quat_from_euler(v[i], 0, 2, 0))
        put(y, i, 36, wp.quat_to_euler(a[i], (i + 1) % 3, i % 3, (i + 2) % 3))
        put(y, i, 39, wp.quat_to_euler(b[i], 2, 0, 2))

    return angles


@case(8, arr(8, element="m33", **ALL), arr(8, element="m44", **ALL), out(8, 25))
def rotations_from_matrices(T):
    M33, M44 = matrix(T, 3), matrix(T, 4)

    @wp.kernel
    def rotations_from_matrices(
        m: wp.array(dtype=M33), n: wp.array(dtype=M44), y: wp.array2d(dtype=T)
    ):
        i = wp.tid()
        put(y, i, 0, wp.quat_from_matrix(m[i]))
        put(y, i, 4, wp.quat_from_matrix(n[i]))
        put(y, i, 8, wp.transform_from_matrix(n[i]))
        p, q, s = wp.transform_decompose(n[i])
        put(y, i, 15, p)
        put(y, i, 18, q)
        put(y, i, 22, s)

    return rotations_from_matrices


@case(3, arr(3, element="t", **ALL), inout(3, element="t"), arr(3, element="v3", **ALL),
      arr(3, element="m44", **ALL), out(3, 65))  # fmt: skip
def transforms(T):
    X, V3, M44 = of(T, wp.transform), vector(T, 3), matrix(T, 4)

    @wp.kernel
    def transforms(
        a: wp.array(dtype=X), b: wp.array(dtype=X), v: wp.array(dtype=V3), m: wp.array(dtype=M44),
        y: wp.array2d(dtype=T),
    ):  # fmt: skip
        i = wp.tid()
        put(y, i, 0, a[i] * b[i])
        put(y, i, 7, wp.transform_multiply(b[i], a[i]) * a[i].p.x)
        put(y, i, 14, wp.transform_inverse(a[i]))
        put(y, i, 21, wp.transform_point(a[i], v[i]))
        put(y, i, 24, wp.transform_vector(b[i], v[i]))
        put(y, i, 27, wp.transform_point(m[i], v[i]))
        put(y, i, 30, wp.transform_vector(m[i], v[i]))
        put_matrix(y, i, 33, wp.transform_to_matrix(a[i]))
        put_matrix(
            y, i, 49,
            wp.transform_compose(v[i], wp.transform_get_rotation(b[i]), a[i].p),
        )  # fmt: skip
        c = a[i]
        for _k in range(2):
            wp.transform_set_translation(c, wp.transform_point(c, v[i]))
            wp.transform_set_rotation(c, c.q * b[i].q)
        if v[i].x > T(0.0):
            wp.transform_set_rotation(b[i], c.q)
        b[i].p += wp.transform_get_translation(c)
        wp.transform_set_translation(b[i], wp.transform_get_translation(b[i]) * T(0.5))

    return transforms


@case(3, arr(3, element="v6", **ALL), arr(3, element="v6", **ALL), arr(3, element="t", **ALL),
      out(3, 71))  # fmt: skip
def spatial(T):
    S, X = of(T, wp.spatial_vector), of(T, wp.transform)

    @wp.kernel
    def spatial(
        a: wp.array(dtype=S), b: wp.array(dtype=S), t: wp.array(dtype=X), y: wp.array2d(dtype=T)
    ):
        i = wp.tid()
        put(y, i, 0, wp.spatial_cross(a[i], b[i]))
        put(y, i, 6, wp.spatial_cross_dual(a[i], b[i]))
        y[i, 12] = wp.spatial_dot(a[i], b[i])
        put(y, i, 13, S(wp.spatial_bottom(a[i]), wp.spatial_top(b[i])))
        put(y, i, 19, wp.transform_twist(t[i], a[i]))
        put(y, i, 25, wp.transform_wrench(t[i], b[i]))
        r = wp.quat_to_matrix(t[i].q)
        m = wp.spatial_adjoint(r, wp.skew(t[i].p) * r)
        put_matrix(y, i, 31, m)
        put(y, i, 67, wp.velocity_at_point(m * a[i], t[i].p))
        y[i, 70] = wp.velocity_at_point(a[i], wp.spatial_top(b[i])).z

    return spatial
