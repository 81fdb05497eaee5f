"""`Mesh`: triangles with a tree of their boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.builtins.library.mesh import (
    FACES,
    INDEX,
    MESH,
    MESH_HEADS,
    MESHES,
    POINT,
    POINTS,
    SUMS,
    VELOCITIES,
    VELOCITY,
)
from engine.builtins.library.mesh_points import MESH_QUERY_POINT
from engine.builtins.library.mesh_rays import MESH_QUERY, MESH_QUERY_RAY
from engine.builtins.library.trees import BVHS, TREE_HEADS
from engine.classes import dataclass
from engine.lang.types import INT32
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.creation import empty
from engine.runtime.geometry import bvh, pools, registry
from engine.runtime.geometry.bvh import VEC3, Contents, filled, flat, joined, stacked, typed
from engine.runtime.geometry.registry import Geometry, refuse
from engine.runtime.geometry.tree import Tree, build
from engine.runtime.structs import Struct


class MeshData(Struct):
    """The table of the meshes that a launch may query."""

    __ir_type__ = MESHES


class MeshQueryPoint(Struct):
    """What `mesh_query_point` and its like give."""

    __ir_type__ = MESH_QUERY_POINT


class MeshQueryRay(Struct):
    """What `mesh_query_ray` gives."""

    __ir_type__ = MESH_QUERY_RAY


class MeshQueryAABB(Struct):
    """What `mesh_query_aabb` and `mesh_query_sphere` give: to go over by `for`."""

    __ir_type__ = MESH_QUERY


MeshQuery = MeshQueryAABB
for _cls in (MeshData, MeshQueryPoint, MeshQueryRay, MeshQueryAABB):
    _cls.__ir_type__.cls = _cls


@dataclass(frozen=True)
class Parts:
    """A mesh as it was at its last refit.

    tree: of its faces. indices: (3 * faces,). edge: the mean length. centers, areas, radii: of
    the nodes, where winding numbers are supported.
    """

    tree: Contents
    indices: Any
    edge: float
    centers: Any
    areas: Any
    radii: Any


class Mesh(Geometry):
    """Triangles, for kernels that look for the nearest or cast rays: see `mesh_query_point`.

    Args:
        points: of shape (n,), `vec3`. Gradients by what kernels read of it are in `points.grad`.
        indices: of shape (3 * faces,), int32: the points of each face.
        velocities: of shape (n,), `vec3`, for `mesh_eval_velocity`.
        support_winding_number: stores what makes `mesh_query_point_sign_winding_number` fast.
        bvh_constructor: accepted, as in `Bvh`.
        bvh_leaf_size: how many faces a leaf of the tree may have, 4 where left out.
        groups: of shape (faces,), int32: rays can be restricted to one of them.

    Attributes:
        id: the number that kernels take, a `uint64`, good as long as the object is there.
        points, velocities: can be replaced by arrays of the same length.
        indices, groups, device: as given.

    Where points change in place, `refit` has to follow. Raises LaunchError E202 for arrays of other
    types or lengths, and for indices without a point or that are not three a face.
    """

    __ir_type__ = MESH

    def __init__(
        self,
        points: array,
        indices: array,
        velocities: array | None = None,
        support_winding_number: bool = False,
        bvh_constructor: Any = None,
        bvh_leaf_size: int | None = None,
        groups: array | None = None,
    ) -> None:
        typed("Mesh", "points", points, VEC3)
        typed("Mesh", "indices", indices, INT32)
        if velocities is not None:
            typed("Mesh", "velocities", velocities, VEC3)
            if len(velocities) != len(points):
                raise refuse("Mesh: there must be a velocity for each point",
                             f"got {len(velocities)} and {len(points)}")  # fmt: skip
        for name, a in (("points", points), ("indices", indices), ("velocities", velocities)):
            if a is not None and not a.is_contiguous:
                raise refuse(f"Mesh: {name} must be contiguous", help="pass a copy")
        if groups is not None:
            typed("Mesh", "groups", groups, INT32)
            if len(groups) != len(indices) // 3:
                raise refuse("Mesh: groups must have the same length as indices / 3",
                             f"got {len(groups)} and {len(indices)}")  # fmt: skip
        if len(indices) % 3:
            raise refuse("Mesh: indices must be three for each face",
                         f"got {len(indices)}, which is not a multiple of 3")  # fmt: skip
        bvh.check_constructor("Mesh", bvh_constructor, groups)
        given = 4 if bvh_leaf_size is None else bvh_leaf_size
        leaf_size = bvh.leaf_size_of("Mesh", "bvh_leaf_size", given)
        self._points, self._velocities = points, velocities
        self.indices, self.groups = indices, groups
        self.support_winding_number = support_winding_number
        self.device = points.device
        corners = self._corners()
        low, high = _faces(np.array(points._parts)[corners])
        by = None if groups is None else np.array(groups._parts)
        self._made = self._parts(build(low, high, leaf_size, by))
        self.register()
        self._tree_id = registry.number()

    @property
    def points(self) -> array:
        """The corners; setting it refits."""
        return self._points

    @points.setter
    def points(self, points: array) -> None:
        typed("Mesh", "points", points, VEC3)
        if points.device != self.device or len(points) != len(self._points):
            raise refuse("Mesh: new points must be as many, on the same device",
                         f"got {len(points)} for {len(self._points)}")  # fmt: skip
        self._points = points
        self.refit()

    @property
    def velocities(self) -> array | None:
        """The velocities of the corners, if there are any."""
        return self._velocities

    @velocities.setter
    def velocities(self, velocities: array) -> None:
        typed("Mesh", "velocities", velocities, VEC3)
        if velocities.device != self.device or len(velocities) != len(self._points):
            raise refuse("Mesh: new velocities must be as many, on the same device",
                         f"got {len(velocities)} for {len(self._points)}")  # fmt: skip
        self._velocities = velocities

    @property
    def tree(self) -> tuple[int, Contents]:
        """The tree of the faces, with the number that `mesh_get_bvh` gives."""
        return self._tree_id, self._made.tree

    def refit(self) -> None:
        """Takes over the points as they are now; to be called when they have changed."""
        events.deferred(self.refit)  # in a captured graph it is done again
        self._made = self._parts(self._made.tree.tree)

    def _corners(self) -> Any:
        """The points of each face (faces, 3). Raises GeometryError for one that is not there."""
        count = len(self.indices) // 3
        found = np.array(self.indices._parts[: 3 * count]).reshape(count, 3)
        if count and not (found.min() >= 0 and found.max() < len(self._points)):
            k = int(np.flatnonzero((found < 0) | (found >= len(self._points)))[0])
            raise refuse(f"Mesh: face {k // 3} has the point {found.ravel()[k]}",
                         f"there are {len(self._points)} points")  # fmt: skip
        return found

    def _parts(self, tree: Tree) -> Parts:
        corners = self._corners()
        at = np.array(self._points._parts)[corners]
        with np.errstate(all="ignore"):
            sides = np.linalg.norm(at - np.roll(at, 1, axis=1), axis=2)
            edge = float(sides.mean()) if sides.size else 0.0
        contents = Contents.of(tree, *_faces(at))
        sums = _sums(tree, at, contents) if self.support_winding_number else (_NO, _NO, _NO[:, 0])
        return Parts(contents, corners.ravel(), edge, *sums)


_NO = np.zeros((0, 3), np.float32)


def _faces(at: Any) -> tuple[Any, Any]:
    """The boxes of faces (n, 3, 3)."""
    return np.fmin.reduce(at, axis=1), np.fmax.reduce(at, axis=1)


def _sums(tree: Tree, at: Any, contents: Contents) -> tuple[Any, Any, Any]:
    """Centres, areas and radii of the nodes of a tree of faces (n, 3, 3)."""
    a, b, c = (np.nan_to_num(at[tree.order, k].astype(np.float64)) for k in range(3))
    area = 0.5 * np.cross(b - a, c - a)
    size = np.linalg.norm(area, axis=1)[:, None]
    begin, end = tree.firsts, tree.firsts + tree.counts

    def total(x: Any) -> Any:
        return (lambda s: s[end] - s[begin])(np.concatenate([0 * x[:1], np.cumsum(x, axis=0)]))

    if not len(tree.order):
        return _NO, _NO, _NO[:, 0]
    middle = 0.5 * (contents.lowers.astype(np.float64) + contents.uppers)
    weight = total(size)
    centre = np.where(
        weight > 0, total(size * (a + b + c) / 3) / np.maximum(weight, 1e-300), middle
    )
    away = np.maximum(np.abs(contents.lowers - centre), np.abs(contents.uppers - centre))
    return (centre.astype(np.float32), total(area).astype(np.float32),
            np.linalg.norm(away, axis=1).astype(np.float32))  # fmt: skip


# ---- tables

_EMPTY: dict[str, array] = {}
_fixed: dict[tuple[int, ...], tuple[list[Any], dict[str, array]]] = {}


def _table(meshes: Sequence[Mesh]) -> MeshData:
    """The table of some meshes: of one with its own points, of several with copies of theirs."""
    made = [m._made for m in meshes]
    key = tuple(x for m in meshes for x in (m.id, id(m._made), m._velocities is not None))
    found = _fixed.get(key)
    if found is None:
        if len(_fixed) >= 8:
            _fixed.pop(next(iter(_fixed)), None)
        value = filled(MeshData, _static(meshes))
        named = {f: v for f, v in value.__dict__.items() if v is not None}
        found = _fixed[key] = list(made), named
    out = MeshData()
    out.__dict__.update(found[1])
    out.__dict__["points"] = _pooled([m._points for m in meshes])
    out.__dict__["velocities"] = _pooled([m._velocities for m in meshes if m._velocities])
    return out


def _static(meshes: Sequence[Mesh]) -> dict[str, Any]:
    made = [m._made for m in meshes]
    fields = joined([(m.id, m._made.tree) for m in meshes])
    heads = np.zeros((len(meshes), MESH_HEADS), np.int32)
    heads[:, :TREE_HEADS] = fields["heads"]
    point = index = velocity = 0
    for k, m in enumerate(meshes):
        velocities = 0 if m._velocities is None else len(m._velocities)
        heads[k, [POINT, POINTS]] = point, len(m._points)
        heads[k, [INDEX, FACES]] = index, len(made[k].indices) // 3
        heads[k, [VELOCITY, VELOCITIES]] = velocity, velocities
        heads[k, SUMS] = m.support_winding_number
        point, index = point + len(m._points), index + len(made[k].indices)
        velocity += velocities
    sums = [_summed(p) for p in made] if any(m.support_winding_number for m in meshes) else []
    return fields | {
        "heads": heads,
        "indices": flat([p.indices for p in made]),
        "bvhs": np.array([m._tree_id for m in meshes], np.uint64),
        "edges": np.array([p.edge for p in made], np.float32),
        "centers": stacked([s[0] for s in sums]),
        "areas": stacked([s[1] for s in sums]),
        "radii": flat([s[2] for s in sums], np.float32),
    }


def _summed(p: Parts) -> tuple[Any, Any, Any]:
    """The sums of a mesh's nodes, with room where there are none: nodes are counted alike."""
    count = len(p.tree.tree.skips)
    if len(p.radii) == count:
        return p.centers, p.areas, p.radii
    return np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)


def _pooled(arrays: Sequence[array | None]) -> array:
    """One array of all: itself, or a pool of copies."""
    given = [a for a in arrays if a is not None]
    if len(given) == 1:
        return given[0]
    if not given:
        if "vec3" not in _EMPTY:
            _EMPTY["vec3"] = empty(0, dtype=bvh._class(VEC3), device="cpu")
        return _EMPTY["vec3"]
    return pools.pooled(given)


registry.MAKERS[MESHES] = (Mesh,), _table
registry.MAKERS[BVHS] = (bvh.Bvh, Mesh), registry.MAKERS[BVHS][1]
