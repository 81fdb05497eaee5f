"""Kernels whose IR and C++ are kept as snapshots, one for each thing to get right."""

from __future__ import annotations

import engine as wp
from engine.runtime.kernel import Kernel


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = a * x[i] + y[i]


@wp.kernel
def dynamic_product(x: wp.array(dtype=float), count: int, out: wp.array(dtype=float)):
    i = wp.tid()
    product = float(1.0)
    for j in range(count):
        product *= x[i + j]
    out[i] = product


@wp.kernel
def newton_sqrt(x: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    guess = x[i]
    while wp.abs(guess * guess - x[i]) > wp.float64(1e-9):
        guess = wp.float64(0.5) * (guess + x[i] / guess)
    out[i] = guess


@wp.kernel
def early_return(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] < 0.0:
        return
    if i > 0 and x[i - 1] > x[i]:
        out[i] = x[i - 1]
        return
    out[i] = wp.sqrt(x[i])


@wp.kernel
def multiply_in_place(x: wp.array(dtype=float), factor: wp.array(dtype=float)):
    i = wp.tid()
    x[i] *= factor[i]


@wp.kernel
def scatter(x: wp.array(dtype=float), bin: wp.array(dtype=int), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, bin[i], x[i] * x[i])


@wp.kernel
def vector_components(v: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    a = v[i]
    b = wp.vec3(a[1], a.z, a.x * 2.0)
    b[0] = wp.length(a)
    b.y += wp.dot(a, b)
    out[i] = wp.cross(a, b) / b[2]


@wp.kernel
def matrix_algebra(
    m: wp.array(dtype=wp.mat33), v: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.mat33)
):
    i = wp.tid()
    a = wp.transpose(m[i]) * m[i]
    a[1, 2] = wp.trace(a)
    out[i] = wp.inverse(a) + wp.outer(a * v[i], v[i]) * wp.determinant(a)


@wp.func
def polar(x: float, y: float):
    return wp.sqrt(x * x + y * y), wp.atan2(y, x)


@wp.kernel
def several_results(x: wp.array(dtype=float), y: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    radius, angle = polar(x[i], y[i])
    out[i] = radius * angle


@wp.func
def safe_sqrt(x: float):
    return wp.sqrt(x)


@wp.func_grad(safe_sqrt)
def adj_safe_sqrt(x: float, adj_ret: float):
    if x > 0.0:
        wp.adjoint[x] += adj_ret / (2.0 * wp.sqrt(x))


@wp.kernel
def custom_gradient(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = safe_sqrt(x[i])


@wp.kernel
def stencil(u: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    if i > 0 and i < u.shape[0] - 1 and j > 0 and j < u.shape[1] - 1:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = 0.25 * around - u[i, j] * u[i, j]


@wp.struct
class Body:
    pos: wp.vec3
    mass: float


@wp.struct
class System:
    bodies: wp.array(dtype=Body)
    gravity: wp.vec3
    energy: wp.array(dtype=float)


@wp.func
def heavier(a: Body, b: Body):
    if a.mass > b.mass:
        return a
    return b


@wp.kernel
def structs(s: System, out: wp.array(dtype=Body)):
    i = wp.tid()
    b = heavier(s.bodies[i], s.bodies[0])
    b.pos += s.gravity * b.mass
    out[i] = b
    out[i].mass *= 2.0
    s.energy[0] += b.pos.y * b.mass


@wp.func
def drain(row: wp.array(dtype=float), into: wp.array(dtype=float)):
    for j in range(len(into)):
        into[j] += row[j]
        row[j] = 0.0


@wp.kernel
def views_and_local_arrays(x: wp.array2d(dtype=float), out: wp.array(dtype=float), n: int):
    i = wp.tid()
    sums = wp.zeros(shape=(3,), dtype=float)
    for k in range(n):
        row = x[i + k]
        drain(row[1:], sums)
    out[i] = sums[0] * sums[-1]


@wp.kernel
def indexed(x: wp.indexedarray(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i] * x[i]
    x[i] = 0.0


@wp.kernel
def four_axes(x: wp.array4d(dtype=float), out: wp.array4d(dtype=float)):
    i, j, k, m = wp.tid()
    out[i, j, k, m] = wp.sin(x[i, j, k, m]) * float(i + 2 * j + 3 * k + 4 * m)


@wp.kernel
def branches_in_a_loop(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    total = float(0.0)
    for j in range(x.shape[0]):
        if j == i:
            continue
        if total > 10.0:
            break
        total += x[i] * x[j] if x[j] > 0.0 else wp.exp(x[j])
    out[i] = total


KERNELS: dict[str, Kernel] = {k.key: k for k in list(globals().values()) if isinstance(k, Kernel)}
