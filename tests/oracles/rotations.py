"""Quaternions by SciPy's rotations, transforms by 4x4 matrices, spatial vectors by blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from tests.oracles import Oracle

NONE = "a rotation has finite components"


def rotation(q: Any) -> Any:
    return Rotation.from_quat(q)


def product(a: Any, b: Any) -> Any:
    """Hamilton's product; of transforms, the motion b and then a."""
    if len(a) == 7:
        return np.concatenate([a[:3] + turned(a[3:], b[:3]), product(a[3:], b[3:])])
    u, v, s, t = a[:3], b[:3], a[3], b[3]
    return np.append(s * v + t * u + np.cross(u, v), s * t - np.dot(u, v))


def conjugate(q: Any) -> Any:
    return np.append(-q[:3], q[3])


def turned(q: Any, v: Any) -> Any:
    return rotation(q).apply(v)


def unit(x: Any) -> Any:
    return x / np.linalg.norm(x).astype(x.dtype)


def normalized(*which: int) -> Any:
    """Makes rotations of the quaternions (and of those in transforms) at these places."""

    def apply(args: list[Any]) -> list[Any]:
        out = list(args)
        for k in which:
            a = out[k]
            out[k] = np.concatenate([a[:3], unit(a[3:])]) if len(a) == 7 else unit(a)
        return out

    return apply


def same_rotation(results: Sequence[Any], want: Any, tolerance: float) -> None:
    (q,) = results
    got = np.asarray(q, float)
    np.testing.assert_allclose(got * np.sign(np.dot(got, want) or 1), want, atol=tolerance)


def as_rotation(f: Any) -> Any:
    """A check of a quaternion: either sign is the same rotation."""
    return lambda results, args, tolerance: same_rotation(results, f(*args), tolerance)


def of_matrix(args: list[Any]) -> list[Any]:
    """A rotation matrix in place of a random one."""
    (m,) = args
    q, r = np.linalg.qr(m[:3, :3].astype(float))
    q *= np.sign(np.linalg.det(q))
    out = np.eye(len(m))
    out[:3, :3] = q
    if len(m) == 4:
        out[:3, 3] = m[:3, 3]
    return [out.astype(m.dtype)]


def scaled_matrix(args: list[Any]) -> list[Any]:
    (m,) = of_matrix(args)
    out = m.copy()
    out[:3, :3] *= np.array([0.5, 2.0, 1.25], m.dtype)
    return [out]


def axis_angle(results: Sequence[Any], args: Sequence[Any], tolerance: float) -> None:
    axis, angle = (np.asarray(r, float) for r in results)
    vector = rotation(args[0]).as_rotvec()
    assert -tolerance <= angle <= np.pi + tolerance
    np.testing.assert_allclose(np.linalg.norm(axis), 1, atol=tolerance)
    np.testing.assert_allclose(axis * angle, vector, atol=8 * tolerance)


def between(results: Sequence[Any], args: Sequence[Any], tolerance: float) -> None:
    (q,) = (np.asarray(r, float) for r in results)
    a, b = map(unit, args)
    np.testing.assert_allclose(turned(q, a), b, atol=tolerance)
    # No way is shorter than the angle between the two.
    np.testing.assert_allclose(2 * np.arccos(min(1, abs(q[3]))), np.arccos(np.dot(a, b)), atol=1e-2)


def axes(args: list[Any]) -> list[Any]:
    """Three axes, neighbours different, and a rotation or angles before them."""
    first = [unit(args[0])] if len(args[0]) == 4 else [args[0]]
    i, j, k = (int(a) % 3 for a in args[1:])
    j = (i + 1) % 3 if i == j else j
    k = (j + 1) % 3 if k == j else k
    return [*first, *(type(args[1])(n) for n in (i, j, k))]


def from_euler(e: Any, i: int, j: int, k: int) -> Any:
    """Turns about fixed axes, the first about i, by the angle of that axis."""
    out = Rotation.identity()
    for n in (i, j, k):
        out = Rotation.from_rotvec(np.eye(3)[n] * e[n]) * out
    return out.as_quat()


def to_euler(results: Sequence[Any], args: Sequence[Any], tolerance: float) -> None:
    (e,) = (np.asarray(r, float) for r in results)
    q, i, j, k = args
    if i == k:  # two angles belong to one axis; the third component has the second of them
        spare = 3 - i - j
        out = Rotation.identity()
        for axis, angle in ((i, e[i]), (j, e[j]), (i, e[spare])):
            out = Rotation.from_rotvec(np.eye(3)[axis] * angle) * out
        return same_rotation([out.as_quat()], q, 64 * tolerance)
    same_rotation([from_euler(e, i, j, k)], q, 64 * tolerance)


def slerp(a: Any, b: Any, t: float) -> Any:
    return Slerp([0, 1], Rotation.from_quat([a, b]))(t).as_quat()


def twist(axis: Any, q: Any) -> Any:
    return unit(np.append(axis * np.dot(axis, q[:3]), q[3]))


def twist_angle(axis: Any, q: Any) -> float:
    return 2 * np.arctan2(np.dot(axis, q[:3]), q[3])


def matrix(t: Any) -> Any:
    out = np.eye(4)
    out[:3, :3] = rotation(t[3:]).as_matrix()
    out[:3, 3] = t[:3]
    return out


def inverse(t: Any) -> Any:
    back = conjugate(t[3:])
    return np.concatenate([-turned(back, t[:3]), back])


def compose(p: Any, q: Any, s: Any) -> Any:
    out = np.eye(4)
    out[:3, :3] = rotation(q).as_matrix() * s
    out[:3, 3] = p
    return out


def decompose(results: Sequence[Any], args: Sequence[Any], tolerance: float) -> None:
    p, q, s = (np.asarray(r, float) for r in results)
    np.testing.assert_allclose(compose(p, unit(q), s), args[0], atol=8 * tolerance)


def from_matrix(results: Sequence[Any], args: Sequence[Any], tolerance: float) -> None:
    (t,) = (np.asarray(r, float) for r in results)
    np.testing.assert_allclose(matrix(t), args[0], atol=8 * tolerance)


def moved(t: Any, x: Any, w: float) -> Any:
    m = matrix(t) if np.ndim(t) == 1 else t
    return (m @ np.append(x, w))[:3]


def skew(v: Any) -> Any:
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def motion(a: Any) -> Any:
    """The matrix of `spatial_cross(a, ...)`, in the order (angular, linear)."""
    w, v = skew(a[:3]), skew(a[3:])
    return np.block([[w, np.zeros((3, 3))], [v, w]])


def moved_twist(t: Any, x: Any) -> Any:
    r = rotation(t[3:]).as_matrix()
    w = r @ x[:3]
    return np.concatenate([w, r @ x[3:] + np.cross(t[:3], w)])


def moved_wrench(t: Any, x: Any) -> Any:
    r = rotation(t[3:]).as_matrix()
    f = r @ x[3:]
    return np.concatenate([r @ x[:3] + np.cross(t[:3], f), f])


def replaced(t: Any, part: Any) -> Any:
    return np.concatenate([part, t[3:]] if len(part) == 3 else [t[:3], part])


def of_unit(f: Any, *which: int, **more: Any) -> Oracle:
    return Oracle(f, sample=normalized(*which), special=NONE, degree=1, units=512, **more)


OPERATIONS: dict[str, Any] = {}
COMPOSED = {
    "mul": Oracle(product, special=NONE, sample=lambda a: normalized(0, 1)(a), units=512),
    "*": Oracle(product, special=NONE, sample=lambda a: normalized(0, 1)(a), units=512),
    "normalize": Oracle(lambda q: q / np.linalg.norm(q), special=NONE),
    "quat_inverse": Oracle(conjugate),
    "quat_rotate": of_unit(turned, 0),
    "quat_rotate_inv": of_unit(lambda q, v: turned(conjugate(q), v), 0),
    "quat_to_matrix": of_unit(lambda q: rotation(q).as_matrix(), 0),
    "quat_from_matrix": Oracle(
        check=as_rotation(lambda m: Rotation.from_matrix(m[:3, :3]).as_quat()),
        sample=of_matrix, special=NONE),
    "quat_from_axis_angle": Oracle(
        check=as_rotation(lambda a, x: Rotation.from_rotvec(a * x).as_quat()),
        sample=normalized(0), special=NONE),
    "quat_to_axis_angle": Oracle(
        check=axis_angle, sample=normalized(0), special=NONE, units=512),
    "quat_between_vectors": Oracle(check=between, special=NONE, units=512),
    "quat_rpy": Oracle(
        check=as_rotation(lambda r, p, y: Rotation.from_euler("xyz", [r, p, y]).as_quat()),
        special=NONE),
    "quat_to_rpy": of_unit(lambda q: rotation(q).as_euler("xyz"), 0),
    "quat_from_euler": Oracle(check=as_rotation(from_euler), sample=axes, special=NONE),
    "quat_to_euler": Oracle(check=to_euler, sample=axes, special=NONE),
    "quat_slerp": Oracle(check=as_rotation(slerp), sample=normalized(0, 1), special=NONE,
                         units=512),
    "quat_twist": Oracle(twist, sample=normalized(0, 1), special=NONE, units=512),
    "quat_twist_angle": of_unit(
        lambda a, q: 2 * np.arctan2(abs(np.dot(a, q[:3])), q[3]), 0, 1),
    "quat_twist_angle_signed": of_unit(twist_angle, 0, 1),
    "spatial_top": lambda s: s[:3],
    "spatial_bottom": lambda s: s[3:],
    "spatial_dot": Oracle(lambda a, b: np.sum(a * b), degree=2),
    "spatial_cross": Oracle(lambda a, b: motion(a) @ b, degree=2, special=NONE),
    "spatial_cross_dual": Oracle(lambda a, b: -motion(a).T @ b, degree=2, special=NONE),
    "spatial_adjoint": lambda r, s: np.block([[r, np.zeros((3, 3))], [s, r]]),
    "velocity_at_point": Oracle(
        lambda s, r: s[3:] + np.cross(s[:3], r), degree=2, special=NONE),
    "transform_multiply": of_unit(product, 0, 1),
    "transform_inverse": of_unit(inverse, 0),
    "transform_get_translation": lambda t: t[:3],
    "transform_get_rotation": lambda t: t[3:],
    "transform_set_translation": replaced,
    "transform_set_rotation": replaced,
    "transform_point": Oracle(lambda t, x: moved(t, x, 1.0), special=NONE, degree=2, units=512,
                              sample=lambda a: normalized(0)(a) if a[0].ndim == 1 else a),
    "transform_vector": Oracle(lambda t, x: moved(t, x, 0.0), special=NONE, degree=2, units=512,
                               sample=lambda a: normalized(0)(a) if a[0].ndim == 1 else a),
    "transform_compose": of_unit(compose, 1),
    "transform_decompose": Oracle(
        check=decompose, sample=scaled_matrix, special=NONE, units=512),
    "transform_from_matrix": Oracle(
        check=from_matrix, sample=of_matrix, special=NONE, units=512),
    "transform_to_matrix": of_unit(matrix, 0),
    "transform_twist": Oracle(moved_twist, sample=normalized(0), special=NONE, degree=2, units=512),
    "transform_wrench": Oracle(
        moved_wrench, sample=normalized(0), special=NONE, degree=2, units=512),
}  # fmt: skip
