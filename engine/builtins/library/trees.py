"""Trees of boxes, as `engine.runtime.geometry.tree` builds them; those of `Bvh` and of meshes."""

from __future__ import annotations

from typing import Any

from engine.builtins import language as wp
from engine.builtins.composite import helper
from engine.builtins.queries import STEPS, kernel_type, query
from engine.lang.types import FLOAT32, INT32, UINT64, ArrayType, VectorType

VEC3 = VectorType(FLOAT32, 3)
INF = float("inf")

# Columns of `heads`, which has a row for each tree: where its nodes, items and groups begin.
NODE, NODES, ITEM, GROUP, GROUPS = 0, 1, 2, 3, 4
TREE_HEADS = 5
TREE = {
    "ids": ArrayType(UINT64, 1),
    "heads": ArrayType(INT32, 2),
    "lowers": ArrayType(VEC3, 1),
    "uppers": ArrayType(VEC3, 1),
    "skips": ArrayType(INT32, 1),
    "firsts": ArrayType(INT32, 1),
    "counts": ArrayType(INT32, 1),  # 0 for inner nodes
    "items": ArrayType(INT32, 1),
    "groups": ArrayType(INT32, 1),
    "roots": ArrayType(INT32, 1),
}
BVHS = kernel_type(
    "geometry.bvh_data", **TREE, item_lowers=ArrayType(VEC3, 1), item_uppers=ArrayType(VEC3, 1)
)
# What a query looks for: a box from a to b, a ball around a, a ray from a along b, or the box of
# half size radius that is moved along it.
BOX, BALL, RAY = 0, 1, 2
BVH_QUERY = kernel_type(
    "BvhQuery",
    row=INT32,
    kind=INT32,
    node=INT32,
    stop=INT32,
    at=INT32,
    end=INT32,
    a=VEC3,
    b=VEC3,  # the inverse of a ray's direction
    radius=FLOAT32,
)
STEPS[BVH_QUERY] = "bvh_query_next"
BvhQuery: Any = BVH_QUERY.cls


@helper
def row_of(ids: Any, id: Any) -> Any:
    found = -1
    for k in range(ids.shape[0]):
        if ids[k] == id:
            found = k
    return found


@helper
def group_root(t: Any, row: Any, group: Any) -> Any:
    """The node of a group; behind all nodes where there is none."""
    found = -1
    if row >= 0:
        low = t.heads[row, GROUP]
        end = low + t.heads[row, GROUPS]
        high = end
        if low == high and group == 0:
            found = 0
        while low < high:
            middle = low + (high - low) // 2
            if t.groups[middle] < group:
                low = middle + 1
            else:
                high = middle
        if low < end:
            if t.groups[low] == group:
                found = t.roots[low]
    return found


@helper
def nodes_below(t: Any, row: Any, root: Any) -> Any:
    """The first node of a traversal, and the one behind the last."""
    first = 0
    stop = t.heads[row, NODES]
    if root >= 0:
        first = root
        if root < stop:
            stop = t.skips[t.heads[row, NODE] + root]
    return first, stop


@helper
def box_distance_sq(p: Any, lower: Any, upper: Any) -> Any:
    total = p[0] - p[0]
    for k in range(3):
        d = wp.max(wp.max(lower[k] - p[k], p[k] - upper[k]), p.dtype(0.0))
        total += d * d
    return total


@helper
def inverses(dir: Any) -> Any:
    """1 / dir, with 0 for 0."""
    out = dir
    for k in range(3):
        if dir[k] != 0.0:
            out[k] = 1.0 / dir[k]
    return out


@helper
def ray_meets_box(start: Any, inverse: Any, lower: Any, upper: Any, reach: Any) -> Any:
    """Whether a point of the box is on the ray, at up to `reach` lengths of its direction.

    inverse: of the direction, see `inverses`.
    """
    begin = start.dtype(0.0)
    end = reach
    hit = True
    for k in range(3):
        if inverse[k] != 0.0:
            one = (lower[k] - start[k]) * inverse[k]
            other = (upper[k] - start[k]) * inverse[k]
            begin = wp.max(begin, wp.min(one, other))
            end = wp.min(end, wp.max(one, other))
        elif not (lower[k] <= start[k] and start[k] <= upper[k]):
            hit = False
    return hit and begin <= end


@helper
def boxes_meet(low: Any, high: Any, lower: Any, upper: Any) -> Any:
    x = low[0] <= upper[0] and lower[0] <= high[0]
    y = low[1] <= upper[1] and lower[1] <= high[1]
    z = low[2] <= upper[2] and lower[2] <= high[2]
    return x and y and z


@helper
def query_meets(q: Any, lower: Any, upper: Any, reach: Any) -> Any:
    found = False
    if q.kind == BOX:
        found = boxes_meet(q.a, q.b, lower, upper)
    elif q.kind == BALL:
        found = box_distance_sq(q.a, lower, upper) <= q.radius * q.radius
    else:
        wide = type(q.a)(q.radius)
        found = ray_meets_box(q.a, q.b, lower - wide, upper + wide, reach)
    return found


@helper
def tree_query(t: Any, id: Any, kind: Any, a: Any, b: Any, radius: Any, root: Any) -> Any:
    q = BvhQuery()
    q.row = row_of(t.ids, id)
    q.kind = kind
    q.a = a
    q.b = b
    q.radius = wp.max(radius, type(radius)(0.0))
    if q.row >= 0:
        first, stop = nodes_below(t, q.row, root)
        q.node = first
        q.stop = stop
    return q


_VISITS = (
    " of a `Bvh` or, by `mesh_get_bvh`, of a mesh, whose boxes {}. root: the node below which to "
    "look, from `bvh_get_group_root`. `for i in {}(...)`."
)


def _doc(form: str, what: str) -> str:
    return f"{form}: goes over the items" + _VISITS.format(what, form.partition("(")[0])


@query(_doc("bvh_query_aabb(id, low, high, root=-1)", "meet that from low to high"),
       BVHS, (UINT64, VEC3, VEC3, INT32))  # fmt: skip
def bvh_query_aabb(bvhs: Any, id: Any, low: Any, high: Any, root: Any = -1) -> Any:
    return tree_query(bvhs, id, BOX, low, high, 0.0, root)


@query(_doc("bvh_query_ray(id, start, dir, root=-1)", "the ray meets"),
       BVHS, (UINT64, VEC3, VEC3, INT32))  # fmt: skip
def bvh_query_ray(bvhs: Any, id: Any, start: Any, dir: Any, root: Any = -1) -> Any:
    return tree_query(bvhs, id, RAY, start, inverses(dir), 0.0, root)


@query(_doc("bvh_query_sphere(id, center, radius, root=-1)", "meet the ball"),
       BVHS, (UINT64, VEC3, FLOAT32, INT32))  # fmt: skip
def bvh_query_sphere(bvhs: Any, id: Any, center: Any, radius: Any, root: Any = -1) -> Any:
    return tree_query(bvhs, id, BALL, center, center, radius, root)


@query(_doc("bvh_query_capsule(id, start, dir, radius, root=-1)",
            "the ray meets when they are wider by radius on each side"),
       BVHS, (UINT64, VEC3, VEC3, FLOAT32, INT32))  # fmt: skip
def bvh_query_capsule(bvhs: Any, id: Any, start: Any, dir: Any, radius: Any, root: Any = -1) -> Any:
    return tree_query(bvhs, id, RAY, start, inverses(dir), radius, root)


@query("bvh_query_next(query, index, max_dist=inf): steps to the next item and sets index to its "
       "number; False if there is none. max_dist: how far to look along a ray, in lengths of "
       "its direction.", BVHS, (BVH_QUERY, INT32, FLOAT32), updates=(0, 1))  # fmt: skip
def bvh_query_next(bvhs: Any, query: Any, index: Any, max_dist: Any = INF) -> Any:
    q = query
    found = False
    item = index
    while not found and (q.at < q.end or q.node < q.stop):
        if q.at < q.end:
            if query_meets(q, bvhs.item_lowers[q.at], bvhs.item_uppers[q.at], max_dist):
                found = True
                item = bvhs.items[q.at]
            q.at += 1
        else:
            node = bvhs.heads[q.row, NODE] + q.node
            if query_meets(q, bvhs.lowers[node], bvhs.uppers[node], max_dist):
                if bvhs.counts[node] > 0:
                    q.at = bvhs.heads[q.row, ITEM] + bvhs.firsts[node]
                    q.end = q.at + bvhs.counts[node]
                q.node += 1
            else:
                q.node = bvhs.skips[node]
    return found, q, item


@query("bvh_get_group_root(id, group): the node that has all items of a group, for queries; -1 "
    "if there is none.", BVHS, (UINT64, INT32))  # fmt: skip
def bvh_get_group_root(bvhs: Any, id: Any, group: Any) -> Any:
    return group_root(bvhs, row_of(bvhs.ids, id), group)
