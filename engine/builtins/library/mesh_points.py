"""The point of a mesh that is nearest to another one, or furthest, and the side it is on."""

from __future__ import annotations

from math import pi as PI
from typing import Any

from engine.builtins import language as wp
from engine.builtins.composite import helper
from engine.builtins.library.mesh import MESHES, SUMS, corners
from engine.builtins.library.mesh_rays import closest_hit, count_hits
from engine.builtins.library.trees import (
    INF,
    ITEM,
    NODE,
    NODES,
    VEC3,
    box_distance_sq,
    row_of,
)
from engine.builtins.library.triangles import (
    furthest_of_triangle,
    is_sliver,
    nearest_on_triangle,
    solid_angle,
)
from engine.builtins.queries import kernel_type, query
from engine.lang.names import vec3
from engine.lang.types import BOOL, FLOAT32, INT32, UINT64

MESH_QUERY_POINT = kernel_type(
    "MeshQueryPoint", result=BOOL, sign=FLOAT32, face=INT32, u=FLOAT32, v=FLOAT32
)
MeshQueryPoint: Any = MESH_QUERY_POINT.cls


@helper
def nearest_in_leaf(meshes: Any, row: Any, node: Any, p: Any, least: Any, face: Any) -> Any:
    """The nearest face, by the square of its distance, of those so far and those of a leaf."""
    first = meshes.heads[row, ITEM] + meshes.firsts[node]
    best = face
    bound = least
    for k in range(first, first + meshes.counts[node]):
        a, b, c = corners(meshes, row, meshes.items[k])
        n = wp.cross(b - a, c - a)
        h = wp.dot(n, p - a)  # from the plane, times the length of n
        if h * h <= 1.001 * bound * wp.dot(n, n) and not is_sliver(a, b, c):
            u, v = nearest_on_triangle(a, b, c, p)
            d = a * u + b * v + c * (1.0 - u - v) - p
            if wp.dot(d, d) < bound:
                bound = wp.dot(d, d)
                best = meshes.items[k]
    return bound, best


@helper
def nearest_face(meshes: Any, row: Any, p: Any, max_dist: Any) -> Any:
    base = meshes.heads[row, NODE]
    stop = meshes.heads[row, NODES]
    least = max_dist * max_dist
    best = -1
    # Down to a leaf nearby first, so that most others are too far away.
    leaf = base
    while stop > 0 and meshes.counts[leaf] == 0:
        left = leaf + 1
        right = base + meshes.skips[left]
        one = box_distance_sq(p, meshes.lowers[left], meshes.uppers[left])
        other = box_distance_sq(p, meshes.lowers[right], meshes.uppers[right])
        leaf = left
        if other < one:
            leaf = right
    at = -1
    while at < stop and stop > 0:
        node = leaf
        near = at < 0
        if not near:
            node = base + at
            near = box_distance_sq(p, meshes.lowers[node], meshes.uppers[node]) < least
        if near:
            if meshes.counts[node] > 0:
                least, best = nearest_in_leaf(meshes, row, node, p, least, best)
            at += 1
        else:
            at = meshes.skips[node]
    return best


@helper
def furthest_face(meshes: Any, row: Any, p: Any, min_dist: Any) -> Any:
    base = meshes.heads[row, NODE]
    stop = meshes.heads[row, NODES]
    most = min_dist * min_dist
    best = -1
    at = 0
    while at < stop:
        node = base + at
        lower = meshes.lowers[node]
        upper = meshes.uppers[node]
        away = wp.max(wp.abs(lower - p), wp.abs(upper - p))
        if wp.dot(away, away) > most:
            if meshes.counts[node] > 0:
                first = meshes.heads[row, ITEM] + meshes.firsts[node]
                for k in range(first, first + meshes.counts[node]):
                    a, b, c = corners(meshes, row, meshes.items[k])
                    if not is_sliver(a, b, c):
                        u, v = furthest_of_triangle(a, b, c, p)
                        d = a * u + b * v + c * (1.0 - u - v) - p
                        if wp.dot(d, d) > most:
                            most = wp.dot(d, d)
                            best = meshes.items[k]
            at += 1
        else:
            at = meshes.skips[node]
    return best


# ---- inside or outside


@helper
def sign_by_rays(meshes: Any, row: Any, p: Any) -> Any:
    """Negative where two of three rays along the axes come out of the mesh."""
    votes = 0
    for k in range(3):
        dir = vec3()
        dir[k] = 1.0
        face = closest_hit(meshes, row, p, dir, INF, -1)
        if face >= 0:
            a, b, c = corners(meshes, row, face)
            if wp.dot(wp.cross(b - a, c - a), dir) > 0.0:
                votes += 1
    return wp.where(votes >= 2, -1.0, 1.0)


@helper
def sign_by_parity(meshes: Any, row: Any, p: Any, n_sample: Any, scale: Any) -> Any:
    """Negative where at least half of some rays cross an odd number of faces."""
    votes = 0
    state = wp.rand_init(42)
    for _ in range(n_sample):
        x = wp.randf(state, -scale, scale)
        y = wp.randf(state, -scale, scale)
        z = wp.randf(state, -scale, scale)
        votes += count_hits(meshes, row, p, vec3(1.0 + x, 1.0 + y, 1.0 + z), -1) % 2
    return wp.where(votes * 2 >= n_sample, -1.0, 1.0)


@helper
def angle_at(a: Any, b: Any, c: Any, q: Any, near: Any) -> Any:
    """The angle of a triangle at a point q of it: less at a side, and at a corner."""
    found = 2.0 * PI
    x = wp.length(q - a) <= near
    y = wp.length(q - b) <= near
    z = wp.length(q - c) <= near
    n = wp.normalize(wp.cross(b - a, c - a))
    if x:
        found = wp.acos(wp.dot(wp.normalize(b - a), wp.normalize(c - a)))
    elif y:
        found = wp.acos(wp.dot(wp.normalize(a - b), wp.normalize(c - b)))
    elif z:
        found = wp.acos(wp.dot(wp.normalize(a - c), wp.normalize(b - c)))
    else:
        s = wp.dot(wp.cross(n, wp.normalize(b - a)), q - a) <= near
        t = wp.dot(wp.cross(n, wp.normalize(c - b)), q - b) <= near
        r = wp.dot(wp.cross(n, wp.normalize(a - c)), q - c) <= near
        if s or t or r:
            found = PI
    return found


@helper
def sign_by_normals(meshes: Any, row: Any, p: Any, face: Any, epsilon: Any) -> Any:
    """The side of the faces around the nearest point, weighted by their angles there."""
    near = epsilon * meshes.edges[row]
    a, b, c = corners(meshes, row, face)
    u, v = nearest_on_triangle(a, b, c, p)
    q = a * u + b * v + c * (1.0 - u - v)
    total = vec3()
    base = meshes.heads[row, NODE]
    stop = meshes.heads[row, NODES]
    at = 0
    while at < stop:
        node = base + at
        if box_distance_sq(q, meshes.lowers[node], meshes.uppers[node]) <= near * near:
            if meshes.counts[node] > 0:
                first = meshes.heads[row, ITEM] + meshes.firsts[node]
                for k in range(first, first + meshes.counts[node]):
                    d, e, f = corners(meshes, row, meshes.items[k])
                    if not is_sliver(d, e, f):
                        x, y = nearest_on_triangle(d, e, f, q)
                        r = d * x + e * y + f * (1.0 - x - y)
                        if wp.length(r - q) <= near:
                            n = wp.normalize(wp.cross(e - d, f - d))
                            total += n * angle_at(d, e, f, q, near)
            at += 1
        else:
            at = meshes.skips[node]
    return wp.where(wp.dot(total, p - q) < 0.0, -1.0, 1.0)


@helper
def winding_number(meshes: Any, row: Any, p: Any, accuracy: Any) -> Any:
    """How often the mesh is around p. Nodes that are far away count as one small face."""
    base = meshes.heads[row, NODE]
    stop = meshes.heads[row, NODES]
    total = p[0] - p[0]
    at = 0
    while at < stop:
        node = base + at
        whole = False
        if meshes.heads[row, SUMS] != 0:
            d = meshes.centers[node] - p
            away = wp.length(d)
            if away > accuracy * meshes.radii[node]:
                total += wp.dot(meshes.areas[node], d) / (away * away * away)
                whole = True
        if whole:
            at = meshes.skips[node]
        else:
            if meshes.counts[node] > 0:
                first = meshes.heads[row, ITEM] + meshes.firsts[node]
                for k in range(first, first + meshes.counts[node]):
                    a, b, c = corners(meshes, row, meshes.items[k])
                    angle = solid_angle(a, b, c, p)
                    if wp.isfinite(angle):
                        total += angle
            at += 1
    return total / (4.0 * PI)


# ---- the queries


@helper
def found_at(meshes: Any, row: Any, p: Any, face: Any) -> Any:
    q = MeshQueryPoint()
    if face >= 0:
        a, b, c = corners(meshes, row, face)
        u, v = nearest_on_triangle(a, b, c, p)
        q.result = True
        q.face = face
        q.u = u
        q.v = v
    return q


@helper
def nearest(meshes: Any, row: Any, p: Any, max_dist: Any) -> Any:
    face = -1
    if row >= 0:
        face = nearest_face(meshes, row, p, max_dist)
    return found_at(meshes, row, p, face)


def mesh_query_point(meshes: Any, id: Any, point: Any, max_dist: Any) -> Any:
    row = row_of(meshes.ids, id)
    q = nearest(meshes, row, point, max_dist)
    if q.result:
        q.sign = sign_by_rays(meshes, row, point)
    return q


def mesh_query_point_no_sign(meshes: Any, id: Any, point: Any, max_dist: Any) -> Any:
    return nearest(meshes, row_of(meshes.ids, id), point, max_dist)


def mesh_query_furthest_point_no_sign(meshes: Any, id: Any, point: Any, min_dist: Any) -> Any:
    row = row_of(meshes.ids, id)
    q = MeshQueryPoint()
    if row >= 0:
        face = furthest_face(meshes, row, point, min_dist)
        if face >= 0:
            a, b, c = corners(meshes, row, face)
            u, v = furthest_of_triangle(a, b, c, point)
            q.result = True
            q.face = face
            q.u = u
            q.v = v
    return q


def mesh_query_point_sign_normal(
    meshes: Any, id: Any, point: Any, max_dist: Any, epsilon: Any = 1.0e-3
) -> Any:
    row = row_of(meshes.ids, id)
    q = nearest(meshes, row, point, max_dist)
    if q.result:
        q.sign = sign_by_normals(meshes, row, point, q.face, epsilon)
    return q


def mesh_query_point_sign_parity(
    meshes: Any, id: Any, point: Any, max_dist: Any, n_sample: Any = 1,
    perturbation_scale: Any = 0.1,
) -> Any:  # fmt: skip
    row = row_of(meshes.ids, id)
    q = nearest(meshes, row, point, max_dist)
    if q.result:
        q.sign = sign_by_parity(meshes, row, point, n_sample, perturbation_scale)
    return q


def mesh_query_point_sign_winding_number(
    meshes: Any, id: Any, point: Any, max_dist: Any, accuracy: Any = 2.0, threshold: Any = 0.5
) -> Any:
    row = row_of(meshes.ids, id)
    q = nearest(meshes, row, point, max_dist)
    if q.result:
        inside = winding_number(meshes, row, point, accuracy) > threshold
        q.sign = wp.where(inside, -1.0, 1.0)
    return q


@helper
def handed(q: Any, inside: Any, face: Any, bary_u: Any, bary_v: Any) -> Any:
    """What variables hold after a query: as before, where nothing was found."""
    if q.result:
        inside = q.sign
        face = q.face
        bary_u = q.u
        bary_v = q.v
    return q.result, inside, face, bary_u, bary_v


def query_point_into(
    meshes: Any, id: Any, point: Any, max_dist: Any, inside: Any, face: Any, bary_u: Any,
    bary_v: Any,
) -> Any:  # fmt: skip
    q = mesh_query_point(meshes, id, point, max_dist)
    r, s, k, u, v = handed(q, inside, face, bary_u, bary_v)
    return r, s, k, u, v


def query_normal_into(
    meshes: Any, id: Any, point: Any, max_dist: Any, inside: Any, face: Any, bary_u: Any,
    bary_v: Any, epsilon: Any = 1.0e-3,
) -> Any:  # fmt: skip
    q = mesh_query_point_sign_normal(meshes, id, point, max_dist, epsilon)
    r, s, k, u, v = handed(q, inside, face, bary_u, bary_v)
    return r, s, k, u, v


def query_parity_into(
    meshes: Any, id: Any, point: Any, max_dist: Any, inside: Any, face: Any, bary_u: Any,
    bary_v: Any, n_sample: Any = 1, perturbation_scale: Any = 0.1,
) -> Any:  # fmt: skip
    q = mesh_query_point_sign_parity(meshes, id, point, max_dist, n_sample, perturbation_scale)
    r, s, k, u, v = handed(q, inside, face, bary_u, bary_v)
    return r, s, k, u, v


def query_winding_into(
    meshes: Any, id: Any, point: Any, max_dist: Any, inside: Any, face: Any, bary_u: Any,
    bary_v: Any, accuracy: Any = 2.0, threshold: Any = 0.5,
) -> Any:  # fmt: skip
    q = mesh_query_point_sign_winding_number(meshes, id, point, max_dist, accuracy, threshold)
    r, s, k, u, v = handed(q, inside, face, bary_u, bary_v)
    return r, s, k, u, v


def query_unsigned_into(
    meshes: Any, id: Any, point: Any, max_dist: Any, face: Any, bary_u: Any, bary_v: Any
) -> Any:
    q = mesh_query_point_no_sign(meshes, id, point, max_dist)
    r, _, k, u, v = handed(q, max_dist, face, bary_u, bary_v)
    return r, k, u, v


def query_furthest_into(
    meshes: Any, id: Any, point: Any, min_dist: Any, face: Any, bary_u: Any, bary_v: Any
) -> Any:
    q = mesh_query_furthest_point_no_sign(meshes, id, point, min_dist)
    r, _, k, u, v = handed(q, min_dist, face, bary_u, bary_v)
    return r, k, u, v


_GIVES = (
    "as a `MeshQueryPoint`: `result` (whether there is one), `face`, and the weights `u`, `v` of "
    "the face's first two corners. Faces without area do not count"
)
_SIGN = " `sign` is negative inside of the mesh, "
_EXACT = "u and v are exact for a fixed face, by the point and the face's points"
_INTO = (
    "the same, with the results in variables, which do not change if there is none; returns "
    "`result`."
)
_IN, _OUT = (UINT64, VEC3, FLOAT32), (INT32, FLOAT32, FLOAT32)


def _register(
    name: str, more: str, plain: Any, into: Any, types: tuple[Any, ...], doc: str, signed: bool
) -> None:
    """Both ways of a query: with a struct as its result, and into variables."""
    out = (FLOAT32, *_OUT) if signed else _OUT
    bound = "min_dist" if "furthest" in name else "max_dist"
    shown = f"{name}(id, point, {bound}"
    query(f"{shown}{more}): {doc}", MESHES, (*_IN, *types), user=name, gradient=_EXACT)(plain)
    words = "inside, face, bary_u, bary_v" if signed else "face, bary_u, bary_v"
    query(f"{shown}, {words}{more}): {_INTO}", MESHES, (*_IN, *out, *types), user=name,
          updates=tuple(range(3, 3 + len(out))), gradient=_EXACT)(into)  # fmt: skip


_NEAREST = f"the point of the mesh that is nearest to a point, nearer than max_dist, {_GIVES}."
_register("mesh_query_point", "", mesh_query_point, query_point_into, (), _NEAREST + _SIGN
          + "where two of three rays along the axes come out of it.", True)  # fmt: skip
_register("mesh_query_point_no_sign", "", mesh_query_point_no_sign, query_unsigned_into, (),
          _NEAREST, False)  # fmt: skip
_register("mesh_query_furthest_point_no_sign", "", mesh_query_furthest_point_no_sign,
          query_furthest_into, (), "the point of the mesh that is furthest from a point, further "
          f"than min_dist, {_GIVES}.", False)  # fmt: skip
_register("mesh_query_point_sign_normal", ", epsilon=0.001", mesh_query_point_sign_normal,
          query_normal_into, (FLOAT32,), _NEAREST + _SIGN + "by the normals of the faces around "
          "the nearest point (within epsilon mean edges of it), weighted by their angles.",
          True)  # fmt: skip
_register("mesh_query_point_sign_parity", ", n_sample=1, perturbation_scale=0.1",
          mesh_query_point_sign_parity, query_parity_into, (INT32, FLOAT32), _NEAREST + _SIGN
          + "where at least half of n_sample rays, always the same ones around (1, 1, 1), cross an "
          "odd number of faces.", True)  # fmt: skip
_register("mesh_query_point_sign_winding_number", ", accuracy=2.0, threshold=0.5",
          mesh_query_point_sign_winding_number, query_winding_into, (FLOAT32, FLOAT32),
          _NEAREST + _SIGN + "if it winds around the point more than threshold times. accuracy: "
          "parts of it at a distance of so many of their radii count as one face, in meshes with "
          "support_winding_number.", True)  # fmt: skip
