"""`HashGrid`: points sorted by the cells of space that they are in."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.builtins.library.hash_grid import (
    BUCKET,
    COUNT,
    DIM,
    GROUPED,
    HASH_GRID_QUERY,
    HASH_GRIDS,
    HEADS,
    MASK,
    POINT,
)
from engine.classes import dataclass
from engine.lang.types import FLOAT16, FLOAT32, FLOAT64, INT32, ScalarType, VectorType
from engine.lang.values import SCALAR_CLASSES, to_value_type
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.device import DeviceLike, get_device
from engine.runtime.geometry import registry
from engine.runtime.geometry.registry import Geometry, refuse
from engine.runtime.structs import Struct

_MOST_CELLS = (1 << 31) - 1


class HashGridData(Struct):
    """The table of the grids that a launch may query."""

    __ir_type__ = HASH_GRIDS


class HashGridQuery(Struct):
    """What `hash_grid_query` gives: a value of kernels, to go over by `for`."""

    __ir_type__ = HASH_GRID_QUERY

    def __class_getitem__(cls, dtype: Any) -> Any:
        return cls


HASH_GRIDS.cls = HashGridData
HASH_GRID_QUERY.cls = HashGridQuery


@dataclass(frozen=True)
class Contents:
    """A grid as it was built, in NumPy arrays."""

    head: Any
    scale: float
    buckets: Any
    cells: Any
    begins: Any
    ends: Any
    points: Any
    groups: Any


_NONE = np.zeros(0, np.int32)


class HashGrid(Geometry):
    """Points in cells of space, for kernels that look for neighbours: see `hash_grid_query`.

    Args:
        dim_x, dim_y, dim_z: how many cells there are along each axis. Space is infinite: cells
            that lie a multiple of these apart share their points.
        device: where kernels will run.
        dtype: of the coordinates: float16, float32 or float64.

    Attributes:
        id: the number that kernels take, a `uint64`. It stays the same when the grid is built
            anew, and is good as long as the object is there.

    Raises LaunchError E202 for dimensions that are not positive integers, or too many cells.
    """

    def __init__(
        self, dim_x: int, dim_y: int, dim_z: int, device: DeviceLike = None, dtype: Any = None
    ) -> None:
        self.device = get_device(device)
        try:
            self._dims = tuple(operator.index(n) for n in (dim_x, dim_y, dim_z))
        except TypeError:
            raise refuse("HashGrid: dimensions must be integers",
                       f"got {dim_x!r}, {dim_y!r}, {dim_z!r}") from None  # fmt: skip
        if min(self._dims) <= 0 or self._dims[0] * self._dims[1] * self._dims[2] > _MOST_CELLS:
            raise refuse("HashGrid: dimensions must be positive, "
                       f"and there may be {_MOST_CELLS} cells", f"got {self._dims}")  # fmt: skip
        scalar = FLOAT32 if dtype is None else to_value_type(dtype)
        if scalar not in (FLOAT16, FLOAT32, FLOAT64):
            raise refuse("HashGrid: dtype must be float16, float32 or float64",
                       f"got {dtype!r}")  # fmt: skip
        assert isinstance(scalar, ScalarType)
        self._scalar = scalar
        self.dtype = SCALAR_CLASSES[scalar]
        self.groups: array | None = None
        self.reserved = False
        self._contents = self._empty()
        self.register()

    def _empty(self) -> Contents:
        head = np.zeros(HEADS, np.int32)
        head[DIM : DIM + 3] = self._dims
        return Contents(head, 0.0, np.zeros(2, np.int32), _NONE, _NONE, _NONE, _NONE, _NONE)

    def reserve(self, num_points: int, with_groups: bool = False) -> None:
        """Nothing needs it here: building allocates what it needs."""
        del num_points, with_groups
        self.reserved = True

    def build(self, points: array, radius: float, groups: array | None = None) -> None:
        """Sorts points into the cells.

        Args:
            points: of shape (n,) (others count as flat), `vec3` of the grid's dtype.
            radius: the width of a cell. Queries of about this radius are fastest.
            groups: of shape (n,), int32: what `hash_grid_query(..., group)` compares with.

        Launches that were recorded before go on with the points that they had. Raises
        LaunchError E202 for arrays of another type, and a radius that is not positive.
        """
        data, by = self._checked(points, radius, groups)
        if events.graph() is not None:  # built now, too: launches ask for it
            events.deferred(lambda: self.build(points, radius, groups))
        self.groups = groups
        self.reserved = True
        self._contents = _built(self._dims, self._scalar, data, float(min(radius, 1e308)), by)

    def _checked(self, points: Any, radius: Any, groups: Any) -> tuple[Any, Any]:
        want = VectorType(self._scalar, 3)
        if not isinstance(points, array) or points._ir.element != want:
            raise refuse(f"HashGrid.build: points must be an array of {want}",
                       f"got {points!r}"[:200])  # fmt: skip
        if not isinstance(radius, (int, float, np.integer, np.floating)) or not radius > 0.0:
            raise refuse("HashGrid.build: the radius must be a positive number", f"got {radius!r}")
        data = points._parts.reshape(-1, 3)
        if groups is None:
            return data, None
        if not isinstance(groups, array) or groups._ir.element != INT32:
            raise refuse("HashGrid.build: groups must be an array of int32",
                       f"got {groups!r}"[:200])  # fmt: skip
        by = groups._parts.reshape(-1)
        if by.size != len(data):
            raise refuse("HashGrid.build: there must be a group for each point",
                       f"got {by.size} groups and {len(data)} points")  # fmt: skip
        return data, by


def _built(
    dims: tuple[int, ...], scalar: ScalarType, points: Any, width: float, groups: Any
) -> Contents:
    one = scalar.numpy.type(1.0)
    with np.errstate(all="ignore"):
        scale = one / scalar.numpy.type(width)
        at = np.floor(points * scale).astype(np.float64)
        at = np.clip(np.where(np.isnan(at), 0.0, at), -(2.0**31), 2.0**31 - 2.0)
    x, y, z = (np.mod(at[:, k].astype(np.int64), dims[k]) for k in range(3))
    cell = ((z * dims[1] + y) * dims[0] + x).astype(np.int32)
    if groups is None:
        order = np.argsort(cell, kind="stable")
    else:
        order = np.lexsort((groups.view(np.uint32), cell))
    cell = cell[order]
    first = np.flatnonzero(np.diff(cell, prepend=-1)).astype(np.int32)
    last = np.append(first[1:], len(cell)).astype(np.int32)[: len(first)]
    occupied = cell[first]
    count = 1 << max(len(occupied) - 1, 0).bit_length()
    bucket = occupied & (count - 1)
    by_bucket = np.argsort(bucket, kind="stable")
    buckets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(bucket, minlength=count), out=buckets[1:])
    head = np.zeros(HEADS, np.int32)
    head[DIM : DIM + 3] = dims
    head[MASK], head[COUNT], head[GROUPED] = count - 1, len(points), groups is not None
    return Contents(
        head, float(scale), buckets, occupied[by_bucket], first[by_bucket], last[by_bucket],
        order.astype(np.int32), _NONE if groups is None else groups[order],
    )  # fmt: skip


# The last tables that were made, by what is in them.
_made: dict[tuple[int, ...], tuple[list[Contents], HashGridData]] = {}


def _table(grids: Sequence[HashGrid]) -> HashGridData:
    """The table of some grids, each as it is now."""
    parts = [(g.id, g._contents) for g in grids]
    key = tuple(x for number, c in parts for x in (number, id(c)))
    found = _made.get(key)
    if found is None:
        if len(_made) >= 8:
            _made.pop(next(iter(_made)), None)
        found = _made[key] = [c for _, c in parts], _joined(parts)
    return found[1]


def _joined(parts: Sequence[tuple[int, Contents]]) -> HashGridData:
    heads, buckets, begins, ends, groups = [], [], [], [], []
    bucket = entry = point = 0
    for _, c in parts:
        head = c.head.copy()
        head[BUCKET], head[POINT] = bucket, point
        heads.append(head)
        buckets.append(c.buckets + entry)
        begins.append(c.begins + point)
        ends.append(c.ends + point)
        own = c.groups if len(c.groups) else np.zeros(len(c.points), np.int32)
        groups.append(own)
        bucket, entry, point = bucket + len(c.buckets), entry + len(c.cells), point + len(c.points)
    if not any(len(c.groups) for _, c in parts):
        groups = []
    return HashGridData(
        ids=array(np.array([n for n, _ in parts], np.uint64), device="cpu"),
        heads=array(np.array(heads, np.int32).reshape(-1, HEADS), device="cpu"),
        scales=array(np.array([c.scale for _, c in parts], np.float64), device="cpu"),
        buckets=_flat(buckets),
        cells=_flat([c.cells for _, c in parts]),
        begins=_flat(begins),
        ends=_flat(ends),
        points=_flat([c.points for _, c in parts]),
        groups=_flat(groups),
    )


def _flat(parts: Sequence[Any]) -> array:
    return array(np.concatenate([_NONE, *parts]).astype(np.int32), device="cpu")


registry.MAKERS[HASH_GRIDS] = (HashGrid,), _table
