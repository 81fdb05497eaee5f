"""Structs in kernels: values, fields, results, arrays of them."""

# What kernels may do and linters do not like:
# ruff: noqa: F821

from typing import Any

import numpy as np
import pytest

import engine as wp


@wp.struct
class Inner:
    a: wp.vec3
    k: int


@wp.struct
class Outer:
    x: float
    inner: Inner
    flag: bool


@wp.struct
class Bag:
    data: wp.array(dtype=float)
    items: wp.array(dtype=Inner)
    count: int


@wp.func
def changed(s: Inner):
    s.k = 7
    return s.k


@wp.func
def early(i: int):
    if i > 2:
        return Inner(wp.vec3(1.0, 2.0, 3.0), 5)
    s = Inner()
    s.k = i
    return s


@wp.func
def two(s: Outer):
    t = s
    t.x = s.x * 2.0
    return t, s.inner


@wp.func
def filled(b: Bag):
    if b.data:
        return 1
    return 0


@wp.func
def generic(s: Any):
    return s.k + 1


@wp.func
def bag_of(x: wp.array(dtype=float), n: int) -> Bag:
    b = Bag()
    b.data = x
    b.count = n
    return b


@wp.kernel
def values(out: wp.array(dtype=int), s: Inner):
    v = Inner()
    r = changed(v)
    out[0] = v.k  # the function had its own
    out[1] = r
    w = v
    w.k = 9
    out[2] = v.k
    u = s
    u.k = 3
    out[3] = s.k
    s.k += 10
    out[4] = s.k
    out[5] = early(3).k * 10 + early(1).k
    o = Outer(1.5, inner=s)
    p, q = two(o)
    out[6] = int(p.x + o.x) + q.k
    o.inner.a[1] = 4.0
    o.inner.a.x += 2.0
    p.inner = o.inner
    o.inner.a.y = 0.0
    out[7] = int(p.inner.a[1] * 10.0 + p.inner.a.x + o.inner.a.y)
    out[8] = generic(s)
    t: Inner = Inner(k=4)
    z: Inner
    out[9] = t.k + z.k
    if p.flag or not o.flag:
        out[10] = 1
    n = s if out[0] == 0 else t
    out[11] = n.k


def test_structs_are_values() -> None:
    out = wp.zeros(12, dtype=int)
    wp.launch(values, dim=1, inputs=[out, Inner(k=1)])
    assert out.list() == [0, 7, 0, 1, 11, 51, 15, 42, 12, 4, 1, 11]


@wp.kernel
def elements(a: wp.array(dtype=Inner), b: wp.array2d(dtype=Outer), out: wp.array(dtype=int)):
    i = wp.tid()
    e = a[i]
    e.k = 100
    out[0] = a[i].k  # reading made a copy
    a[i].k += 3
    a[i].a.y = 5.0
    a[i].a[2] -= 1.0
    a[1], a[2] = a[2], a[1]
    b[0, 1] = Outer(2.0, a[1], True)
    b[0][1].inner.k *= 2
    b[-1, -1].x = b[0, 1].x + float(len(b)) + float(b.shape[1])
    out[1] = a.ndim + b.size * 10


def test_elements_of_arrays() -> None:
    a = wp.array([Inner((1.0, 2.0, 3.0), 1), Inner(k=2), Inner(k=3)], dtype=Inner)
    b = wp.zeros((2, 2), dtype=Outer)
    out = wp.zeros(2, dtype=int)
    wp.launch(elements, dim=1, inputs=[a, b, out])
    assert out.list() == [1, 41]
    assert [(*e.a, e.k) for e in a.list()] == [(1, 5, 2, 4), (0, 0, 0, 3), (0, 0, 0, 2)]
    assert repr(b[0, 1]) == repr(Outer(2.0, Inner(k=6), True))
    assert b[1, 1].x == 6.0
    assert b[0, 0].x == 0.0


@wp.kernel
def bags(b: Bag, out: wp.array(dtype=float)):
    i = wp.tid()
    out[0] = b.data[i] + float(b.items[1].k) + float(b.count)
    b.data[i] = 4.0
    b.items[0].a.x += 2.0
    wp.atomic_add(b.data, 1, 3.0)
    empty = Bag()
    out[1] = float(filled(b) * 10 + filled(empty))
    c = bag_of(b.data, 3)
    c.data[2] = float(c.count)
    out[2] = float(c.data.shape[0] + len(b.items))
    part = b.data[1:]
    c.count = 5
    d = Bag(part, b.items, c.count)
    d.data[1] += float(d.count)
    if d.data:
        out[3] = d.data[0]
    d.data = out
    d.data[4] = 7.0
    b.data = out[1:]
    b.data[4] = 8.0


def test_arrays_inside() -> None:
    data = wp.array([1.0, 2.0, 3.0], dtype=float)
    items = wp.array([Inner(), Inner(k=6)], dtype=Inner)
    out = wp.zeros(6, dtype=float)
    wp.launch(bags, dim=1, inputs=[Bag(data, items, 2), out])
    assert out.list() == [9.0, 10.0, 5.0, 5.0, 7.0, 8.0]
    assert data.list() == [4.0, 5.0, 8.0]
    assert items[0].a == wp.vec3(2.0, 0.0, 0.0)


@wp.kernel
def loops(out: wp.array(dtype=int), n: int):
    s = Inner()
    for i in range(n):
        if i > 0:
            out[0] += before.k
        before = Inner(wp.vec3(float(i)), i * i)
        s = Inner(s.a + before.a, k=s.k + 1)
        if s.k == 3:
            s.k = 30
            break
    out[1] = s.k
    out[2] = int(s.a.x)
    while s.k > 0:
        t = s
        t.k = t.k - 7
        s = t
    out[3] = s.k


def test_structs_carried_around_loops() -> None:
    out = wp.zeros(4, dtype=int)
    with pytest.warns(UserWarning, match="`before` may be read before it has a value"):
        wp.launch(loops, dim=1, inputs=[out, 10])
    assert out.list() == [1, 30, 3, -5]


def test_generated_text_is_the_same_every_time() -> None:
    from engine.codegen.cpp import emit
    from engine.frontend import lower_kernel

    texts = {emit(lower_kernel(k.func), "k") for k in (bags, bags) for _ in range(2)}
    assert len(texts) == 1
    assert "0x" not in texts.pop()


def make(T: Any) -> Any:
    @wp.struct
    class Made:
        x: T

    @wp.kernel
    def kernel(s: Made, out: wp.array(dtype=T)):
        out[0] = s.x * s.x

    return Made, kernel


def test_structs_made_in_functions() -> None:
    for T in (wp.float32, wp.float64):
        cls, kernel = make(T)
        out = wp.zeros(1, dtype=T)
        wp.launch(kernel, dim=1, inputs=[cls(1.1), out])
        np.testing.assert_allclose(out.numpy(), [1.21], rtol=1e-6)


@wp.struct
class Pose:
    t: wp.transform
    q: wp.quat
    v: wp.vec4
    h: wp.float16
    m: wp.mat33


@wp.kernel
def parts(poses: wp.array(dtype=Pose), out: wp.array(dtype=float)):
    i = wp.tid()
    p = poses[i]
    p.v[1:3] = wp.vec2(7.0, 8.0)
    p.t.p = wp.vec3(1.0, 2.0, 3.0)
    p.t.p[1] += 4.0
    p.t.q = p.q
    p.m[:, 1] = wp.vec3(1.0)
    p.h += wp.float16(1.5)
    poses[1] = p
    poses[1].t.p.x = 9.0
    poses[1].v[0:2] += wp.vec2(1.0)
    poses[1].m[0, 1:] = wp.vec2(5.0)
    out[0] = wp.transform_point(p.t, wp.vec3(1.0))[0] + p.v[1:][1] + float(p.h)


def test_parts_of_fields() -> None:
    half = 2.0**-0.5
    first = Pose(q=wp.quat(0.0, 0.0, half, half), v=wp.vec4(1.0), h=0.5)
    poses = wp.array([first, Pose()], dtype=Pose)
    out = wp.zeros(1, dtype=float)
    wp.launch(parts, dim=1, inputs=[poses, out])
    got = poses[1]
    np.testing.assert_allclose(np.array(got.t), [9, 6, 3, 0, 0, half, half], rtol=1e-6)
    np.testing.assert_array_equal(np.array(got.v), [2, 8, 8, 1])
    np.testing.assert_array_equal(np.array(got.m), [[0, 5, 5], [0, 1, 0], [0, 1, 0]])
    assert got.h == 2.0 and poses[0].h == 0.5
    np.testing.assert_allclose(out.numpy(), [1.0 - 1.0 + 8.0 + 2.0], rtol=1e-5)
