"""Kernels of real Warp: those whose gradient Warp 1.19 has right, and those where it is wrong.

One module, so that Warp compiles once. `RIGHT` and `WRONG` give for each kernel its grid and what
makes its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

N = 5
STEPS = wp.constant(3)


@wp.struct
class Material:
    stiffness: wp.array(dtype=float)
    rest: float


@wp.func
def square(x: float):
    return x * x


@wp.func
def square(v: wp.vec3):  # noqa: F811 - an overload
    return wp.dot(v, v)


@wp.func
def softened(x: float):
    return wp.sqrt(x * x + 0.25)


@wp.func_grad(softened)
def adj_softened(x: float, adj_ret: float):
    wp.adjoint[x] += adj_ret * x / wp.sqrt(x * x + 0.25)


# ---- right in Warp


@wp.kernel
def elementwise(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * wp.exp(-x[i] * x[i])


@wp.kernel
def overloads(x: wp.array(dtype=float), v: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = square(x[i]) + square(v[i])


@wp.kernel
def custom_gradient(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = softened(x[i])


@wp.kernel
def of_a_struct(m: Material, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = m.stiffness[i] * (x[i] - m.rest) * (x[i] - m.rest)


@wp.kernel
def vectors(v: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[i] = wp.cross(v[i], wp.vec3(1.0, 2.0, 3.0)) * wp.length(v[i])


@wp.kernel
def matrices(m: wp.array(dtype=wp.mat33), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.determinant(m[i]) + wp.trace(m[i] * m[i])


@wp.kernel
def quaternions(q: wp.array(dtype=wp.quat), v: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[i] = wp.quat_rotate(wp.normalize(q[i]), v[i])


@wp.kernel
def summed(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i] * x[i])


@wp.kernel
def unrolled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    z = x[i]
    for k in range(STEPS):
        z = wp.sin(z) + float(k)
    y[i] = z


@wp.kernel
def branches(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] > 0.0:
        y[i] = x[i] * x[i]
    else:
        y[i] = -3.0 * x[i]


@wp.kernel
def summed_in_a_loop(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    total = float(0.0)
    for k in range(n):
        total += x[k] * x[i]
    y[i] = total


@wp.kernel
def doubles(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = wp.pow(x[i] * x[i], wp.float64(1.5))


@wp.kernel
def two_dimensions(a: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[j, i] = a[i, j] * a[i, j]


@wp.kernel
def kinks(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.abs(x[i]) + wp.max(x[i], 0.0)


# ---- wrong in Warp


@wp.kernel
def dynamic_loop(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    z = x[i]
    for _k in range(n):
        z = z * z * 0.5 + 0.3
    y[i] = z


@wp.kernel
def product_in_a_loop(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    z = float(1.0)
    for k in range(n):
        z *= x[k] + x[i]
    y[i] = z


@wp.kernel
def while_loop(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    z = x[i]
    k = int(0)  # noqa: RUF046 - a variable
    while k < 4:
        z = wp.sin(z) * z
        k += 1
    y[i] = z


@wp.kernel
def in_place_multiply(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] *= x[i]


@wp.kernel
def in_place_divide(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] /= x[i] * x[i] + 1.0


@wp.kernel
def overwrites_itself(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * x[i]


@wp.kernel
def component_twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = wp.vec3(0.0, 0.0, 0.0)
    v[0] = x[i]
    v[0] = v[0] * v[0]
    v[1] = v[0] * x[i]
    v[0] = v[1] + v[0]
    y[i] = wp.dot(v, v)


@wp.kernel
def component_after_all(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = wp.vec3(x[i], 1.0, 2.0)
    v[1] = v[0] * v[0]
    v[0] = v[1] * 3.0
    y[i] = v[0] + v[1]


@wp.kernel
def attribute_after_all(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    a = wp.vec2(x[i], 2.0 * x[i])
    v = a * x[i]
    v.y = v.x * x[i]
    y[i] = wp.dot(v, a)


@wp.kernel
def entry_after_all(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    m = wp.mat22(x[i], 1.0, 2.0, x[i] * x[i])
    m[0, 0] = m[1, 1] * x[i]
    y[i] = wp.trace(m)


@wp.kernel
def newton(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    r = float(1.0)
    for _k in range(n):
        r = 0.5 * (r + x[i] / r)
    y[i] = r


@wp.kernel
def nested_loops(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    z = x[i]
    for _k in range(n):
        for _j in range(n):
            z = z + 0.1 * z * z
    y[i] = z


@wp.kernel
def breaks(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    z = x[i]
    for _k in range(n):
        z = z * 1.5 * z
        if z > 4.0:
            break
    y[i] = z


@wp.kernel
def matrix_in_a_loop(m: wp.array(dtype=wp.mat22), n: int, y: wp.array(dtype=wp.mat22)):
    i = wp.tid()
    p = m[i]
    for _k in range(n):
        p = p * m[i]
    y[i] = p


@wp.kernel
def array_in_a_loop(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    for k in range(n):
        y[i] = y[i] * x[k] + x[i]


@wp.kernel
def early_return(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    z = x[i]
    for _k in range(n):
        z = z * z + 0.2
        if z > 2.0:
            y[i] = z
            return
    y[i] = z * 2.0


@wp.kernel
def local_product(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    z = x[i]
    z *= z
    z *= x[i]
    y[i] = z


# ---- for whole tapes


@wp.struct
class Particle:
    position: wp.vec3
    mass: float


@wp.kernel
def energy(p: wp.array(dtype=Particle), e: wp.array(dtype=float)):
    i = wp.tid()
    e[i] = p[i].mass * wp.dot(p[i].position, p[i].position)


@wp.kernel
def generic(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def squared(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def added(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = z[i] + x[i] * y[i]


@wp.kernel
def of_a_mesh(m: wp.uint64, x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    q = wp.mesh_query_point(m, x[i], 10.0)
    y[i] = wp.length(wp.mesh_eval_position(m, q.face, q.u, q.v) - x[i])


@wp.kernel
def of_a_mesh_in_a_loop(
    m: wp.uint64, x: wp.array(dtype=wp.vec3), rounds: int, y: wp.array(dtype=float)
):
    i = wp.tid()
    q = wp.mesh_query_point(m, x[i], 10.0)
    d = wp.length(wp.mesh_eval_position(m, q.face, q.u, q.v) - x[i])
    for _k in range(rounds):
        d = wp.sin(d) * d + 0.3
    y[i] = d


Arguments = Callable[[np.random.Generator], list[Any]]


def array(rng: np.random.Generator, shape: Any = N, dtype: Any = float) -> Any:
    """An array of random numbers away from zero, with a gradient."""
    inner = getattr(dtype, "_shape_", ())
    full = (*np.atleast_1d(shape), *inner)
    values = rng.uniform(0.5, 1.5, full)
    return wp.array(values, dtype=dtype, device="cpu", requires_grad=True)


def plain(rng: np.random.Generator) -> list[Any]:
    """x and y."""
    return [array(rng), array(rng)]


def counted(rng: np.random.Generator) -> list[Any]:
    """x, a number and y."""
    return [array(rng), 4, array(rng)]


def _struct(rng: np.random.Generator) -> list[Any]:
    m = Material()
    m.stiffness, m.rest = array(rng), 0.25
    return [m, array(rng), array(rng)]


RIGHT: dict[str, tuple[Any, Any, Arguments]] = {
    "elementwise": (elementwise, N, plain),
    "overloads": (overloads, N, lambda r: [array(r), array(r, N, wp.vec3), array(r)]),
    "custom_gradient": (custom_gradient, N, plain),
    "of_a_struct": (of_a_struct, N, _struct),
    "vectors": (vectors, N, lambda r: [array(r, N, wp.vec3), array(r, N, wp.vec3)]),
    "matrices": (matrices, N, lambda r: [array(r, N, wp.mat33), array(r)]),
    "quaternions": (
        quaternions, N,
        lambda r: [array(r, N, wp.quat), array(r, N, wp.vec3), array(r, N, wp.vec3)],
    ),
    "summed": (summed, N, plain),
    "unrolled": (unrolled, N, plain),
    "branches": (branches, N, plain),
    "summed_in_a_loop": (summed_in_a_loop, N, counted),
    "doubles": (doubles, N, lambda r: [array(r, N, wp.float64), array(r, N, wp.float64)]),
    "two_dimensions": (two_dimensions, (3, 4), lambda r: [array(r, (3, 4)), array(r, (4, 3))]),
    "kinks": (kinks, N, plain),
    "local_product": (local_product, N, plain),
}  # fmt: skip
WRONG: dict[str, tuple[Any, Any, Arguments]] = {
    "dynamic_loop": (dynamic_loop, N, counted),
    "product_in_a_loop": (product_in_a_loop, N, counted),
    "while_loop": (while_loop, N, plain),
    "in_place_multiply": (in_place_multiply, N, plain),
    "in_place_divide": (in_place_divide, N, plain),
    "overwrites_itself": (overwrites_itself, N, lambda r: [array(r)]),
    "component_twice": (component_twice, N, plain),
    "component_after_all": (component_after_all, N, plain),
    "attribute_after_all": (attribute_after_all, N, plain),
    "entry_after_all": (entry_after_all, N, plain),
    "newton": (newton, N, counted),
    "nested_loops": (nested_loops, N, lambda r: [array(r), 3, array(r)]),
    "breaks": (breaks, N, counted),
    "matrix_in_a_loop": (
        matrix_in_a_loop, N, lambda r: [array(r, N, wp.mat22), 3, array(r, N, wp.mat22)],
    ),
    "array_in_a_loop": (array_in_a_loop, N, counted),
    "early_return": (early_return, N, counted),
}  # fmt: skip
# Why each is wrong, where that is no loop.
REASONS = {
    "in_place_multiply": "in place", "in_place_divide": "in place", "overwrites_itself": "within",
    "component_twice": "component", "component_after_all": "component",
    "attribute_after_all": "component", "entry_after_all": "component",
}  # fmt: skip
