"""Queries of points, rays and triangles, which searches of meshes use."""

from __future__ import annotations

from typing import Any

from engine.builtins import language as wp
from engine.builtins.composite import helper
from engine.lang.names import vec3d
from engine.lang.values import float64


@helper
def is_sliver(a: Any, b: Any, c: Any) -> Any:
    """Whether a triangle has no area to speak of; true where a coordinate is NaN."""
    ab = b - a
    ac = c - a
    bc = c - b
    sides = wp.dot(ab, ab) + wp.dot(ac, ac) + wp.dot(bc, bc)
    n = wp.cross(ab, ac) / sides
    return not wp.dot(n, n) >= 1.0e-12


@helper
def along(from_: Any, to: Any, p: Any) -> Any:
    """How far along a segment the point nearest to p is, not clamped."""
    d = to - from_
    return wp.dot(p - from_, d) / wp.dot(d, d)


@helper
def nearest_on_triangle(a: Any, b: Any, c: Any, p: Any) -> Any:
    """The weights of a and b in the point of the triangle that is nearest to p.

    Each corner, each side and the inside has a region of space; the signs of six products, and of
    three areas that they make, tell in which of them p is.
    """
    zero = p.dtype(0.0)
    one = p.dtype(1.0)
    ab = b - a
    ac = c - a
    a1 = wp.dot(ab, p - a)
    a2 = wp.dot(ac, p - a)
    b1 = wp.dot(ab, p - b)
    b2 = wp.dot(ac, p - b)
    c1 = wp.dot(ab, p - c)
    c2 = wp.dot(ac, p - c)
    at_c = a1 * b2 - b1 * a2
    at_b = c1 * a2 - a1 * c2
    at_a = b1 * c2 - c1 * b2
    u = zero
    v = zero
    if a1 <= 0.0 and a2 <= 0.0:
        u = one
    elif b1 >= 0.0 and b2 <= b1:
        v = one
    elif c2 >= 0.0 and c1 <= c2:
        u = zero
    elif at_c <= 0.0 and a1 >= 0.0 and b1 <= 0.0:
        v = a1 / (a1 - b1)
        u = one - v
    elif at_b <= 0.0 and a2 >= 0.0 and c2 <= 0.0:
        u = one - a2 / (a2 - c2)
    elif at_a <= 0.0 and b2 >= b1 and c1 >= c2:
        v = one - (b2 - b1) / ((b2 - b1) + (c1 - c2))
    else:
        whole = at_a + at_b + at_c
        v = at_b / whole
        u = one - v - at_c / whole
    return u, v


@helper
def furthest_of_triangle(a: Any, b: Any, c: Any, p: Any) -> Any:
    """The weights of a and b in the corner that is furthest from p."""
    zero = p.dtype(0.0)
    one = p.dtype(1.0)
    da = wp.length_sq(p - a)
    db = wp.length_sq(p - b)
    dc = wp.length_sq(p - c)
    u = zero
    v = zero
    if da > db and da > dc:
        u = one
    elif db > dc:
        v = one
    return u, v


@helper
def ray_time(start: Any, dir: Any, a: Any, b: Any, c: Any) -> Any:
    """How many lengths of its direction along the ray a triangle is met; -1 where it is not.

    In float64, so that rays between two triangles meet one of them: what they share has the same
    value in both, but for its sign.
    """
    o = vec3d(start)
    d = vec3d(dir)
    p = vec3d(a) - o
    q = vec3d(b) - o
    r = vec3d(c) - o
    u = wp.dot(d, wp.cross(r, q))
    v = wp.dot(d, wp.cross(p, r))
    w = wp.dot(d, wp.cross(q, p))
    det = u + v + w
    t = float64(-1.0)
    inside = u >= 0.0 and v >= 0.0 and w >= 0.0
    if inside or (u <= 0.0 and v <= 0.0 and w <= 0.0):
        if det != 0.0:
            t = wp.dot(u * p + v * q + w * r, d) / (det * wp.dot(d, d))
    return t


@helper
def ray_on_plane(start: Any, dir: Any, a: Any, b: Any, c: Any) -> Any:
    """Where a ray meets the plane of a triangle: time, and the weights of a and b there."""
    n = wp.cross(b - a, c - a)
    t = wp.dot(n, a - start) / wp.dot(n, dir)
    p = start + t * dir
    nn = wp.dot(n, n)
    u = wp.dot(wp.cross(c - b, p - b), n) / nn
    v = wp.dot(wp.cross(a - c, p - c), n) / nn
    return t, u, v


@helper
def solid_angle(a: Any, b: Any, c: Any, p: Any) -> Any:
    """The signed solid angle of a triangle, seen from p; positive from behind."""
    u = a - p
    v = b - p
    w = c - p
    lu = wp.length(u)
    lv = wp.length(v)
    lw = wp.length(w)
    volume = wp.dot(u, wp.cross(v, w))
    rest = lu * lv * lw + wp.dot(u, v) * lw + wp.dot(v, w) * lu + wp.dot(w, u) * lv
    return 2.0 * wp.atan2(volume, rest)
