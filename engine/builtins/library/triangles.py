"""Points, rays and triangles: what meshes are searched with, and what searches give in the end."""

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
    return not (wp.length(wp.cross(ab, ac)) >= sides * 1.0e-6 and sides > 0.0)


@helper
def along(from_: Any, to: Any, p: Any) -> Any:
    """How far along a segment the point nearest to p is, not clamped."""
    d = to - from_
    return wp.dot(p - from_, d) / wp.dot(d, d)


@helper
def nearest_on_triangle(a: Any, b: Any, c: Any, p: Any) -> Any:
    """The weights of a and b in the point of the triangle that is nearest to p."""
    zero = p[0] - p[0]
    one = zero + 1.0
    ab = b - a
    ac = c - a
    n = wp.cross(ab, ac)
    nn = wp.dot(n, n)
    u = wp.dot(wp.cross(c - b, p - b), n) / nn
    v = wp.dot(wp.cross(a - c, p - c), n) / nn
    w = one - u - v
    if u >= 0.0 and v >= 0.0 and w >= 0.0:
        return u, v
    # Outside: the nearest of the sides, each cut at its ends.
    best_u = one
    best_v = zero
    least = wp.dot(p - a, p - a)
    for side in range(3):
        s = a
        e = b
        if side == 1:
            s = b
            e = c
        elif side == 2:
            s = c
            e = a
        k = wp.clamp(along(s, e, p), zero, one)
        q = s + k * (e - s)
        d = wp.dot(p - q, p - q)
        if d < least or side == 0:
            least = d
            if side == 0:
                best_u = one - k
                best_v = k
            elif side == 1:
                best_u = zero
                best_v = one - k
            else:
                best_u = k
                best_v = zero
    return best_u, best_v


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
