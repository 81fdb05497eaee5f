"""Quaternion, transform and spatial builtins: values, host and kernels, special points."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

import engine as wp

RNG = np.random.default_rng(20240611)
AXES = "xyz"
TAIT_BRYAN = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
PROPER = [(0, 1, 0), (0, 2, 0), (1, 0, 1), (1, 2, 1), (2, 0, 2), (2, 1, 2)]
HALF_TURNS = [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0.6, -0.8, 0, 0), (0, 0.6, 0.8, 0)]
SPECIAL = [(0, 0, 0, 1), (0, 0, 0, -1), *HALF_TURNS, (0.5, 0.5, 0.5, -0.5), (0, 1e-9, 0, 1)]


def units(count=20):
    """Random rotations, and special ones."""
    q = RNG.normal(size=(count, 4))
    return [*(q / np.linalg.norm(q, axis=1, keepdims=True)), *np.array(SPECIAL, float)]


def numbers(*values):
    return np.concatenate([np.ravel(np.asarray(v)) for v in values])


def near(got, expected, tolerance=1e-12):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=tolerance, atol=tolerance)


def same_rotation(q, rotation):
    near(abs(np.dot(np.asarray(q), rotation.as_quat())), 1.0)


def test_products_and_rotated_vectors():
    for p, q in zip(units(), units()[::-1], strict=True):
        a, b, v = wp.quatd(p), wp.quatd(q), wp.vec3d(RNG.normal(size=3))
        r, s = Rotation.from_quat(p), Rotation.from_quat(q)
        same_rotation(a * b, r * s)
        same_rotation(wp.quat_inverse(a), r.inv())
        near(wp.quat_rotate(a, v), r.apply(v))
        near(wp.quat_rotate_inv(a, v), r.inv().apply(v))
        near(wp.quat_to_matrix(a), r.as_matrix())
        near(wp.quat_rotate(a * b, v), wp.quat_rotate(a, wp.quat_rotate(b, v)))


def test_products_follow_the_rules_of_quaternions():
    i, j, k, one = (wp.quatd(*row) for row in np.eye(4))
    assert i * j == k and j * k == i and k * i == j and i * i == -one
    a, b, c = (wp.quatd(RNG.normal(size=4)) for _ in range(3))
    near((a * b) * c, a * (b * c))
    near(a * wp.quat_inverse(a), [0, 0, 0, wp.length_sq(a)])
    near(wp.length(a * b), wp.length(a) * wp.length(b))
    near(2.0 / a, 2.0 / np.asarray(a))
    assert list(wp.normalize(wp.quatd())) == [0, 0, 0, 1]


def test_rotations_from_matrices():
    for q in units():
        r = Rotation.from_quat(q)
        same_rotation(wp.quat_from_matrix(wp.mat33d(r.as_matrix())), r)
        whole = np.eye(4)
        whole[:3, :3] = r.as_matrix()
        whole[:3, 3] = p = RNG.normal(size=3)
        same_rotation(wp.quat_from_matrix(wp.mat44d(whole)), r)
        t = wp.transform_from_matrix(wp.mat44d(whole))
        near(t.p, p)
        same_rotation(t.q, r)


def test_axes_and_angles():
    for q in units():
        axis, angle = wp.quat_to_axis_angle(wp.quatd(q))
        near(numbers(axis) * angle, Rotation.from_quat(q).as_rotvec() * 1.0, 1e-9) if abs(
            q[3]
        ) > 0 else near(angle, math.pi)
        assert 0 <= angle <= math.pi + 1e-15
        same_rotation(wp.quat_from_axis_angle(axis, angle), Rotation.from_quat(q))
    near(wp.quat_to_axis_angle(wp.quatd(0, 0, 0, 1))[0], np.zeros(3))


def test_vectors_are_turned_onto_each_other():
    for _ in range(10):
        a, b = RNG.normal(size=(2, 3)) * [[0.1], [20.0]]
        q = wp.quat_between_vectors(wp.vec3d(a), wp.vec3d(b))
        near(wp.quat_rotate(q, wp.vec3d(a / np.linalg.norm(a))), b / np.linalg.norm(b))
        for c in (a, *np.eye(3), *-np.eye(3)):
            q = wp.quat_between_vectors(wp.vec3d(c), wp.vec3d(-2 * c))
            near(wp.length(q), 1.0)
            near(wp.quat_rotate(q, wp.vec3d(c)), -c)


@pytest.mark.parametrize("axes", TAIT_BRYAN + PROPER)
def test_euler_angles(axes):
    letters = "".join(AXES[k] for k in axes)
    for e in RNG.uniform(-3, 3, (8, 3)):
        expected = Rotation.from_euler(letters, e[list(axes)])  # lower case: fixed axes
        same_rotation(wp.quat_from_euler(wp.vec3d(e), *axes), expected)
    middle = (0.0, math.pi) if axes in PROPER else (math.pi / 2, -math.pi / 2)
    lock = [Rotation.from_euler(letters, [0.3, m, 0.5]).as_quat() for m in middle]
    for q in [*units(), *lock]:
        got = np.asarray(wp.quat_to_euler(wp.quatd(q), *axes))
        places = list(axes) if axes in TAIT_BRYAN else [axes[0], axes[1], 3 - axes[0] - axes[1]]
        found = Rotation.from_euler(letters, got[places])
        near(abs(np.dot(found.as_quat(), q)), 1.0, 1e-9)
        low, high = (0, math.pi) if axes in PROPER else (-math.pi / 2, math.pi / 2)
        assert low - 1e-9 <= got[axes[1]] <= high + 1e-9


def test_roll_pitch_yaw():
    for e in RNG.uniform(-3, 3, (8, 3)):
        same_rotation(wp.quat_rpy(*map(wp.float64, e)), Rotation.from_euler("xyz", e))
    for q in units():
        got = wp.quat_to_rpy(wp.quatd(q))
        same_rotation(wp.quat_rpy(*map(wp.float64, got)), Rotation.from_quat(q))
        assert abs(got[1]) <= math.pi / 2 + 1e-12


def test_slerp():
    for p, q in zip(units(), units()[::-1], strict=True):
        if abs(np.dot(p, q)) < 1e-6:  # half a turn apart: two ways are shortest
            continue
        both = Slerp([0, 1], Rotation.from_quat([p, q]))
        for t in (0.0, 0.3, 0.5, 1.0):
            got = wp.quat_slerp(wp.quatd(p), wp.quatd(q), wp.float64(t))
            same_rotation(got, both(t))
            near(got, wp.quat_slerp(wp.quatd(p), -wp.quatd(q), wp.float64(t)))
    # From far to near: nothing jumps where the formula changes.
    a = wp.quatd(units()[0])
    for angle in (1e-300, 1e-12, 1e-3, 0.0199, 0.02, 0.0201, 0.5, 3.0):
        b = a * wp.quat_from_axis_angle(wp.vec3d(0.6, 0, 0.8), wp.float64(angle))
        got = wp.quat_slerp(a, b, wp.float64(0.7))
        near(
            got, a * wp.quat_from_axis_angle(wp.vec3d(0.6, 0, 0.8), wp.float64(0.7 * angle)), 1e-14
        )


def test_twist():
    for q in units():
        axis = RNG.normal(size=3)
        axis /= np.linalg.norm(axis)
        twist = wp.quat_twist(wp.vec3d(axis), wp.quatd(q))
        swing = wp.quatd(q) * wp.quat_inverse(twist)
        near(np.dot(np.asarray(swing)[:3], axis), 0.0)
        near(np.cross(np.asarray(twist)[:3], axis), np.zeros(3))
        signed = wp.quat_twist_angle_signed(wp.vec3d(axis), wp.quatd(q))
        near(wp.quat_from_axis_angle(wp.vec3d(axis), wp.float64(signed)), twist)
        near(wp.quat_twist_angle(wp.vec3d(axis), wp.quatd(q)), abs(signed))


def matrix_of(t):
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = Rotation.from_quat(np.asarray(t)[3:]).as_matrix(), np.asarray(t)[:3]
    return out


def random_transform(q):
    return wp.transformd(wp.vec3d(RNG.normal(size=3)), wp.quatd(q))


def test_transforms_are_matrices():
    for p, q in zip(units(), units()[::-1], strict=True):
        a, b = random_transform(p), random_transform(q)
        x = wp.vec3d(RNG.normal(size=3))
        near(wp.transform_to_matrix(a), matrix_of(a))
        near(wp.transform_to_matrix(a * b), matrix_of(a) @ matrix_of(b))
        assert wp.transform_multiply(a, b) == a * b
        near(wp.transform_to_matrix(wp.transform_inverse(a)), np.linalg.inv(matrix_of(a)))
        near(wp.transform_point(a, x), (matrix_of(a) @ [*x, 1])[:3])
        near(wp.transform_vector(a, x), (matrix_of(a) @ [*x, 0])[:3])
        m = wp.mat44d(RNG.normal(size=16))
        near(wp.transform_point(m, x), (np.asarray(m) @ [*x, 1])[:3])
        near(wp.transform_vector(m, x), (np.asarray(m) @ [*x, 0])[:3])
        assert wp.transform_get_translation(a) == a.p and wp.transform_get_rotation(a) == a.q
        s = wp.vec3d(RNG.uniform(0.5, 2, 3))
        composed = wp.transform_compose(a.p, a.q, s)
        near(composed, matrix_of(a) @ np.diag([*s, 1]))
        position, rotation, scale = wp.transform_decompose(composed)
        near(position, a.p)
        near(scale, s)
        same_rotation(rotation, Rotation.from_quat(p))


def test_spatial_vectors():
    for q in units(5):
        t = random_transform(q)
        a, b = (wp.spatial_vectord(RNG.normal(size=6)) for _ in range(2))
        w, v, n, f = np.asarray(a)[:3], np.asarray(a)[3:], np.asarray(b)[:3], np.asarray(b)[3:]
        near(wp.spatial_top(a), w)
        near(wp.spatial_bottom(a), v)
        near(wp.spatial_dot(a, b), np.dot(np.asarray(a), np.asarray(b)))
        near(wp.spatial_cross(a, b), [*np.cross(w, n), *(np.cross(v, n) + np.cross(w, f))])
        near(wp.spatial_cross_dual(a, b), [*(np.cross(w, n) + np.cross(v, f)), *np.cross(w, f)])
        r = Rotation.from_quat(q).as_matrix()
        s = np.asarray(wp.skew(t.p)) @ r
        m = wp.spatial_adjoint(wp.mat33d(r), wp.mat33d(s))
        near(m, np.block([[r, np.zeros((3, 3))], [s, r]]))
        near(wp.transform_twist(t, a), np.asarray(m) @ np.asarray(a))
        # Power does not depend on the frame.
        power = wp.spatial_dot(wp.transform_twist(t, a), wp.transform_wrench(t, b))
        near(power, wp.spatial_dot(a, b))
        x = RNG.normal(size=3)
        near(wp.velocity_at_point(a, wp.vec3d(x)), v + np.cross(w, x))


# ---- one function, run by Python and by kernels


@wp.func
def rotations(a, b, v, s):
    # Python's numbers have no type of their own: type(s)(...) gives them one on the host.
    axis, angle = wp.quat_to_axis_angle(a)
    twist = wp.quat_twist_angle(axis, b), wp.quat_twist_angle_signed(axis, b)
    e = wp.quat_to_euler(b, 2, 0, 1)
    return (
        a * b,
        s / wp.normalize(a),
        wp.quat_rotate(a, v),
        wp.quat_rotate_inv(b, v),
        wp.quat_from_matrix(wp.quat_to_matrix(a)),
        wp.quat_from_axis_angle(axis, type(s)(angle * s)),
        wp.quat_slerp(a, b, s),
        wp.quat_twist(axis, b),
        type(e)(type(s)(twist[0]), type(s)(twist[1]), type(s)(wp.dot(a, b))),
        wp.quat_rpy(type(s)(e.x), type(s)(e.y), type(s)(e.z)),
        wp.quat_to_rpy(b),
        wp.quat_from_euler(e, 0, 1, 0),
        wp.quat_between_vectors(v, axis),
    )


@wp.func
def motions(t, u, v, x, s):
    m = wp.transform_compose(u.p, t.q, v)
    p, q, scale = wp.transform_decompose(m)
    return (
        t * u,
        wp.transform_inverse(t) + u * s,
        wp.transform_point(t, v) + wp.transform_vector(m, v),
        wp.transform_twist(t, x) - wp.transform_wrench(u, x),
        wp.spatial_cross(x, x * s) + wp.spatial_cross_dual(x, wp.spatial_adjoint(
            wp.quat_to_matrix(q), wp.skew(p)) * x),
        wp.transform_from_matrix(wp.transform_to_matrix(t)),
        wp.velocity_at_point(x, scale),
    )  # fmt: skip


@wp.func
def put(y, k, v):
    for c in range(len(v)):
        y[k + c] = v[c]
    return k + len(v)


def types_of(T):
    suffix = {wp.float16: "h", wp.float32: "f", wp.float64: "d"}[T]
    return [getattr(wp, n + suffix) for n in ("quat", "vec3", "transform", "spatial_vector")]


def both_kernels(T):
    Q, V, X, S = types_of(T)

    @wp.kernel
    def rotate_all(a: Q, b: Q, v: V, s: T, y: wp.array(dtype=T)):
        r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12 = rotations(a, b, v, s)
        k = put(y, 0, r0)
        k = put(y, k, r1)
        k = put(y, k, r2)
        k = put(y, k, r3)
        k = put(y, k, r4)
        k = put(y, k, r5)
        k = put(y, k, r6)
        k = put(y, k, r7)
        k = put(y, k, r8)
        k = put(y, k, r9)
        k = put(y, k, r10)
        k = put(y, k, r11)
        k = put(y, k, r12)

    @wp.kernel
    def move_all(t: X, u: X, v: V, x: S, s: T, y: wp.array(dtype=T)):
        r0, r1, r2, r3, r4, r5, r6 = motions(t, u, v, x, s)
        k = put(y, 0, r0)
        k = put(y, k, r1)
        k = put(y, k, r2)
        k = put(y, k, r3)
        k = put(y, k, r4)
        k = put(y, k, r5)
        k = put(y, k, r6)

    return rotate_all, move_all


def arguments(T, q, p):
    Q, V, X, S = types_of(T)
    rng = np.random.default_rng(5)
    v, x, s = V(rng.uniform(0.5, 1.5, 3)), S(rng.normal(size=6)), T(0.375)
    t, u = X(rng.normal(size=3), Q(q)), X(rng.normal(size=3), Q(p))
    return [Q(q), Q(p), v, s], [t, u, v, x, s]


@pytest.mark.parametrize("T", [wp.float16, wp.float32, wp.float64])
def test_host_and_kernel_give_the_same(T):
    eps = float(np.finfo(T.__ir_type__.numpy).eps)
    kernels = both_kernels(T)
    every = units(4)
    for q, p in zip(every, every[3:] + every[:3], strict=True):
        for kernel, func, args in zip(
            kernels, (rotations, motions), arguments(T, q, p), strict=True
        ):
            expected = numbers(*func(*args))
            y = wp.zeros(len(expected), dtype=T)
            wp.launch(kernel, dim=1, inputs=args, outputs=[y])
            got = y.numpy()
            # Transcendental functions of NumPy and of the C library differ in the last place.
            np.testing.assert_allclose(got, expected, rtol=64 * eps, atol=64 * eps)


def test_half_precision_is_near_to_double():
    q, p = units(2)[:2]
    results = []
    for T in (wp.float16, wp.float64):
        kernels = both_kernels(T)
        # Both from numbers that half precision holds.
        args = arguments(wp.float16, q, p)
        row = []
        for kernel, mine, given in zip(kernels, arguments(T, q, p), args, strict=True):
            values = [type(m)(g) for m, g in zip(mine, given, strict=True)]
            y = wp.zeros(80, dtype=T)
            wp.launch(kernel, dim=1, inputs=values, outputs=[y])
            row.append(y.numpy().astype(float))
        results.append(numbers(*row))
    np.testing.assert_allclose(results[0], results[1], rtol=0.02, atol=0.02)
