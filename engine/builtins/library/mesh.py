"""Meshes: their parts, and values at a place of a face."""

from __future__ import annotations

from typing import Any

from engine.builtins import language as wp
from engine.builtins.composite import helper
from engine.builtins.library.trees import TREE, TREE_HEADS, VEC3, group_root, row_of
from engine.builtins.queries import kernel_type, query
from engine.lang.names import vec3
from engine.lang.types import FLOAT32, INT32, UINT64, ArrayType

# Columns of `heads` behind those of trees: where points, corners and velocities begin, and how
# many faces and velocities there are.
POINT, POINTS, INDEX, FACES, VELOCITY, VELOCITIES, SUMS = range(TREE_HEADS, TREE_HEADS + 7)
MESH_HEADS = TREE_HEADS + 7
MESHES = kernel_type(
    "geometry.mesh_data",
    points=ArrayType(VEC3, 1),
    velocities=ArrayType(VEC3, 1),
    indices=ArrayType(INT32, 1),
    **TREE,
    bvhs=ArrayType(UINT64, 1),
    edges=ArrayType(FLOAT32, 1),  # the mean length
    # Of nodes: where their area is, how much of it (as a vector), and how far off they reach.
    centers=ArrayType(VEC3, 1),
    areas=ArrayType(VEC3, 1),
    radii=ArrayType(FLOAT32, 1),
)
MESH = kernel_type(
    "Mesh",
    points=ArrayType(VEC3, 1),
    velocities=ArrayType(VEC3, 1),
    indices=ArrayType(INT32, 1),
)
MeshParts: Any = MESH.cls

POINTS_TOO = "exact for a fixed face: by its points (in `mesh.points.grad`) too"
_NONE = "0 where there is no such mesh, face or corner"


@helper
def corner(meshes: Any, row: Any, index: Any) -> Any:
    """The place in `points` of a corner, by its place in the mesh's indices; -1 for none."""
    found = -1
    if row >= 0:
        if index >= 0 and index < 3 * meshes.heads[row, FACES]:
            found = meshes.heads[row, POINT] + meshes.indices[meshes.heads[row, INDEX] + index]
    return found


@helper
def corners(meshes: Any, row: Any, face: Any) -> Any:
    """The points of a face that there is."""
    first = meshes.heads[row, INDEX] + 3 * face
    base = meshes.heads[row, POINT]
    a = meshes.points[base + meshes.indices[first]]
    b = meshes.points[base + meshes.indices[first + 1]]
    c = meshes.points[base + meshes.indices[first + 2]]
    return a, b, c


@query("mesh_get(id): the mesh with its arrays: points, velocities (empty where it has none) and "
       "indices.", MESHES, (UINT64,), gradient="exact, that of the arrays")  # fmt: skip
def mesh_get(meshes: Any, id: Any) -> Any:
    row = row_of(meshes.ids, id)
    p = 0
    p_end = 0
    v = 0
    v_end = 0
    k = 0
    k_end = 0
    if row >= 0:
        p = meshes.heads[row, POINT]
        p_end = p + meshes.heads[row, POINTS]
        v = meshes.heads[row, VELOCITY]
        v_end = v + meshes.heads[row, VELOCITIES]
        k = meshes.heads[row, INDEX]
        k_end = k + 3 * meshes.heads[row, FACES]
    return MeshParts(meshes.points[p:p_end], meshes.velocities[v:v_end], meshes.indices[k:k_end])


@query(f"mesh_get_point(id, index): the point of a corner, by its place in the indices; {_NONE}.",
       MESHES, (UINT64, INT32), gradient="exact, by the mesh's points")  # fmt: skip
def mesh_get_point(meshes: Any, id: Any, index: Any) -> Any:
    k = corner(meshes, row_of(meshes.ids, id), index)
    p = vec3()
    if k >= 0:
        p = meshes.points[k]
    return p


@query(f"mesh_get_velocity(id, index): the velocity of a corner, by its place in the indices; "
       f"{_NONE}, and where it has no velocities.",
       MESHES, (UINT64, INT32), gradient="exact, by the mesh's velocities")  # fmt: skip
def mesh_get_velocity(meshes: Any, id: Any, index: Any) -> Any:
    row = row_of(meshes.ids, id)
    k = corner(meshes, row, index)
    v = vec3()
    if k >= 0:
        if meshes.heads[row, VELOCITIES] > 0:
            v = meshes.velocities[k - meshes.heads[row, POINT] + meshes.heads[row, VELOCITY]]
    return v


@query("mesh_get_index(id, index): the number of the point at a corner, by its place in the "
    "indices; -1 if there is none.", MESHES, (UINT64, INT32))  # fmt: skip
def mesh_get_index(meshes: Any, id: Any, index: Any) -> Any:
    row = row_of(meshes.ids, id)
    k = corner(meshes, row, index)
    if k >= 0:
        k -= meshes.heads[row, POINT]
    return k


@query("mesh_get_bvh(id): the number of the mesh's own tree of faces, for `bvh_query_aabb` and "
    "similar queries.", MESHES, (UINT64,))  # fmt: skip
def mesh_get_bvh(meshes: Any, id: Any) -> Any:
    row = row_of(meshes.ids, id)
    found = id - id
    if row >= 0:
        found = meshes.bvhs[row]
    return found


@query("mesh_get_group_root(id, group): the node that has all faces of a group, for queries; -1 "
    "if there is none.", MESHES, (UINT64, INT32))  # fmt: skip
def mesh_get_group_root(meshes: Any, id: Any, group: Any) -> Any:
    return group_root(meshes, row_of(meshes.ids, id), group)


@query("mesh_eval_position(id, face, bary_u, bary_v): the point of a face with these weights of "
       f"its first two corners; {_NONE}.",
       MESHES, (UINT64, INT32, FLOAT32, FLOAT32), gradient=POINTS_TOO)  # fmt: skip
def mesh_eval_position(meshes: Any, id: Any, face: Any, bary_u: Any, bary_v: Any) -> Any:
    row = row_of(meshes.ids, id)
    p = vec3()
    if corner(meshes, row, 3 * face) >= 0:
        a, b, c = corners(meshes, row, face)
        p = a * bary_u + b * bary_v + c * (1.0 - bary_u - bary_v)
    return p


@query("mesh_eval_velocity(id, face, bary_u, bary_v): the velocity of a point on a face; "
       f"{_NONE}, and where it has no velocities.", MESHES, (UINT64, INT32, FLOAT32, FLOAT32),
       gradient="exact for a fixed face: by its velocities (in `mesh.velocities.grad`) too",
       )  # fmt: skip
def mesh_eval_velocity(meshes: Any, id: Any, face: Any, bary_u: Any, bary_v: Any) -> Any:
    a = mesh_get_velocity(meshes, id, 3 * face)
    b = mesh_get_velocity(meshes, id, 3 * face + 1)
    c = mesh_get_velocity(meshes, id, 3 * face + 2)
    return a * bary_u + b * bary_v + c * (1.0 - bary_u - bary_v)


@query(f"mesh_eval_face_normal(id, face): the unit normal of a face; {_NONE}.",
       MESHES, (UINT64, INT32), gradient="exact, by the face's points")  # fmt: skip
def mesh_eval_face_normal(meshes: Any, id: Any, face: Any) -> Any:
    row = row_of(meshes.ids, id)
    n = vec3()
    if corner(meshes, row, 3 * face) >= 0:
        a, b, c = corners(meshes, row, face)
        n = wp.normalize(wp.cross(b - a, c - a))
    return n
