"""`Bvh`: a tree of boxes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from engine.builtins.library.trees import (
    BVH_QUERY,
    BVHS,
    GROUP,
    GROUPS,
    ITEM,
    NODE,
    NODES,
    TREE_HEADS,
)
from engine.classes import dataclass
from engine.lang.types import FLOAT32, INT32, VectorType
from engine.logger import log_warning
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.geometry import registry
from engine.runtime.geometry.registry import Geometry, refuse
from engine.runtime.geometry.tree import Tree, boxes, build
from engine.runtime.structs import Struct

VEC3 = VectorType(FLOAT32, 3)


class BvhData(Struct):
    """The table of the trees that a launch may query."""

    __ir_type__ = BVHS


class BvhQuery(Struct):
    """What `bvh_query_aabb` and its like give: a value of kernels, to go over by `for`."""

    __ir_type__ = BVH_QUERY


BVHS.cls = BvhData
BVH_QUERY.cls = BvhQuery


class BvhConstructor(IntEnum):
    """Ways to build a tree in Warp. Here all of them halve at the median."""

    SAH = 0
    MEDIAN = 1
    LBVH = 2
    CUBQL = -1


@dataclass(frozen=True)
class Contents:
    """A tree with the boxes of its nodes, and of its items in their order there."""

    tree: Tree
    lowers: Any
    uppers: Any
    item_lowers: Any
    item_uppers: Any

    @staticmethod
    def of(tree: Tree, lowers: Any, uppers: Any) -> Contents:
        """With boxes of the items as they are given."""
        around = boxes(tree, lowers, uppers)
        return Contents(tree, *around, lowers[tree.order], uppers[tree.order])


class Bvh(Geometry):
    """A tree of boxes, for kernels that look for those near a place: see `bvh_query_aabb`.

    Args:
        lowers, uppers: corners of the boxes, of shape (n,), `vec3`.
        constructor: accepted (`"sah"`, `"median"`, `"lbvh"`, `"cubql"`); they make one tree here.
        groups: of shape (n,), int32: queries can be restricted to one of them, see
            `bvh_get_group_root`.
        leaf_size: how many boxes a leaf may have.

    Attributes:
        id: the number that kernels take, a `uint64`, good as long as the object is there.

    Launches see the boxes as they were when the tree was made, or at the last `refit` or
    `rebuild`. Raises LaunchError E202 for arrays of other types or lengths.
    """

    def __init__(
        self,
        lowers: array,
        uppers: array,
        constructor: Any = None,
        groups: array | None = None,
        leaf_size: int = 1,
    ) -> None:
        typed("Bvh", "lowers", lowers, VEC3)
        typed("Bvh", "uppers", uppers, VEC3)
        if len(lowers) != len(uppers):
            raise refuse("Bvh: lowers and uppers must have the same length",
                         f"got {len(lowers)} and {len(uppers)}")  # fmt: skip
        if groups is not None:
            typed("Bvh", "groups", groups, INT32)
            if len(groups) != len(lowers):
                raise refuse("Bvh: groups must have the same length as lowers",
                             f"got {len(groups)} and {len(lowers)}")  # fmt: skip
        check_constructor("Bvh", constructor, groups)
        leaf_size = leaf_size_of("Bvh", "leaf_size", leaf_size)
        self.lowers, self.uppers, self.groups = lowers, uppers, groups
        self.device = lowers.device
        self._leaf_size = leaf_size
        self._contents: Contents
        self.rebuild(constructor)
        self.register()

    def refit(self) -> None:
        """Takes over the boxes as they are in `lowers` and `uppers` now."""
        events.deferred(self.refit)  # in a captured graph it is done again
        low, high = self._boxes()
        self._contents = Contents.of(self._contents.tree, low, high)

    def rebuild(self, constructor: Any = None) -> None:
        """Makes the tree anew, of the boxes as they are now."""
        check_constructor("Bvh", constructor, self.groups)
        events.deferred(lambda: self.rebuild(constructor))
        low, high = self._boxes()
        groups = None if self.groups is None else np.array(self.groups._parts)
        self._contents = Contents.of(build(low, high, self._leaf_size, groups), low, high)

    def _boxes(self) -> tuple[Any, Any]:
        return np.array(self.lowers._parts), np.array(self.uppers._parts)


def typed(what: str, name: str, a: Any, element: Any) -> None:
    """Raises GeometryError (E202) for what is no array of one dimension of such elements."""
    if not isinstance(a, array) or a._ir.element != element or a.ndim != 1:
        got = f"an array of {a._ir.element}, {a.ndim}-D" if isinstance(a, array) else repr(a)[:80]
        raise refuse(f"{what}: {name} must be a 1-D array of {element}", f"got {got}")


def leaf_size_of(what: str, name: str, given: Any) -> int:
    """How many boxes a leaf may have. Raises GeometryError (E202)."""
    try:
        found = operator.index(given)
    except TypeError:
        raise refuse(f"{what}: {name} must be an integer", f"got {given!r:.80}") from None
    if found < 1:
        raise refuse(f"{what}: {name} must be at least 1", f"got {found}")
    return found


def check_constructor(what: str, constructor: Any, groups: Any) -> None:
    """Raises GeometryError (E202) for an unknown way to build a tree."""
    if constructor is None or isinstance(constructor, BvhConstructor):
        found = constructor
    else:
        found = BvhConstructor.__members__.get(str(constructor).upper())
        if found is None:
            known = ", ".join(m.lower() for m in BvhConstructor.__members__)
            raise refuse(f"{what}: there is no constructor {constructor!r}", f"known: {known}")
    if found == BvhConstructor.CUBQL and groups is not None:
        raise refuse(f"{what}: grouped trees cannot be made by 'cubql'")
    if found == BvhConstructor.LBVH:
        text = "LBVH constructor is not available on the CPU: the default is used"
        log_warning(text)


# ---- tables


def joined(parts: Sequence[tuple[int, Contents]]) -> dict[str, Any]:
    """What tables of trees have in common, as NumPy arrays by field."""
    trees = [c.tree for _, c in parts]
    heads = np.zeros((len(parts), TREE_HEADS), np.int32)
    node = item = group = 0
    for k, t in enumerate(trees):
        heads[k, [NODE, NODES, ITEM]] = node, len(t.skips), item
        heads[k, [GROUP, GROUPS]] = group, len(t.groups)
        node, item, group = node + len(t.skips), item + len(t.order), group + len(t.groups)
    return {
        "ids": np.array([n for n, _ in parts], np.uint64),
        "heads": heads,
        "lowers": stacked([c.lowers for _, c in parts]),
        "uppers": stacked([c.uppers for _, c in parts]),
        "skips": flat([t.skips for t in trees]),
        "firsts": flat([t.firsts for t in trees]),
        "counts": flat([np.where(t.leaf, t.counts, 0) for t in trees]),
        "items": flat([t.order for t in trees]),
        "groups": flat([t.groups for t in trees]),
        "roots": flat([t.roots for t in trees]),
    }


def flat(parts: Sequence[Any], dtype: Any = np.int32) -> Any:
    """Arrays of one dimension, one behind the other."""
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype)


def stacked(parts: Sequence[Any]) -> Any:
    """Arrays of vectors, one behind the other."""
    return np.concatenate([np.zeros((0, 3), np.float32), *parts]).astype(np.float32)


def filled(cls: Any, fields: dict[str, Any]) -> Any:
    """The value of a table, of NumPy arrays; other arrays are taken as they are."""
    out = cls()
    for name, data in fields.items():
        t = cls.__ir_type__.fields[name]
        if isinstance(data, np.ndarray):
            shape = data.shape[: t.ndim]
            data = array(data, dtype=_class(t.element), shape=shape, device="cpu")
        setattr(out, name, data)
    return out


def _class(element: Any) -> Any:
    from engine.lang.values import value_class

    return value_class(element)


_made: dict[tuple[int, ...], tuple[list[Contents], BvhData]] = {}


def _table(things: Sequence[Any]) -> BvhData:
    """The table of some trees, of meshes too, each as it is now."""
    parts = [x.tree if hasattr(x, "tree") else (x.id, x._contents) for x in things]
    key = tuple(x for number, c in parts for x in (number, id(c)))
    found = _made.get(key)
    if found is None:
        if len(_made) >= 8:
            _made.pop(next(iter(_made)), None)
        fields = joined(parts)
        fields["item_lowers"] = stacked([c.item_lowers for _, c in parts])
        fields["item_uppers"] = stacked([c.item_uppers for _, c in parts])
        found = _made[key] = [c for _, c in parts], filled(BvhData, fields)
    return found[1]


registry.MAKERS[BVHS] = (Bvh,), _table
