"""Segments and triangles, by trying every way that they can be close."""

import itertools

import numpy as np

from tests.oracles import Oracle


def closest(p1, q1, p2, q2, epsilon):
    """The best of: inside of both segments, and at each end of one inside of the other."""
    u, v = q1 - p1, q2 - p2
    tried = []
    n = np.cross(u, v)
    if n @ n > 0:
        s, t, _ = np.linalg.solve(np.stack([u, -v, n], axis=1), p2 - p1)
        tried.append((s, t))
    for s in (0.0, 1.0):
        tried.append((s, np.clip((p1 + s * u - p2) @ v / (v @ v), 0, 1)))
    for t in (0.0, 1.0):
        tried.append((np.clip((p2 + t * v - p1) @ u / (u @ u), 0, 1), t))
    inside = [(s, t) for s, t in tried if 0 <= s <= 1 and 0 <= t <= 1]
    d = [np.linalg.norm(p1 + s * u - p2 - t * v) for s, t in inside]
    s, t = inside[int(np.argmin(d))]
    return np.array([s, t, min(d)])


def crosses(p, q, a, b, c):
    """Whether a segment goes through a triangle."""
    n = np.cross(b - a, c - a)
    x, y = n @ (p - a), n @ (q - a)
    if x * y > 0 or x == y:
        return False
    at = p + (q - p) * x / (x - y)
    return all(np.cross(e - s, at - s) @ n >= 0 for s, e in ((a, b), (b, c), (c, a)))


def meet(*corners):
    one, other = corners[:3], corners[3:]
    for t, f in ((one, other), (other, one)):
        for p, q in itertools.combinations(t, 2):
            if crosses(p, q, *f):
                return 1
    return 0


OPERATIONS: dict[str, Oracle] = {}
COMPOSED = {
    "closest_point_edge_edge": Oracle(
        closest, units=512, degree=1, special="weights of points that are nowhere"),
    "intersect_tri_tri": Oracle(meet, special="points that are nowhere"),
}  # fmt: skip
