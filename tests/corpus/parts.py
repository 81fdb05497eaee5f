"""Slices of vectors and matrices, parts of transforms, values made to measure."""

import engine as wp
from tests.corpus.case import arr, case, inout, out
from tests.corpus.values import matrix, vector


def of(T, single):
    """The type of the same shape over T: `of(T, wp.quat)`."""
    if T is not wp.float64:
        return single
    return getattr(wp, single.__name__[:-1] + "d")


@case(3, arr(3, element="v4"), arr(3, element="m33"), out(3, element="v4"), out(3, element="m33"))
def slices(T):
    V4, M33 = vector(T, 4), matrix(T, 3)

    @wp.kernel
    def slices(
        v: wp.array(dtype=V4),
        m: wp.array(dtype=M33),
        y: wp.array(dtype=V4),
        z: wp.array(dtype=M33),
    ):
        i = wp.tid()
        a = v[i]
        a[1:3] = a[::-2] * a[0]
        a[2:] += v[i][:2]
        b = m[i]
        b[:, 1] = b[0] + b[2, :] * a[3]
        b[1:, :2] *= T(2.0)
        b[::2, 2] = a[1:3]
        z[i][1:, 1:] = b[:2, :2] * b[1:, 1:]
        z[i][0] = b[1:][1] * m[i][:, 2][1]
        z[i][1:, 0] -= v[i][2:]
        y[i] = wp.vector(wp.length(b[0:2, 0]), wp.dot(a[:2], v[i][1:3]), a[3], T(1.0))
        y[i][1:3] += a[::3]

    return slices


@case(3, inout(3, element="v4"), arr(3), out(3))
def slices_in_loops(T):
    V4 = vector(T, 4)

    @wp.kernel
    def slices_in_loops(v: wp.array(dtype=V4), s: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        a = v[i]
        total = T(0.0)
        for k in range(3):
            a[:3] = a[1:] * s[i]
            a[1:][k] = a[0] * T(1.5)  # a run-time index into a slice
            total += wp.dot(a[:2], a[2:])
        v[i][2:] = a[:2]
        y[i] = total

    return slices_in_loops


@case(3, arr(3, element="t"), inout(3, element="t"), arr(3, element="q"), out(3, element="v3"))
def parts_of_transforms(T):
    X, Q, V3 = of(T, wp.transform), of(T, wp.quat), vector(T, 3)

    @wp.kernel
    def parts_of_transforms(
        t: wp.array(dtype=X), u: wp.array(dtype=X), q: wp.array(dtype=Q), y: wp.array(dtype=V3)
    ):
        i = wp.tid()
        a = t[i]
        a.p = a.p * a.q.w
        a.q.x = a.p[1] * q[i].w
        a.q *= T(0.5)
        u[i].p.y = a.p.z * u[i].q.x
        u[i].q = a.q - q[i] * a.p.x
        u[i].p += wp.vector(q[i].x, q[i].y, a.q.x)
        b = X(a.p, a.q) + t[i] * a.p.x - a / q[i].z
        y[i] = wp.cross(b.p, b.q[:3]) + X(q=q[i]).p

    return parts_of_transforms


@case(3, arr(3, element="v3"), arr(3, element="q"), out(3, element="m23"), out(3, element="v6"))
def made_to_measure(T):
    V3, Q, M23 = vector(T, 3), of(T, wp.quat), wp.types.matrix(shape=(2, 3), dtype=T)
    V6 = wp.types.vector(length=6, dtype=T)

    @wp.kernel
    def made_to_measure(
        v: wp.array(dtype=V3), q: wp.array(dtype=Q), y: wp.array(dtype=M23), z: wp.array(dtype=V6)
    ):
        i = wp.tid()
        a = v[i]
        r = wp.quaternion(a, q[i].w) * a.x + wp.lerp(q[i], wp.quaternion(a.x, a.y, a.z, a.x), a.y)
        m = wp.matrix(a.x, a.y, r.x, r.y, r.z, r.w, shape=(2, 3))
        m += wp.matrix(a.z, shape=(2, 3), dtype=T)
        wide = wp.types.vector(length=7, dtype=T)(a.y)
        wide[4] = m[1, 1] * m[0, 0]
        y[i] = m * wp.dot(wide, wide)
        z[i] = V6(r[:3], wp.transpose(m)[:, 1])

    return made_to_measure
