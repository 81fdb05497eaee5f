"""Functions of vectors, matrices and quaternions."""

from __future__ import annotations

from typing import Any

import numpy as np

import engine as wp
from adtool.selftest.case import Arr, Case, normal, spread

F: Any = wp.array(dtype=float)
V2: Any = wp.array(dtype=wp.vec2)
V3: Any = wp.array(dtype=wp.vec3)
M2: Any = wp.array(dtype=wp.mat22)
M3: Any = wp.array(dtype=wp.mat33)
Q: Any = wp.array(dtype=wp.quat)


@wp.kernel
def norms(x: V3, y: F):
    i = wp.tid()
    y[i] = wp.length(x[i])


@wp.kernel
def directions(x: V3, y: V3):
    i = wp.tid()
    y[i] = wp.normalize(x[i])


@wp.kernel
def moments(x: V3, f: V3, y: V3):
    i = wp.tid()
    y[i] = wp.cross(x[i], f[i]) * wp.dot(x[i], f[i])


@wp.kernel
def gravity(x: V3, y: V3):
    i = wp.tid()
    f = wp.vec3(0.0, 0.0, 0.0)
    for k in range(x.shape[0]):
        d = x[k] - x[i]
        s = wp.dot(d, d) + 0.01
        f += d / (s * wp.sqrt(s))
    y[i] = f


@wp.kernel
def drag(v: V3, y: V3):
    i = wp.tid()
    y[i] = v[i] * (-0.5 * wp.length(v[i]))


@wp.kernel
def bounce(x: V2, v: V2, y: V2):
    i = wp.tid()
    p = x[i]
    q = v[i]
    for _ in range(30):
        q = q + wp.vec2(0.0, -0.3)
        p = p + q * 0.05
        if p[1] < 0.0:
            p = wp.vec2(p[0], -p[1])
            q = wp.vec2(q[0], -0.8 * q[1])
    y[i] = p


@wp.kernel
def determinants(a: M3, y: F):
    i = wp.tid()
    y[i] = wp.determinant(a[i])


@wp.kernel
def inverses(a: M3, y: M3):
    i = wp.tid()
    y[i] = wp.inverse(a[i])


@wp.kernel
def powers(a: M2, y: M2):
    i = wp.tid()
    m = wp.mat22(1.0, 0.0, 0.0, 1.0)
    for _ in range(6):
        m = m * a[i]
    y[i] = m


@wp.kernel
def exponential(a: M2, y: M2):
    i = wp.tid()
    term = wp.mat22(1.0, 0.0, 0.0, 1.0)
    s = wp.mat22(1.0, 0.0, 0.0, 1.0)
    for k in range(8):
        term = term * a[i] * (1.0 / (float(k) + 1.0))
        s = s + term
    y[i] = s


@wp.kernel
def neo_hookean(f: M3, y: F):
    i = wp.tid()
    j = wp.determinant(f[i])
    m = wp.transpose(f[i]) * f[i]
    y[i] = 0.5 * (wp.trace(m) - 3.0) - wp.log(j) + 2.0 * wp.log(j) * wp.log(j)


@wp.kernel
def near_singular_solve(a: M2, b: V2, y: V2):
    i = wp.tid()
    y[i] = wp.inverse(a[i]) * b[i]


@wp.kernel
def rotations(q: Q, x: V3, y: V3):
    i = wp.tid()
    y[i] = wp.quat_rotate(wp.normalize(q[i]), x[i])


@wp.kernel
def outer_products(x: V3, w: V3, y: M3):
    i = wp.tid()
    y[i] = wp.outer(x[i], w[i]) + wp.diag(x[i])


@wp.kernel
def components(x: V3, y: V3):
    i = wp.tid()
    v = x[i]
    v[0] = v[1] * v[2]
    v[2] = wp.sin(v[0]) + v[2]
    y[i] = v


def _zeros(dtype: str, *shape: int) -> Arr:
    return Arr(np.zeros(shape), dtype)


_X = Arr(normal(5, 3), "vec3")
_V = Arr(normal(5, 3, seed=1), "vec3")
_SINGULAR = np.array([[[1.0, 2.0], [2.0, 4.0 + e]] for e in (1e-2, 3e-2, -2e-2, 5e-2)])
_DEFORMED = np.eye(3) + 0.2 * normal(4, 3, 3)

CASES: list[Case] = [
    Case(norms, "matrix", 5, (_X,), (_zeros("float", 5),)),
    Case(directions, "matrix", 5, (_X,), (_zeros("vec3", 5, 3),)),
    Case(moments, "matrix", 5, (_X, _V), (_zeros("vec3", 5, 3),)),
    Case(gravity, "matrix", 5, (_X,), (_zeros("vec3", 5, 3),)),
    Case(drag, "matrix", 5, (_V,), (_zeros("vec3", 5, 3),)),
    Case(bounce, "chaotic", 4, (Arr(spread(0.2, 1.0, 8).reshape(4, 2), "vec2"),
                                Arr(normal(4, 2), "vec2")), (_zeros("vec2", 4, 2),)),
    Case(determinants, "matrix", 4, (Arr(normal(4, 3, 3), "mat33"),), (_zeros("float", 4),)),
    Case(inverses, "matrix", 4, (Arr(_DEFORMED, "mat33"),), (_zeros("mat33", 4, 3, 3),)),
    Case(powers, "matrix", 4, (Arr(normal(4, 2, 2), "mat22"),), (_zeros("mat22", 4, 2, 2),)),
    Case(exponential, "matrix", 4, (Arr(normal(4, 2, 2), "mat22"),), (_zeros("mat22", 4, 2, 2),)),
    Case(neo_hookean, "matrix", 4, (Arr(_DEFORMED, "mat33"),), (_zeros("float", 4),)),
    Case(near_singular_solve, "near singular", 4,
         (Arr(_SINGULAR, "mat22"), Arr(normal(4, 2), "vec2")), (_zeros("vec2", 4, 2),)),
    Case(rotations, "matrix", 5, (Arr(normal(5, 4), "quat"), _X), (_zeros("vec3", 5, 3),)),
    Case(outer_products, "matrix", 5, (_X, _V), (_zeros("mat33", 5, 3, 3),)),
    Case(components, "matrix", 5, (_X,), (_zeros("vec3", 5, 3),)),
]  # fmt: skip
