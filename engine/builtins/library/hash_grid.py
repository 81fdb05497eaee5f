"""Hash grids: the points of cells of space, found by the cell's number."""

from __future__ import annotations

from typing import Any

from engine.builtins import language as wp
from engine.builtins.composite import helper
from engine.builtins.queries import STEPS, kernel_type, query
from engine.lang.types import (
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT32,
    UINT64,
    ArrayType,
    VectorType,
)
from engine.lang.values import float64, int64, uint32

# One row of `heads` and `scales` for each grid: `engine.runtime.geometry.hash_grid` writes them.
HASH_GRIDS = kernel_type(
    "geometry.hash_grid_data",
    ids=ArrayType(UINT64, 1),
    heads=ArrayType(INT32, 2),
    scales=ArrayType(FLOAT64, 1),
    buckets=ArrayType(INT32, 1),
    cells=ArrayType(INT32, 1),
    begins=ArrayType(INT32, 1),
    ends=ArrayType(INT32, 1),
    points=ArrayType(INT32, 1),
    groups=ArrayType(INT32, 1),
)
# Columns of `heads`.
DIM = 0  # and the two after it
BUCKET, MASK, POINT, COUNT, GROUPED = 3, 4, 5, 6, 7
HEADS = 8

HASH_GRID_QUERY = kernel_type(
    "HashGridQuery",
    row=INT32,
    at=INT32,
    end=INT32,
    x=INT32,
    y=INT32,
    z=INT32,
    x0=INT32,
    y0=INT32,
    x1=INT32,
    y1=INT32,
    z1=INT32,
    group=INT32,
    grouped=INT32,
)
STEPS[HASH_GRID_QUERY] = "hash_grid_query_next"
HashGridQuery: Any = HASH_GRID_QUERY.cls

_QUERY = (
    "hash_grid_query(id, point, max_dist): goes over the points of a `HashGrid` in the cells "
    "that meet the box of half size max_dist around a point; some of these points are further "
    "away. With a further argument group, only over points of that group. `for i in "
    "hash_grid_query(...)`."
)
_NEXT = (
    "hash_grid_query_next(query, index): steps to the next point and sets index to its number; "
    "False if there is none."
)
_POINT_ID = (
    "hash_grid_point_id(id, index): the number of the point that is at a place of the order by "
    "cells; -1 if there is none."
)


@helper
def grid_row(grids: Any, id: Any) -> Any:
    found = -1
    for k in range(grids.ids.shape[0]):
        if grids.ids[k] == id:
            found = k
    return found


@helper
def cell_coordinate(v: Any) -> Any:
    c = float64(wp.floor(v))
    found = 0
    if c >= 2147483646.0:
        found = 2147483646
    elif c >= -2147483648.0:
        found = int(c)
    elif c < -2147483648.0:
        found = -2147483648
    return found


@helper
def last_coordinate(first: Any, last: Any, cells: Any) -> Any:
    """No cell is visited twice."""
    end = last
    if int64(last) - int64(first) >= int64(cells):
        end = first + (cells - 1)
    return end


@helper
def wrapped(x: Any, cells: Any) -> Any:
    c = x % cells
    if c < 0:
        c += cells
    return c


@helper
def first_of_group(grids: Any, begin: Any, end: Any, group: Any) -> Any:
    """The first place from which groups, as bits, are not less."""
    low = begin
    high = end
    while low < high:
        middle = low + (high - low) // 2
        if uint32(grids.groups[middle]) < uint32(group):
            low = middle + 1
        else:
            high = middle
    return low


@helper
def cell_points(grids: Any, row: Any, x: Any, y: Any, z: Any, group: Any, grouped: Any) -> Any:
    """The places of the points in a cell, from the first to behind the last."""
    heads = grids.heads
    nx = heads[row, DIM]
    ny = heads[row, DIM + 1]
    nz = heads[row, DIM + 2]
    cell = (wrapped(z, nz) * ny + wrapped(y, ny)) * nx + wrapped(x, nx)
    bucket = heads[row, BUCKET] + (cell & heads[row, MASK])
    begin = 0
    end = 0
    for k in range(grids.buckets[bucket], grids.buckets[bucket + 1]):
        if grids.cells[k] == cell:
            begin = grids.begins[k]
            end = grids.ends[k]
    if grouped != 0 and begin < end:
        first = first_of_group(grids, begin, end, group)
        last = first
        if group != -1:
            last = first_of_group(grids, first, end, group + 1)
        else:
            last = end
        begin = first
        end = last
    return begin, end


@helper
def grid_query(grids: Any, id: Any, point: Any, max_dist: Any, group: Any, grouped: Any) -> Any:
    q = HashGridQuery()
    q.row = grid_row(grids, id)
    q.z = 1
    if q.row >= 0:
        if grids.heads[q.row, COUNT] > 0:
            scale = point.dtype(grids.scales[q.row])
            q.x0 = cell_coordinate((point[0] - max_dist) * scale)
            q.y0 = cell_coordinate((point[1] - max_dist) * scale)
            q.z = cell_coordinate((point[2] - max_dist) * scale)
            x1 = cell_coordinate((point[0] + max_dist) * scale)
            y1 = cell_coordinate((point[1] + max_dist) * scale)
            z1 = cell_coordinate((point[2] + max_dist) * scale)
            q.x1 = last_coordinate(q.x0, x1, grids.heads[q.row, DIM])
            q.y1 = last_coordinate(q.y0, y1, grids.heads[q.row, DIM + 1])
            q.z1 = last_coordinate(q.z, z1, grids.heads[q.row, DIM + 2])
            q.x = q.x0
            q.y = q.y0
            q.group = group
            q.grouped = grouped * grids.heads[q.row, GROUPED]
            if q.x <= q.x1 and q.y <= q.y1 and q.z <= q.z1:
                begin, end = cell_points(grids, q.row, q.x, q.y, q.z, q.group, q.grouped)
                q.at = begin
                q.end = end
            else:
                q.z = 1
                q.z1 = 0
    return q


def hash_grid_query(grids: Any, id: Any, point: Any, max_dist: Any) -> Any:
    return grid_query(grids, id, point, max_dist, 0, 0)


def hash_grid_query_group(grids: Any, id: Any, point: Any, max_dist: Any, group: Any) -> Any:
    return grid_query(grids, id, point, max_dist, group, 1)


for _t in (FLOAT32, FLOAT64, FLOAT16):
    _types = (UINT64, VectorType(_t, 3), _t)
    query(_QUERY, HASH_GRIDS, _types)(hash_grid_query)
    query(_QUERY, HASH_GRIDS, (*_types, INT32), user="hash_grid_query")(hash_grid_query_group)


@query(_NEXT, HASH_GRIDS, (HASH_GRID_QUERY, INT32), updates=(0, 1))
def hash_grid_query_next(grids: Any, query: Any, index: Any) -> Any:
    q = query
    while q.at >= q.end and q.z <= q.z1:
        q.x += 1
        if q.x > q.x1:
            q.x = q.x0
            q.y += 1
            if q.y > q.y1:
                q.y = q.y0
                q.z += 1
        if q.z <= q.z1:
            begin, end = cell_points(grids, q.row, q.x, q.y, q.z, q.group, q.grouped)
            q.at = begin
            q.end = end
    found = q.at < q.end
    point = index
    if found:
        point = grids.points[q.at]
        q.at += 1
    return found, q, point


@query(_POINT_ID, HASH_GRIDS, (UINT64, INT32))
def hash_grid_point_id(grids: Any, id: Any, index: Any) -> Any:
    row = grid_row(grids, id)
    found = -1
    if row >= 0:
        if index >= 0 and index < grids.heads[row, COUNT]:
            found = grids.points[grids.heads[row, POINT] + index]
    return found
