"""Kernels for Taichi, which reads their text: annotations are its own."""

import taichi as ti

ti.init(arch=ti.cpu, default_fp=ti.f32, offline_cache=False, log_level=ti.ERROR)
F = ti.types.ndarray(dtype=ti.f32, ndim=1)
F2 = ti.types.ndarray(dtype=ti.f32, ndim=2)
I = ti.types.ndarray(dtype=ti.i32, ndim=1)  # noqa: E741
V = ti.types.ndarray(dtype=ti.types.vector(3, ti.f32), ndim=1)


@ti.kernel
def tiny(x: F, y: F):
    for i in x:
        y[i] = x[i] * x[i]


@ti.kernel
def saxpy(a: ti.f32, x: F, y: F, z: F):
    for i in x:
        z[i] = a * x[i] + y[i]


@ti.kernel
def elementwise(x: F, y: F):
    for i in x:
        v = x[i]
        y[i] = ti.sin(v) * ti.exp(-v * v) + ti.sqrt(v * v + 1.0)


@ti.kernel
def nbody(x: V, mass: F, n: ti.i32, a: V):
    for i in x:
        for j in range(n):
            d = x[j] - x[i]
            s = d.dot(d) + 0.01
            a[i] += d * (mass[j] / (s * ti.sqrt(s)))


@ti.kernel
def stencil(u: F2, out: F2):
    for i, j in u:
        if i > 0 and j > 0 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            out[i, j] = u[i, j] + 0.1 * (around - 4.0 * u[i, j])


@ti.kernel
def springs(x: V, first: I, second: I, force: V):
    for s in first:
        i = first[s]
        j = second[s]
        d = x[j] - x[i]
        length = d.norm()
        f = d * (10.0 * (length - 0.5) / length)
        force[i] += f
        force[j] -= f


@ti.kernel
def loop(x: F, steps: ti.i32, y: F):
    for i in x:
        v = x[i]
        for _ in range(steps):
            v += 0.1 * ti.sin(v)
        y[i] = v


@ti.kernel
def cross(a: V, b: V, n: V):
    for i in a:
        n[i] = a[i].cross(b[i]).normalized()


@ti.kernel
def total(x: F, out: F):
    for i in x:
        out[0] += x[i] * x[i]
