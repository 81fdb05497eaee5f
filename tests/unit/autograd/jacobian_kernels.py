"""Kernels of the tests of Jacobians, compiled together."""

from __future__ import annotations

from typing import Any

import numpy as np

import engine as wp


@wp.struct
class Body:
    position: wp.vec3
    mass: float
    label: int


@wp.struct
class Box:
    x: wp.array(dtype=float)
    y: wp.array(dtype=wp.vec2)
    scale: float


@wp.kernel
def mixed(
    a: wp.array(dtype=float),
    n: int,
    b: wp.array(dtype=wp.vec3),
    out1: wp.array(dtype=wp.vec2),
    out2: wp.array(dtype=wp.quat),
):
    i = wp.tid()
    ai, bi = a[i], b[i]
    out1[i] = wp.vec2(ai * wp.length(bi), -ai * wp.dot(bi, wp.vec3(0.1, 1.0, -0.1)))
    out2[i] = wp.normalize(wp.quat(ai, bi[0], bi[1], bi[2]))


@wp.kernel
def output_first(y: wp.array(dtype=float), x: wp.array(dtype=float), f: float):
    i = wp.tid()
    y[i] = f * x[i] * x[i]


@wp.kernel
def output_between(a: wp.array(dtype=float), y: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a[i] * b[i]


@wp.kernel
def in_place(y: wp.array(dtype=float), x: wp.array(dtype=float)):
    i = wp.tid()
    y[i] *= x[i]


@wp.kernel
def bodies(a: wp.array(dtype=Body), box: Box, out: wp.array(dtype=Body)):
    i = wp.tid()
    v = a[i]
    out[i].position = v.position * v.mass * box.scale + wp.vec3(box.x[i], box.y[i][0], box.y[i][1])
    out[i].mass = v.mass * v.mass * box.x[i]


@wp.kernel
def matrices(
    m: wp.array(dtype=wp.mat22), v: wp.array2d(dtype=wp.vec2), out: wp.array2d(dtype=wp.vec2)
):
    i, j = wp.tid()
    out[i, j] = m[j] * v[i, j]


@wp.kernel
def gather(x: wp.array(dtype=float), at: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[at[i]]) + x[at[i + 1]] * x[at[i]]


@wp.kernel
def scatter(x: wp.array(dtype=wp.vec2), at: wp.array(dtype=int), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(y, at[i], x[i][0] * x[i][1])


@wp.kernel
def stencil(u: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] + 0.1 * around * u[i, j]


@wp.kernel
def two_outputs(x: wp.array(dtype=float), p: wp.array(dtype=float), q: wp.array(dtype=float)):
    i = wp.tid()
    s = x[i] * x[i]
    p[i] = s
    q[i] = p[i] * x[i]


@wp.kernel
def all_to_one(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i] * x[i])


@wp.kernel
def one_to_all(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[0] * float(i)


@wp.kernel
def running_sum(x: wp.array(dtype=float)):
    i = wp.tid()
    if i > 0:
        x[i] = x[i] * x[i] + x[i - 1]


@wp.kernel
def serial(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    for i in range(n):
        y[i] = x[i] * x[i] + x[(i + 1) % n]


@wp.kernel
def roots(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sqrt(x[i]) + x[(i + 1) % 4]


@wp.kernel
def wide(x: wp.array(dtype=wp.float64), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = float(wp.exp(x[i]))


@wp.kernel
def kinked(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.abs(x[i])


@wp.func
def cube(v: float):
    return v * v * v


@wp.func_grad(cube)
def adj_cube(v: float, adj_ret: float):
    wp.adjoint[v] += 3.0 * v * v * adj_ret * 1.001


@wp.kernel
def spoiled(x: wp.array(dtype=float), w: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i]) + w[i]


@wp.kernel
def indexed(x: wp.indexedarray(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def optional(x: wp.array(dtype=float), w: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    if w:
        v *= w[i]
    y[i] = v


@wp.kernel
def halves(x: wp.array(dtype=wp.float16), y: wp.array(dtype=wp.float16)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def rows(x: wp.array2d(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    row = x[i]
    s = float(0.0)
    for j in range(row.shape[0]):
        s += row[j] * row[j]
    y[i] = s


@wp.func_native("return x * x * x;", adj_snippet="adj_x += 3.0f * x * x * adj_ret;")
def native_cube(x: float) -> float: ...


@wp.func_native("return x * x;")
def native_without_adjoint(x: float) -> float: ...


@wp.func_native(
    "y[i] = x[i] * x[i];", adj_snippet="adj_x[i] += 2.0f * x[i] * adj_y[i]; adj_y[i] = 0.0f;"
)
def native_square(x: wp.array(dtype=float), i: int, y: wp.array(dtype=float)): ...


@wp.kernel
def natives(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = native_cube(x[i])


@wp.kernel
def native_arrays(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    native_square(x, i, y)


@wp.kernel
def native_stop(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = native_without_adjoint(x[i]) + x[i]


@wp.kernel
def generic(y: wp.array(dtype=Any), x: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel(enable_backward=False)
def no_backward(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


# ---- arguments


def floats(*values: float, **more) -> wp.array:
    return wp.array(list(values), dtype=float, requires_grad=True, **more)


def mixed_arguments():
    a = floats(2.0, -1.0)
    b = wp.array([[3.0, 1.0, 2.0], [-4.0, -1.0, 0.5]], dtype=wp.vec3, requires_grad=True)
    out1 = wp.zeros(2, dtype=wp.vec2, requires_grad=True)
    out2 = wp.zeros(2, dtype=wp.quat, requires_grad=True)
    return [a, 3, b], [out1, out2]


def bodies_arguments():
    rng = np.random.default_rng(3)
    values = [Body(wp.vec3(*rng.uniform(1, 2, 3)), float(m), 7) for m in (2.0, 3.0)]
    a = wp.array(values, dtype=Body, requires_grad=True)
    box = Box()
    box.x = floats(0.5, 1.5)
    box.y = wp.array(np.ones((2, 2)), dtype=wp.vec2, requires_grad=True)
    box.scale = 2.0
    return [a, box], [wp.zeros(2, dtype=Body, requires_grad=True)]
