"""Rays and meshes: the first hit, any, all; and faces in a box or ball."""

from __future__ import annotations

from typing import Any

from engine.builtins import language as wp
from engine.builtins.composite import helper
from engine.builtins.library.mesh import MESHES, corners
from engine.builtins.library.trees import (
    BALL,
    BOX,
    INF,
    ITEM,
    NODE,
    VEC3,
    box_distance_sq,
    boxes_meet,
    inverses,
    nodes_below,
    ray_meets_box,
    row_of,
)
from engine.builtins.library.triangles import (
    along,
    is_sliver,
    nearest_on_triangle,
    ray_on_plane,
    ray_time,
)
from engine.builtins.queries import STEPS, kernel_type, query
from engine.lang.types import BOOL, FLOAT32, INT32, UINT64
from engine.lang.values import float64

MESH_QUERY_RAY = kernel_type(
    "MeshQueryRay",
    result=BOOL,
    sign=FLOAT32,
    face=INT32,
    t=FLOAT32,
    u=FLOAT32,
    v=FLOAT32,
    normal=VEC3,
)
MeshQueryRay: Any = MESH_QUERY_RAY.cls
MESH_QUERY = kernel_type(
    "MeshQueryAABB",
    row=INT32,
    kind=INT32,
    node=INT32,
    stop=INT32,
    at=INT32,
    end=INT32,
    a=VEC3,
    b=VEC3,
    radius=FLOAT32,
)
STEPS[MESH_QUERY] = "mesh_query_next"
MeshQueryAABB: Any = MESH_QUERY.cls

FIXED = "exact for a fixed face: {} by the ray and by the face's points (in `mesh.points.grad`)"


@helper
def hits(meshes: Any, row: Any, start: Any, dir: Any, max_t: Any, root: Any, how: Any) -> Any:
    """how 0: the face that the ray meets first; 1: any; both -1 for none. 2: how many."""
    first, stop = nodes_below(meshes, row, root)
    base = meshes.heads[row, NODE]
    reach = max_t
    inverse = inverses(dir)
    found = -1
    if how == 2:
        found = 0
    at = first
    while at < stop:
        node = base + at
        if ray_meets_box(start, inverse, meshes.lowers[node], meshes.uppers[node], reach):
            if meshes.counts[node] > 0:
                begin = meshes.heads[row, ITEM] + meshes.firsts[node]
                for k in range(begin, begin + meshes.counts[node]):
                    a, b, c = corners(meshes, row, meshes.items[k])
                    t = ray_time(start, dir, a, b, c)
                    if t >= 0.0 and (t < float64(reach) or how == 2):
                        if how == 2:
                            found += 1
                        else:
                            found = meshes.items[k]
                            reach = type(reach)(t)
                            if how == 1:
                                stop = at
            at += 1
        else:
            at = meshes.skips[node]
    return found


@helper
def closest_hit(meshes: Any, row: Any, start: Any, dir: Any, max_t: Any, root: Any) -> Any:
    return hits(meshes, row, start, dir, max_t, root, 0)


@helper
def count_hits(meshes: Any, row: Any, start: Any, dir: Any, root: Any) -> Any:
    return hits(meshes, row, start, dir, INF, root, 2)


@query("mesh_query_ray(id, start, dir, max_t, root=-1): where a ray meets the mesh first, as a "
       "`MeshQueryRay`: `result` (whether it meets one, before max_t), `face`, `t` (in lengths of "
       "dir), the weights `u`, `v` of the face's first two corners, its unit `normal`, and `sign`: "
       "1 at its front, -1 at its back. root: the node below which to look.",
       MESHES, (UINT64, VEC3, VEC3, FLOAT32, INT32),
       gradient=FIXED.format("t, u, v and normal"))  # fmt: skip
def mesh_query_ray(meshes: Any, id: Any, start: Any, dir: Any, max_t: Any, root: Any = -1) -> Any:
    q = MeshQueryRay()
    row = row_of(meshes.ids, id)
    if row >= 0:
        face = closest_hit(meshes, row, start, dir, max_t, root)
        if face >= 0:
            a, b, c = corners(meshes, row, face)
            t, u, v = ray_on_plane(start, dir, a, b, c)
            n = wp.cross(b - a, c - a)
            q.result = True
            q.face = face
            q.t = t
            q.u = u
            q.v = v
            q.normal = wp.normalize(n)
            q.sign = wp.where(wp.dot(n, dir) < 0.0, 1.0, -1.0)
    return q


@query("mesh_query_ray(id, start, dir, max_t, t, bary_u, bary_v, sign, normal, face, root=-1): "
    "the same, with the results in variables, which do not change if the ray meets no face; "
    "returns `result`.",
       MESHES, (UINT64, VEC3, VEC3, *[FLOAT32] * 5, VEC3, INT32, INT32),
       user="mesh_query_ray", updates=(4, 5, 6, 7, 8, 9),
       gradient=FIXED.format("t, u, v and normal"))  # fmt: skip
def mesh_query_ray_into(
    meshes: Any, id: Any, start: Any, dir: Any, max_t: Any, t: Any, bary_u: Any, bary_v: Any,
    sign: Any, normal: Any, face: Any, root: Any = -1,
) -> Any:  # fmt: skip
    q = mesh_query_ray(meshes, id, start, dir, max_t, root)
    if q.result:
        t = q.t
        bary_u = q.u
        bary_v = q.v
        sign = q.sign
        normal = q.normal
        face = q.face
    return q.result, t, bary_u, bary_v, sign, normal, face


@query("mesh_query_ray_anyhit(id, start, dir, max_t, root=-1): whether a ray meets the mesh before "
       "max_t.", MESHES, (UINT64, VEC3, VEC3, FLOAT32, INT32))  # fmt: skip
def mesh_query_ray_anyhit(
    meshes: Any, id: Any, start: Any, dir: Any, max_t: Any, root: Any = -1
) -> Any:
    row = row_of(meshes.ids, id)
    found = False
    if row >= 0:
        found = hits(meshes, row, start, dir, max_t, root, 1) >= 0
    return found


@query("mesh_query_ray_count_intersections(id, start, dir, root=-1): how many faces a ray meets.",
       MESHES, (UINT64, VEC3, VEC3, INT32))  # fmt: skip
def mesh_query_ray_count_intersections(
    meshes: Any, id: Any, start: Any, dir: Any, root: Any = -1
) -> Any:
    row = row_of(meshes.ids, id)
    found = 0
    if row >= 0:
        found = count_hits(meshes, row, start, dir, root)
    return found


# ---- faces in a box or ball


@helper
def mesh_query(meshes: Any, id: Any, kind: Any, a: Any, b: Any, radius: Any) -> Any:
    q = MeshQueryAABB()
    q.row = row_of(meshes.ids, id)
    q.kind = kind
    q.a = a
    q.b = b
    q.radius = wp.max(radius, type(radius)(0.0))
    if q.row >= 0:
        first, stop = nodes_below(meshes, q.row, -1)
        q.node = first
        q.stop = stop
    return q


@query("mesh_query_aabb(id, low, high): goes over the faces whose boxes meet the box from low to "
    "high. `for face in mesh_query_aabb(...)`.", MESHES, (UINT64, VEC3, VEC3))  # fmt: skip
def mesh_query_aabb(meshes: Any, id: Any, low: Any, high: Any) -> Any:
    return mesh_query(meshes, id, BOX, low, high, 0.0)


@query("mesh_query_sphere(id, center, radius): goes over the faces that meet a ball. "
       "`for face in mesh_query_sphere(...)`.", MESHES, (UINT64, VEC3, FLOAT32))  # fmt: skip
def mesh_query_sphere(meshes: Any, id: Any, center: Any, radius: Any) -> Any:
    return mesh_query(meshes, id, BALL, center, center, radius)


@helper
def in_ball(p: Any, radius: Any, a: Any, b: Any, c: Any) -> Any:
    """Whether a triangle comes as close to p; one without area counts as its longest side."""
    q = a
    if is_sliver(a, b, c):
        s = a
        e = b
        if wp.length_sq(c - b) > wp.length_sq(e - s):
            s = b
            e = c
        if wp.length_sq(a - c) > wp.length_sq(e - s):
            s = c
            e = a
        q = s
        if wp.length_sq(e - s) > 0.0:
            q = s + wp.clamp(along(s, e, p), p.dtype(0.0), p.dtype(1.0)) * (e - s)
    else:
        u, v = nearest_on_triangle(a, b, c, p)
        q = a * u + b * v + c * (1.0 - u - v)
    return wp.length_sq(p - q) <= radius * radius


@helper
def face_meets(q: Any, a: Any, b: Any, c: Any) -> Any:
    lower = wp.min(wp.min(a, b), c)
    upper = wp.max(wp.max(a, b), c)
    found = False
    if q.kind == BOX:
        found = boxes_meet(q.a, q.b, lower, upper)
    else:
        found = in_ball(q.a, q.radius, a, b, c)
    return found


def mesh_query_next(meshes: Any, query: Any, index: Any) -> Any:
    q = query
    found = False
    face = index
    while not found and (q.at < q.end or q.node < q.stop):
        if q.at < q.end:
            a, b, c = corners(meshes, q.row, meshes.items[q.at])
            if face_meets(q, a, b, c):
                found = True
                face = meshes.items[q.at]
            q.at += 1
        else:
            node = meshes.heads[q.row, NODE] + q.node
            meets = False
            if q.kind == BOX:
                meets = boxes_meet(q.a, q.b, meshes.lowers[node], meshes.uppers[node])
            else:
                d = box_distance_sq(q.a, meshes.lowers[node], meshes.uppers[node])
                meets = d <= q.radius * q.radius
            if meets:
                if meshes.counts[node] > 0:
                    q.at = meshes.heads[q.row, ITEM] + meshes.firsts[node]
                    q.end = q.at + meshes.counts[node]
                q.node += 1
            else:
                q.node = meshes.skips[node]
    return found, q, face


for _name in ("mesh_query_next", "mesh_query_aabb_next"):
    query(f"{_name}(query, index): steps to the next face and sets index to its number; False if "
        "there is none.", MESHES, (MESH_QUERY, INT32), user=_name, updates=(0, 1),
          )(mesh_query_next)  # fmt: skip
