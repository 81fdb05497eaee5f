"""Structs: as arguments, locals, results, elements of arrays, with arrays inside."""

from typing import Any

import engine as wp
from tests.corpus.compound import compound, floats, records


def _types(T: Any) -> Any:
    """Vector and matrix classes over a float type."""
    return (wp.vec3d, wp.mat22d) if T is wp.float64 else (wp.vec3, wp.mat22)


@compound
def particles(T):
    vec, _ = _types(T)

    @wp.struct
    class Body:
        mass: T
        charge: T

    @wp.struct
    class Particle:
        pos: vec
        vel: vec
        body: Body
        id: int

    @wp.func
    def pull(a: Particle, b: Particle):
        d = b.pos - a.pos
        r2 = wp.dot(d, d) + T(0.1)
        return d * (a.body.charge * b.body.charge / (r2 * wp.sqrt(r2)))

    @wp.kernel
    def particles(now: wp.array(dtype=Particle), after: wp.array(dtype=Particle), dt: T):
        i = wp.tid()
        p = now[i]
        total = vec()
        for j in range(now.shape[0]):
            if now[j].id == p.id:
                continue
            total += pull(p, now[j])
        p.vel += total * (dt / p.body.mass)
        p.pos = p.pos + p.vel * dt
        after[i] = p
        after[i].body.mass *= T(1.5)
        after[i].vel.y += now[i].pos.x * now[i].pos.z

    return particles, 4, [records(Particle, "now", 4), records(Particle, "after", 4), T(0.1)]


@compound
def nested_in_loops(T):
    @wp.struct
    class Pair:
        a: T
        b: T

    @wp.struct
    class State:
        left: Pair
        right: Pair
        steps: int

    @wp.kernel
    def nested_in_loops(x: wp.array(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        s = State()
        s.left = Pair(x[i], T(1.0))
        s.right.a = x[i] * x[i]
        for k in range(n):
            old = s
            s.left.a = old.right.a * T(0.5) + old.left.b
            s.right, s.left = s.left, s.right
            s.steps += 1
            if s.left.a > T(1.6):
                s.left = Pair(a=s.left.b, b=s.left.a * x[i])
                continue
            while s.right.b < T(1.2):
                s.right.b += s.left.a * s.left.a
        y[i] = s.left.a * s.right.b + s.right.a * T(s.steps) + s.left.b

    return nested_in_loops, 4, [floats("x", 4, T=T), floats("y", 4, T=T), 6]


@compound
def results_with_early_return(T):
    vec, mat = _types(T)

    @wp.struct
    class Hit:
        t: T
        normal: vec
        frame: mat
        found: bool

    @wp.func
    def search(x: T, n: int) -> Hit:
        h = Hit()
        h.t = x
        for k in range(n):
            h.t = h.t * x + T(0.25)
            if h.t > T(1.1):
                h.found = True
                h.normal = vec(x, h.t, x * h.t)
                h.frame[0, 1] = h.t * x
                return h
            h.normal.y += h.t
        if x < T(0.7):
            return Hit(x * x, vec(x), mat(x, h.t, T(1.0), x), False)
        return h

    @wp.func
    def best(a: Hit, b: Hit):
        if a.t > b.t:
            a.t = a.t * T(2.0)
            return a, b.t
        return b, a.t

    @wp.kernel
    def results_with_early_return(x: wp.array(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        total = T(0.0)
        for k in range(n):
            h, other = best(search(x[i], k), search(x[(i + 1) % x.shape[0]], n))
            total += h.t * other + wp.dot(h.normal, h.normal) + h.frame[0, 1] * h.frame[1, 1]
            if h.found:
                total *= T(0.5)
        y[i] = total

    return results_with_early_return, 5, [floats("x", 5, T=T), floats("y", 5, T=T), 3]


@compound
def arrays_inside(T):
    vec, _ = _types(T)

    @wp.struct
    class Layer:
        w: wp.array2d(dtype=T)
        b: wp.array(dtype=T)

    @wp.struct
    class Net:
        first: Layer
        scale: T
        points: wp.array(dtype=vec)
        sums: wp.array(dtype=T)

    @wp.func
    def apply(layer: Layer, x: wp.array(dtype=T), row: int):
        total = layer.b[row]
        w = layer.w[row]
        for j in range(len(w)):
            total += w[j] * x[j]
        return total

    @wp.kernel
    def arrays_inside(net: Net, x: wp.array(dtype=T)):
        i = wp.tid()
        v = wp.tanh(apply(net.first, x, i)) * net.scale
        net.sums[0] += v * net.points[i].y
        wp.atomic_sub(net.sums, 1, v * v)
        net.points[i] = net.points[i] * v
        if net.first.b[i] > T(1.0):
            net.first.b[i] *= v

    net = Net(scale=1.5, points=floats("p", 3, 3, T=T, element=vec), sums=floats("s", 2, T=T))
    net.first.w = floats("w", 3, 4, T=T)
    net.first.b = floats("b", 3, T=T)
    return arrays_inside, 3, [net, floats("x", 4, T=T)]


@compound
def fields_of_elements(T):
    vec, mat = _types(T)

    @wp.struct
    class Cell:
        v: vec
        m: mat
        s: T

    @wp.kernel
    def fields_of_elements(cells: wp.array2d(dtype=Cell), n: int):
        i = wp.tid()
        row = cells[i]
        for j in range(n):
            row[j].s *= row[(j + 1) % n].s
            row[j].v.x += row[j].s
            row[j].m[0, 1] = row[j].v.x * row[j].m[1, 0]
            row[j].m[1] = row[j].m[0]
            row[j].v[j % 3] -= T(0.5) * row[j].m[1, 1]
        row[0], row[1] = row[1], row[0]
        row[n - 1].v = row[0].v

    return fields_of_elements, 2, [records(Cell, "cells", 6).reshape((2, 3)), 3]


@compound
def chosen(T):
    @wp.struct
    class S:
        a: T
        b: T

    @wp.func
    def swapped(s: S):
        return S(s.b, s.a)

    @wp.kernel
    def chosen(x: wp.array(dtype=S), y: wp.array(dtype=T)):
        i = wp.tid()
        s = x[i] if x[i].a > x[i].b else swapped(x[i])
        t = S(s.b * T(2.0), b=s.a)
        if i > 1:
            t = s
        elif i == 1:
            t.a = t.a * t.b
        s = S(t.b, s.a)
        s = S(s.b, s.a)
        y[i] = s.a * t.a + s.b

    return chosen, 4, [records(S, "x", 4), floats("y", 4, T=T)]


@compound
def struct_from_function_with_array(T):
    @wp.struct
    class Window:
        data: wp.array(dtype=T)
        start: int
        gain: T

    @wp.func
    def window(x: wp.array(dtype=T), start: int, gain: T):
        w = Window()
        w.data = x
        w.start = start
        if start > 1:
            w.gain = gain
            return w
        w.gain = gain * gain
        return w

    @wp.func
    def at(w: Window, k: int):
        return w.data[w.start + k] * w.gain

    @wp.kernel
    def struct_from_function_with_array(x: wp.array2d(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        w = window(x[i], i, x[i, 0])
        w.gain += T(1.0)
        w.data[0] = at(w, 1)
        y[i] = at(w, 0) * at(w, 1)

    return struct_from_function_with_array, 3, [floats("x", 3, 5, T=T), floats("y", 3, T=T)]


@compound
def own_gradient(T):
    @wp.struct
    class Line:
        a: T
        b: T
        n: int

    @wp.func
    def value(line: Line, x: T):
        return Line(line.a * x, line.b * line.b, line.n)

    @wp.func_grad(value)
    def adj_value(line: Line, x: T, adj: Line):
        wp.adjoint[line].a += adj.a * x
        wp.adjoint[line].b += T(2.0) * line.b * adj.b
        wp.adjoint[x] += adj.a * line.a

    @wp.kernel
    def own_gradient(lines: wp.array(dtype=Line), y: wp.array(dtype=T)):
        i = wp.tid()
        r = value(lines[i], y[i])
        y[i] = r.a * r.b * T(r.n + 1)

    return own_gradient, 3, [records(Line, "lines", 3), floats("y", 3, T=T)]


@compound
def carried_through_while(T):
    @wp.struct
    class Walk:
        x: T
        v: T
        k: int

    @wp.kernel
    def carried_through_while(out: wp.array(dtype=Walk), n: int):
        i = wp.tid()
        while out[i].k < n + i:
            w = out[i]
            if w.k == 2:
                w.v = w.v * w.x
            w.x += w.v * T(0.3)
            w.v -= w.x * T(0.2)
            w.k += 1
            out[i] = w
            if w.x > T(2.0):
                break

    return carried_through_while, 3, [records(Walk, "out", 3), 4]


def spoiled(T):
    """A struct and a kernel whose gradient is wrong in the second field."""

    @wp.struct
    class S:
        a: T
        b: T

    @wp.func
    def product(s: S):
        return s.a * s.b

    @wp.func_grad(product)
    def adj_product(s: S, adj: T):
        wp.adjoint[s].a += s.b * adj
        wp.adjoint[s].b += s.a * adj * T(1.001)

    @wp.kernel
    def kernel(x: wp.array(dtype=S), y: wp.array(dtype=T)):
        i = wp.tid()
        y[i] = product(x[i])

    return S, kernel
