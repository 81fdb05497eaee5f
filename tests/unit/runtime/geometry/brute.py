"""Geometry by brute force in float64, for tests."""

import numpy as np


def sphere(rounds=1):
    """Points and faces (outward) of an octahedron whose faces were halved twice `rounds` times."""
    v = [np.array(x, float) for x in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1),
                                      (0, 0, -1))]  # fmt: skip
    f = [(a, b, c) for a in (0, 1) for b in (2, 3) for c in (4, 5)]
    for _ in range(rounds):
        known, out = {}, []
        for a, b, c in f:
            middle = []
            for x, y in ((a, b), (b, c), (c, a)):
                key = (min(x, y), max(x, y))
                if key not in known:
                    known[key] = len(v)
                    v.append((v[x] + v[y]) / np.linalg.norm(v[x] + v[y]))
                middle.append(known[key])
            p, q, r = middle
            out += [(a, p, r), (b, q, p), (c, r, q), (p, q, r)]
        f = out
    points = np.array(v)
    corners = points[np.array(f)]
    inward = np.linalg.det(corners) < 0
    faces = np.array(f, np.int32)
    faces[inward] = faces[inward][:, ::-1]
    return points, faces


def nearest_on_faces(corners, p):
    """The points of triangles (n, 3, 3) that are nearest to a point."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    n = np.cross(b - a, c - a)
    nn = np.sum(n * n, axis=1)
    with np.errstate(all="ignore"):
        u = np.sum(np.cross(c - b, p - b) * n, axis=1) / nn
        v = np.sum(np.cross(a - c, p - c) * n, axis=1) / nn
    inside = (u >= 0) & (v >= 0) & (u + v <= 1)
    best = u[:, None] * a + v[:, None] * b + (1 - u - v)[:, None] * c
    least = np.where(inside, np.linalg.norm(best - p, axis=1), np.inf)
    for s, e in ((a, b), (b, c), (c, a)):
        with np.errstate(all="ignore"):
            k = np.clip(np.sum((p - s) * (e - s), axis=1) / np.sum((e - s) ** 2, axis=1), 0, 1)
        q = s + np.nan_to_num(k)[:, None] * (e - s)
        d = np.linalg.norm(q - p, axis=1)
        best = np.where((d < least)[:, None], q, best)
        least = np.minimum(d, least)
    return best, least


def ray_times(corners, start, dir):
    """Where a ray meets triangles (n, 3, 3), in lengths of its direction; inf where it does not."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    n = np.cross(b - a, c - a)
    with np.errstate(all="ignore"):
        t = np.sum(n * (a - start), axis=1) / (n @ dir)
        p = start + t[:, None] * dir
        sides = [np.sum(np.cross(e - s, p - s) * n, axis=1) for s, e in ((a, b), (b, c), (c, a))]
    hit = (t >= 0) & (np.min(sides, axis=0) >= 0)
    return np.where(hit, t, np.inf)


def differences(f, x, step=1e-6):
    """The gradient of a function of an array, by central differences."""
    x = np.array(x, float)
    out = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        move = np.zeros_like(x)
        move[at] = step
        out[at] = (f(x + move) - f(x - move)) / (2 * step)
    return out
