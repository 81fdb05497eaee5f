"""The kernels that are measured, written once for both frameworks.

The framework is named by the environment variable BENCH_FRAMEWORK (`engine` or
`warp`); its module stands here as `wp`.
"""

import importlib
import os

wp = importlib.import_module(os.environ.get("BENCH_FRAMEWORK", "engine"))


@wp.kernel
def tiny(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[0] = x[0] * x[0]


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = a * x[i] + y[i]


@wp.kernel
def elementwise(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    y[i] = wp.sin(v) * wp.exp(-v * v) + wp.sqrt(v * v + 1.0)


@wp.kernel
def nbody(
    x: wp.array(dtype=wp.vec3), mass: wp.array(dtype=float), n: int, a: wp.array(dtype=wp.vec3)
):
    i = wp.tid()
    here = x[i]
    total = wp.vec3(0.0, 0.0, 0.0)
    for j in range(n):
        d = x[j] - here
        s = wp.dot(d, d) + 0.01
        total += d * (mass[j] / (s * wp.sqrt(s)))
    a[i] = total


@wp.kernel
def stencil(u: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] + 0.1 * (around - 4.0 * u[i, j])


@wp.kernel
def springs(
    x: wp.array(dtype=wp.vec3),
    first: wp.array(dtype=int),
    second: wp.array(dtype=int),
    force: wp.array(dtype=wp.vec3),
):
    s = wp.tid()
    i = first[s]
    j = second[s]
    d = x[j] - x[i]
    length = wp.length(d)
    f = d * (10.0 * (length - 0.5) / length)
    wp.atomic_add(force, i, f)
    wp.atomic_sub(force, j, f)


@wp.kernel
def looped_sine(x: wp.array(dtype=float), steps: int, y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    for _ in range(steps):
        v += 0.1 * wp.sin(v)
    y[i] = v


@wp.kernel
def sum_of_squares(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i] * x[i])


@wp.kernel
def highest(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_max(out, 0, wp.sin(x[i]) * wp.exp(x[i]) + wp.sqrt(x[i] + 2.0))


@wp.kernel
def move(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    dt: float,
    x_next: wp.array(dtype=wp.vec3),
    v_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    here = x[i]
    pull = here * (-1.0 / (0.1 + wp.length(here)))
    faster = v[i] + (pull - 0.05 * v[i]) * dt
    v_next[i] = faster
    x_next[i] = here + faster * dt


@wp.kernel
def unit_normal(a: wp.array(dtype=wp.vec3), b: wp.array(dtype=wp.vec3), n: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    n[i] = wp.normalize(wp.cross(a[i], b[i]))


@wp.kernel
def solve(
    a: wp.array(dtype=wp.spatial_matrix),
    b: wp.array(dtype=wp.spatial_vector),
    x: wp.array(dtype=wp.spatial_vector),
):
    n = wp.tid()
    m = a[n]
    u = b[n]
    for j in range(6):
        for k in range(j):
            m[j, j] -= m[j, k] * m[j, k]
        m[j, j] = wp.sqrt(m[j, j])
        for i in range(j + 1, 6):
            for k in range(j):
                m[i, j] -= m[i, k] * m[j, k]
            m[i, j] = m[i, j] / m[j, j]
    for i in range(6):
        for k in range(i):
            u[i] -= m[i, k] * u[k]
        u[i] = u[i] / m[i, i]
    for r in range(6):
        i = 5 - r
        for k in range(i + 1, 6):
            u[i] -= m[k, i] * u[k]
        u[i] = u[i] / m[i, i]
    x[n] = u


@wp.kernel
def misfit(w: wp.array(dtype=float), target: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = w[i] - target[i]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def descend(gradient: wp.array(dtype=float), rate: float, w: wp.array(dtype=float)):
    i = wp.tid()
    w[i] = w[i] - rate * gradient[i]


@wp.kernel
def swing(
    x: wp.array(dtype=float),
    v: wp.array(dtype=float),
    dt: float,
    x_next: wp.array(dtype=float),
    v_next: wp.array(dtype=float),
):
    i = wp.tid()
    faster = v[i] - dt * wp.sin(x[i])
    v_next[i] = faster
    x_next[i] = x[i] + dt * faster
