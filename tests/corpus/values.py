"""Scalar functions, vectors and matrices."""

import engine as wp
from tests.corpus.case import arr, case, out


def vector(T, n):
    single = {2: wp.vec2, 3: wp.vec3, 4: wp.vec4}
    double = {2: wp.vec2d, 3: wp.vec3d, 4: wp.vec4d}
    return (double if T is wp.float64 else single)[n]


def matrix(T, n):
    single = {2: wp.mat22, 3: wp.mat33, 4: wp.mat44}
    double = {2: wp.mat22d, 3: wp.mat33d, 4: wp.mat44d}
    return (double if T is wp.float64 else single)[n]


@case(6, arr(6), out(6))
def elementary(T):
    @wp.kernel
    def elementary(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        v = x[i]
        a = wp.sin(v) * wp.exp(-v * v) + wp.sqrt(v * v + T(1.0))
        b = wp.tan(v * T(0.5)) + wp.atan(v) + wp.asin(v * T(0.5)) + wp.acos(v * T(0.5))
        c = wp.sinh(v) - wp.cosh(v) * wp.tanh(v) + wp.log(v) + wp.cos(v)
        d = wp.atan2(v, T(2.0) - v) + wp.log2(v) + wp.log10(v + T(1.0)) + wp.cbrt(v)
        y[i] = a * b + c * d

    return elementary


@case(6, arr(6), arr(6), out(6))
def powers_and_quotients(T):
    @wp.kernel
    def powers_and_quotients(x: wp.array(dtype=T), z: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        a = wp.pow(x[i], z[i]) + x[i] ** T(3.0) + x[i] ** 2.0
        y[i] = a / (z[i] + x[i]) - (z[i] % T(0.4)) * x[i]

    return powers_and_quotients


@case(6, arr(6), arr(6), out(6))
def piecewise(T):
    @wp.kernel
    def piecewise(x: wp.array(dtype=T), z: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        a = wp.min(x[i], z[i]) * T(2.0) + wp.max(x[i], z[i] * z[i])
        b = wp.clamp(x[i], T(0.7), T(1.3)) * z[i] + wp.abs(x[i] - z[i])
        c = wp.where(x[i] > z[i], x[i] * x[i], z[i]) + wp.sign(x[i]) * z[i]
        d = wp.floor(x[i]) * x[i] + wp.ceil(z[i]) + wp.step(x[i] - T(1.0)) * x[i]
        y[i] = a * b + c * d

    return piecewise


@case(4, arr(4, element="v3"), arr(4, element="v3"), out(4), out(4, element="v3"))
def vectors(T):
    V = vector(T, 3)

    @wp.kernel
    def vectors(
        a: wp.array(dtype=V), b: wp.array(dtype=V), y: wp.array(dtype=T), z: wp.array(dtype=V)
    ):
        i = wp.tid()
        u = a[i]
        v = b[i]
        c = wp.cross(u, v)
        y[i] = wp.dot(u, v) * wp.length(c) + u[0] * v.y
        z[i] = wp.normalize(u + v * T(2.0)) - T(0.5) * c / (u.z + T(1.0)) + wp.cw_mul(u, -v)

    return vectors


@case(4, arr(4, element="v3"), out(4, element="v3"))
def components(T):
    V = vector(T, 3)

    @wp.kernel
    def components(a: wp.array(dtype=V), z: wp.array(dtype=V)):
        i = wp.tid()
        v = a[i]
        v[0] = v[1] * v[2]
        v.y = v[0] * v[0]
        v[0] += v[2]
        v[2] *= v.x
        for k in range(3):
            v[k] = v[k] * v[(k + 1) % 3]
        z[i] = v

    return components


@case(3, arr(3, element="v2"), arr(3), out(3, element="v2"))
def element_components(T):
    V = vector(T, 2)

    @wp.kernel
    def element_components(a: wp.array(dtype=V), x: wp.array(dtype=T), z: wp.array(dtype=V)):
        i = wp.tid()
        z[i][0] = a[i][1] * x[i]
        z[i].y = a[i].x * a[i].x
        z[i][1] += x[i] * T(3.0)

    return element_components


@case(3, arr(3, element="m33"), arr(3, element="v3"), out(3, element="v3"), out(3))
def matrices(T):
    M = matrix(T, 3)
    V = vector(T, 3)

    @wp.kernel
    def matrices(
        m: wp.array(dtype=M), v: wp.array(dtype=V), z: wp.array(dtype=V), y: wp.array(dtype=T)
    ):
        i = wp.tid()
        a = m[i]
        # The identity keeps the inverse well conditioned in float32.
        b = a * wp.transpose(a) + wp.identity(n=3, dtype=T) + wp.outer(v[i], v[i]) * T(0.3)
        z[i] = b * v[i] + v[i] * a + wp.inverse(b) * v[i]
        y[i] = wp.determinant(a) + b[0, 1] * a[2][0] + wp.trace(a)

    return matrices


@case(3, arr(3, element="m22"), out(3, element="m22"))
def matrix_entries(T):
    M = matrix(T, 2)

    @wp.kernel
    def matrix_entries(m: wp.array(dtype=M), z: wp.array(dtype=M)):
        i = wp.tid()
        a = m[i]
        for k in range(2):
            a[k, 0] = a[k, 0] * a[k, 1]
        a[0, 1] += a[1, 1]
        b = M(a[0, 0], a[1, 0], a[0, 1], T(2.0))
        z[i] = b * wp.inverse(a + M(T(3.0), T(0.0), T(0.0), T(4.0)))

    return matrix_entries


@case(2, arr(2, element="m44"), arr(2, element="v4"), out(2, element="v4"))
def four(T):
    M = matrix(T, 4)
    V = vector(T, 4)

    @wp.kernel
    def four(m: wp.array(dtype=M), v: wp.array(dtype=V), z: wp.array(dtype=V)):
        i = wp.tid()
        shift = wp.identity(n=4, dtype=T) * T(5.0)
        a = m[i] + shift
        z[i] = wp.inverse(a) * v[i] * wp.determinant(a) + V(v[i].w, v[i][0], T(1.0), v[i].z)

    return four


@case(4, arr(4), out(4))
def casts_and_integers(T):
    @wp.kernel
    def casts_and_integers(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        k = int(x[i] * T(7.0))
        b = bool(k)
        s = T(k // 2) * x[i] + T(k % 3)
        if b:
            s += T(1 << i) * x[i]
        y[i] = s * T(float(i) + 1.0)

    return casts_and_integers
