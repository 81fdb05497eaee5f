"""Views, local arrays and indexed arrays."""

import numpy as np

import engine as wp
from tests.corpus.compound import compound, floats, records


@compound
def views_in_loops(T):
    @wp.func
    def total(a: wp.array(dtype=T)):
        s = T(0.0)
        for k in range(a.shape[0]):
            s += a[k] * a[k]
        return s

    @wp.func
    def smooth(a: wp.array(dtype=T), by: T):
        for k in range(1, len(a)):
            a[k] = a[k] * by + a[k - 1]
        a[-1] += by

    @wp.kernel
    def views_in_loops(x: wp.array3d(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        block = x[i]
        s = T(0.0)
        for j in range(block.shape[0]):
            row = block[j]
            smooth(row, y[i])
            s += total(row) + total(row[1:]) * row[-2]
            column = block[:, j]
            wp.atomic_add(column, 0, s * T(0.1))
            column[1] -= s * T(0.05)
        y[i] = s

    return views_in_loops, 2, [floats("x", 2, 2, 3, T=T), floats("y", 2, T=T)]


@compound
def slices(T):
    @wp.func
    def dot(a: wp.array(dtype=T), b: wp.array(dtype=T)):
        s = T(0.0)
        for k in range(len(a)):
            s += a[k] * b[k]
        return s

    @wp.kernel
    def slices(x: wp.array2d(dtype=T), y: wp.array(dtype=T), lo: int, hi: int):
        i = wp.tid()
        row = x[i]
        a = row[lo:hi]
        b = row[::-1][lo:hi]
        c = row[-4::2]
        d = x[:, i][::-1]
        y[i] = dot(a, b) * c[0] + dot(d, d) * c[1] + dot(row[hi:lo:-1], row[1:])
        b[0] = y[i] * a[0]
        x[1:, 2:][i, -1] += y[i]

    return slices, 2, [floats("x", 3, 6, T=T), floats("y", 2, T=T), 1, 4]


@compound
def returned_views(T):
    @wp.struct
    class Cell:
        a: T
        b: T

    @wp.struct
    class Field:
        data: wp.array2d(dtype=T)
        cells: wp.array(dtype=Cell)

    @wp.func
    def row(f: Field, i: int) -> wp.array(dtype=T):
        if i > 1:
            return f.data[i - 1]
        return f.data[i + 1]

    @wp.func
    def tail(x: wp.array(dtype=T), n: int):
        return x[n:], x[0] * x[0]

    @wp.func
    def cells(f: Field):
        return f.cells

    @wp.func
    def local(x: T):
        a = wp.zeros(shape=3, dtype=T)
        for k in range(3):
            a[k] = x * T(k + 1)
        return a

    @wp.kernel
    def returned_views(f: Field, y: wp.array(dtype=T)):
        i = wp.tid()
        r, s = tail(row(f, i), 1)
        c = cells(f)[i]
        r[0] = r[1] * c.b * s
        cells(f)[i].a *= row(f, i)[0]
        y[i] += local(c.a)[1] * r[0] * tail(y, i)[1]

    f = Field(data=floats("d", 3, 4, T=T), cells=records(Cell, "c", 3))
    return returned_views, 3, [f, floats("y", 3, T=T)]


@compound
def other_arrays_in_a_block(T):
    @wp.struct
    class Tank:
        data: wp.array(dtype=T)
        gain: T

    @wp.kernel
    def other_arrays_in_a_block(t: Tank, x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        for j in range(3):
            o = t
            o.gain = x[j]
            y[i] += o.data[j] * o.gain
            o.data = x
            if j > 0:
                p = o
                p.data = t.data
                p.gain *= T(2.0)
                y[i] *= p.data[j] * p.gain
                part = p.data[1:]
                part = x[0:2]
                y[i] += part[1] * o.data[j]
            o.gain += T(1.0)
            y[i] += o.data[0] * o.gain

    t = Tank(data=floats("d", 3, T=T), gain=0.5)
    return other_arrays_in_a_block, 2, [t, floats("x", 3, T=T), floats("y", 2, T=T)]


@compound
def views_that_change(T):
    @wp.kernel
    def views_that_change(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        row = x[0]
        part = y[0:2]
        for k in range(n):
            if k % 2 == 1:
                row = x[k]
                part = y[k - 1 : k + 1]
            row[i] = row[i] * part[1] + part[0]
            part[0] += row[i] * T(0.1)

    return views_that_change, 1, [floats("x", 4, 3, T=T), floats("y", 4, T=T), 4]


@compound
def local_arrays(T):
    vec = wp.vec3d if T is wp.float64 else wp.vec3

    @wp.func
    def sort(a: wp.array(dtype=T), n: int):
        for i in range(1, n):
            j = i
            while j > 0 and a[j - 1] > a[j]:
                held = a[j]
                a[j] = a[j - 1]
                a[j - 1] = held
                j -= 1
        return a[n - 1] - a[0]

    @wp.kernel
    def local_arrays(x: wp.array2d(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        a = wp.zeros(shape=(5,), dtype=T)
        p = wp.zeros(3, dtype=vec)
        for j in range(len(a)):
            a[j] = x[i, j] * x[i, (j + 2) % 5]
            p[j % 3][j % 2] += a[j]
            p[j % 3].z = a[j] * a[j]
        spread = sort(a, 4)
        b = a
        b[0] = spread
        s = T(0.0)
        for j in range(len(a)):
            s += a[j] * b[j] * T(j + 1)
            p[1] += p[0] * a[j]
        y[i] = s + wp.dot(p[1], p[2]) + a[-1]

    return local_arrays, 3, [floats("x", 3, 5, T=T), floats("y", 3, T=T)]


@compound
def local_recurrence(T):
    @wp.func
    def advance(y: wp.array(dtype=T), x: wp.array(dtype=T), upto: int):
        for j in range(1, len(y)):
            if j > upto:
                return j
            y[j] = y[j - 1] * x[j - 1] + y[j]
        return len(y)

    @wp.kernel
    def local_recurrence(x: wp.array2d(dtype=T), out: wp.array(dtype=T), n: int):
        i = wp.tid()
        y = wp.zeros(4, dtype=T)
        y[0] = T(1.0)
        steps = 0
        for k in range(n):
            steps += advance(y, x[i], k + 1)
            z = wp.zeros(2, dtype=T)
            z[k % 2] = y[k]
            y[0] = y[0] + z[0] * z[0] - z[1]
        out[i] = y[3] * y[2] + y[0] * T(steps)

    return local_recurrence, 3, [floats("x", 3, 3, T=T), floats("out", 3, T=T), 4]


@compound
def local_matrices(T):
    @wp.struct
    class Node:
        w: T
        k: int

    @wp.func
    def scaled(row: wp.array(dtype=T), by: T):
        for c in range(row.shape[0]):
            row[c] *= by

    @wp.kernel
    def local_matrices(x: wp.array2d(dtype=T), y: wp.array2d(dtype=T)):
        m = wp.zeros(shape=(3, 2), dtype=T)
        nodes = wp.zeros(3, dtype=Node)
        for r in range(m.shape[0]):
            for c in range(m.shape[1]):
                m[r, c] = x[r, c] * x[2 - r, c]
            nodes[r] = Node(x[r, 0], r)
        scaled(m[1], m[0, 1])
        scaled(m[:, 0], x[0, 0])
        nodes[1].w *= m[1, 1]
        for r in range(3):
            for c in range(2):
                y[r, c] = m[r, c] * nodes[nodes[r].k].w + m[2 - r][c]

    return local_matrices, 1, [floats("x", 3, 2, T=T), floats("y", 3, 2, T=T)]


@compound
def indexed(T):
    @wp.func
    def total(a: wp.array(dtype=T)):
        s = T(0.0)
        for k in range(a.shape[0]):
            s += a[k] * a[k]
        return s

    @wp.kernel
    def indexed(x: wp.indexedarray2d(dtype=T), y: wp.indexedarray(dtype=T)):
        i = wp.tid()
        row = x[i]
        s = total(row) * x[i, 1]
        y[i] = y[i] * s
        x[i, -1] = s * row[0]
        row[1] += y[i]
        wp.atomic_sub(y, 0, x[i, 2] * total(x[:, i]))

    x = wp.indexedarray(floats("x", 4, 3, T=T), [wp.array([2, 0, 3], dtype=int), None])
    y = wp.indexedarray(floats("y", 5, T=T), [np.array([4, 1, 3])])
    return indexed, 3, [x, y]


@compound
def local_array_in_a_test(T):
    @wp.func
    def shrink(a: wp.array(dtype=T), by: T):
        a[0] = a[0] * by
        a[1] += a[0] * a[0]
        return a[0]

    @wp.kernel
    def local_array_in_a_test(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        a = wp.zeros(2, dtype=T)
        a[0] = x[i]
        while shrink(a, T(0.6)) > T(0.2) and a[1] < T(50.0):
            y[i] = y[i] * a[0] + a[1]
        y[i] += a[0] * a[1]

    return local_array_in_a_test, 3, [floats("x", 3, T=T), floats("y", 3, T=T)]
