"""Arrays that are chosen at run time: by expressions, branches, loops and functions."""

import numpy as np

import engine as wp
from tests.corpus.compound import compound, floats, records


def flags(*values: int):
    return wp.array(np.array(values), dtype=int)


@compound
def chosen_by_expressions(T):
    @wp.func
    def norm(a: wp.array(dtype=T), i: int):
        return a[i] * a[i] + a[len(a) - 1]

    @wp.kernel
    def chosen_by_expressions(
        x: wp.array(dtype=T), y: wp.array2d(dtype=T), z: wp.array(dtype=T), c: wp.array(dtype=int)
    ):
        i = wp.tid()
        a = x if c[i] > 0 else y[i]
        b = a[1:] if c[i] > 1 else (z if c[i] == 1 else y[:, i])
        z[i] = norm(a, i) * a[i] + b[0] * T(float(b.shape[0])) + norm(x if c[i] == 0 else b, 1)
        a[i] += b[1] * T(0.5)
        wp.atomic_sub(a, 0, b[1] * b[1])
        b[i % 2] *= a[i]
        wp.where(c[i] == 2, z, x)[i] = b[0] + z[i]

    return chosen_by_expressions, 3, [
        floats("x", 3, T=T), floats("y", 3, 4, T=T), floats("z", 3, T=T), flags(0, 1, 2)
    ]  # fmt: skip


@compound
def chosen_by_loops(T):
    @wp.func
    def step(src: wp.array(dtype=T), dst: wp.array(dtype=T), i: int):
        dst[i] = src[i] * src[i] + dst[i] * T(0.3)

    @wp.kernel
    def chosen_by_loops(x: wp.array(dtype=T), y: wp.array(dtype=T), z: wp.array2d(dtype=T), n: int):
        i = wp.tid()
        src = x
        dst = y
        row = z[0]
        best = x
        largest = T(0.0)
        for k in range(n):
            step(src, dst, i)
            src, dst = dst, src
            if src[i] > largest:
                largest = src[i]
                best = src
            row[i] += best[i] * T(0.1)
            row = z[k % 2]
            if k == 2:
                row = src
        y[i] += best[i] * row[i] * src[i]

    return chosen_by_loops, 3, [
        floats("x", 3, T=T), floats("y", 3, T=T), floats("z", 2, 3, T=T), 4
    ]  # fmt: skip


@compound
def chosen_in_structs(T):
    vec = wp.vec3d if T is wp.float64 else wp.vec3

    @wp.struct
    class Inner:
        v: wp.array(dtype=vec)
        k: T

    @wp.struct
    class Model:
        a: wp.array(dtype=T)
        b: wp.array(dtype=T)
        inner: Inner

    @wp.func
    def energy(m: Model, i: int):
        s = m.a[i] * m.b[i] + m.inner.v[i][1] * m.inner.k
        if m.inner.v:
            s += wp.dot(m.inner.v[i], m.inner.v[i])
        return s

    @wp.func
    def other(m: Model, x: wp.array(dtype=T), flag: bool):
        n = Model()
        n.a = m.b
        n.b = x
        n.inner.v = m.inner.v
        if flag:
            return m
        return n

    @wp.kernel
    def chosen_in_structs(
        m: Model, x: wp.array(dtype=T), w: wp.array(dtype=vec), o: wp.array(dtype=T)
    ):
        i = wp.tid()
        own = m
        if i == 1:
            own.a = x
            own.inner.k = own.inner.k * x[i]
        if i == 2:
            own.b = own.a
            own.inner.v = w
        own.a[i] += T(0.25)
        own.inner.v[i][2] *= x[i]
        late = Model()
        if i > 0:
            late.a = own.b
        which = own if i < 2 else other(own, x, i == 3)
        o[i] = energy(own, i) + energy(which, i) * energy(other(m, o, i == 0), i)
        if late.a:
            o[i] += late.a[i] * late.a[i]

    m = Model()
    m.a, m.b = floats("ma", 4, T=T), floats("mb", 4, T=T)
    m.inner.v, m.inner.k = floats("mv", 4, 3, T=T, element=vec), 0.5
    return chosen_in_structs, 4, [
        m, floats("x", 4, T=T), floats("w", 4, 3, T=T, element=vec), floats("o", 4, T=T)
    ]  # fmt: skip


@compound
def chosen_results(T):
    @wp.struct
    class Body:
        mass: T
        n: int

    @wp.func
    def sorted_pair(a: wp.array(dtype=T), b: wp.array(dtype=T), i: int):
        if a[i] > b[i]:
            return b, a, a[i]
        return a, b, T(2.0)

    @wp.func
    def one_of(a: wp.array(dtype=T), b: wp.array2d(dtype=T), k: int) -> wp.array(dtype=T):
        if k == 0:
            return a
        for j in range(3):
            if j == k:
                return b[j]
        return a[1:]

    @wp.func
    def squared(a: wp.array(dtype=T), i: int):
        return a[i] * a[i]

    @wp.func_grad(squared)
    def adj_squared(a: wp.array(dtype=T), i: int, adj: T):
        wp.adjoint[a][i] += T(2.0) * a[i] * adj

    @wp.kernel
    def chosen_results(
        x: wp.array(dtype=T), y: wp.array(dtype=T), z: wp.array2d(dtype=T), f: wp.array2d(dtype=T),
        p: wp.array(dtype=Body), q: wp.array(dtype=Body), at: wp.indexedarray(dtype=T),
    ):  # fmt: skip
        i = wp.tid()
        low, high, by = sorted_pair(x, y, i)
        high[i] = low[i] * high[i] * by
        a = one_of(x, z, i)
        bodies = p if low[i] > T(0.8) else q
        b = bodies[i]
        bodies[i].mass += b.mass * a[i % 2]
        bodies[(i + 1) % 3] = b
        y[i] = squared(f[i], 0) + squared(one_of(f[0], f, i), i)
        if i > 0:
            a[0] *= bodies[0].mass
        c = at if bodies[i].n % 2 == 0 else at[::-1]
        c[i] += squared(f[1] if i > 1 else f[0], i) * c[i] * c[0]

    index = wp.array(np.array([4, 0, 2]), dtype=int)
    return chosen_results, 3, [
        floats("x", 4, T=T), floats("y", 4, T=T), floats("z", 3, 4, T=T), floats("f", 3, 4, T=T),
        records(Body, "p", 3), records(Body, "q", 3),
        wp.indexedarray(floats("at", 5, T=T), [index]),
    ]  # fmt: skip
