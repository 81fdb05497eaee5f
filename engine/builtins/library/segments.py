"""Two segments, two triangles: where they are close, and whether they meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.builtins import language as wp
from engine.builtins.composite import composite, helper
from engine.ir.ops import Domain
from engine.lang.names import vec3d
from engine.lang.types import FLOAT16, FLOAT32, FLOAT64, Type, VectorType
from engine.lang.values import float64

_LINE = (-2.0, 2.0)


def _segments(types: Sequence[Type]) -> bool:
    s = types[-1]
    return len(types) == 5 and s in (FLOAT16, FLOAT32, FLOAT64) and all(
        t == VectorType(s, 3) for t in types[:4]
    )  # fmt: skip


def _triangles(types: Sequence[Type]) -> bool:
    kinds = (VectorType(FLOAT32, 3), VectorType(FLOAT64, 3))
    return len(types) == 6 and types[0] in kinds and all(t == types[0] for t in types)


@helper
def unit_part(x: Any) -> Any:
    return wp.clamp(x, float64(0.0), float64(1.0))


@composite("closest_point_edge_edge(p1, q1, p2, q2, epsilon): the weights s and t of the nearest "
           "points p1 + s * (q1 - p1) and p2 + t * (q2 - p2) of two segments, and their distance, "
           "as a vec3. A segment whose squared length is not above epsilon counts as its first "
           "point.", _segments, domain=Domain((*(_LINE,) * 4, (1e-9, 1e-8))))  # fmt: skip
def closest_point_edge_edge(p1: Any, q1: Any, p2: Any, q2: Any, epsilon: Any) -> Any:
    # In float64: where segments are nearly parallel, weights have few digits, and distances all.
    o = vec3d(p1)
    u = vec3d(q1) - o
    v = vec3d(q2) - vec3d(p2)
    r = o - vec3d(p2)
    a = wp.dot(u, u)
    e = wp.dot(v, v)
    b = wp.dot(u, v)
    c = wp.dot(u, r)
    f = wp.dot(v, r)
    least = float64(epsilon)
    s = float64(0.0)
    t = float64(0.0)
    if a > least and e > least:
        n = wp.cross(u, v)
        nn = wp.dot(n, n)
        if nn > 1.0e-12 * a * e:
            s = unit_part((b * f - c * e) / nn)
        t = (b * s + f) / e
        if t < 0.0:
            t = float64(0.0)
            s = unit_part(-c / a)
        elif t > 1.0:
            t = float64(1.0)
            s = unit_part((b - c) / a)
    elif a > least:
        s = unit_part(-c / a)
    elif e > least:
        t = unit_part(f / e)
    d = wp.length(r + s * u - t * v)
    return type(p1)(type(epsilon)(s), type(epsilon)(t), type(epsilon)(d))


@helper
def apart(axis: Any, a: Any, b: Any, c: Any, p: Any, q: Any, r: Any) -> Any:
    """Whether two triangles lie in different places along an axis."""
    x = wp.dot(axis, a)
    y = wp.dot(axis, b)
    z = wp.dot(axis, c)
    k = wp.dot(axis, p)
    m = wp.dot(axis, q)
    n = wp.dot(axis, r)
    low = wp.min(wp.min(x, y), z)
    high = wp.max(wp.max(x, y), z)
    first = wp.min(wp.min(k, m), n)
    last = wp.max(wp.max(k, m), n)
    slack = 1.0e-12 * (wp.max(high, -low) + wp.max(last, -first))
    return high < first - slack or last < low - slack


@helper
def side_apart(u: Any, f: Any, n: Any, a: Any, b: Any, c: Any, p: Any, q: Any, r: Any) -> Any:
    """The same along the axes that a side of one and a triangle's side or normal give."""
    return apart(wp.cross(u, f), a, b, c, p, q, r) or apart(wp.cross(u, n), a, b, c, p, q, r)


@composite("intersect_tri_tri(v0, v1, v2, u0, u1, u2): 1 where two triangles have a point in "
           "common, else 0.", _triangles, domain=Domain((_LINE,) * 6))  # fmt: skip
def intersect_tri_tri(v0: Any, v1: Any, v2: Any, u0: Any, u1: Any, u2: Any) -> Any:
    o = vec3d(v0)
    a = o - o
    b = vec3d(v1) - o
    c = vec3d(v2) - o
    p = vec3d(u0) - o
    q = vec3d(u1) - o
    r = vec3d(u2) - o
    n = wp.cross(b - a, c - a)
    m = wp.cross(q - p, r - p)
    if apart(n, a, b, c, p, q, r) or apart(m, a, b, c, p, q, r):
        return 0
    for i in range(3):
        side = b - a
        other = q - p
        if i == 1:
            side = c - b
            other = r - q
        elif i == 2:
            side = a - c
            other = p - r
        if side_apart(side, q - p, n, a, b, c, p, q, r):
            return 0
        if side_apart(side, r - q, n, a, b, c, p, q, r):
            return 0
        if side_apart(side, p - r, n, a, b, c, p, q, r):
            return 0
        if apart(wp.cross(other, m), a, b, c, p, q, r):
            return 0
    return 1
