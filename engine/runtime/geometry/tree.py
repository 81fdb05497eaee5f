"""Trees of boxes: built by NumPy, level by level, and stored depth first.

A query needs no stack: behind a node comes its first child, and `skips` says where to go on where
the node is left out. The items of every node lie side by side.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from engine.classes import dataclass

_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Tree:
    """The structure, without boxes.

    order: of the items. firsts, counts: the places of a node's items; a leaf's own. skips: the
    node after all below. leaf: whether it is one. inner: children of the inner nodes, deepest
    level first. groups, roots: the node of each group, by its number.
    """

    order: Any
    firsts: Any
    counts: Any
    skips: Any
    leaf: Any
    inner: tuple[tuple[Any, Any, Any], ...]
    groups: Any
    roots: Any


def build(lowers: Any, uppers: Any, leaf_size: int, groups: Any = None) -> Tree:
    """The tree of boxes (n, 3), halved at the median of their centres; groups first, if any."""
    count = len(lowers)
    if not count:
        return Tree(_NONE, _NONE, _NONE, _NONE, np.zeros(0, bool), (), _NONE, _NONE)
    with np.errstate(all="ignore"):
        centres = np.nan_to_num(0.5 * lowers.astype(np.float64) + 0.5 * uppers.astype(np.float64))
    order = np.arange(count) if groups is None else np.argsort(groups, kind="stable")
    own = np.zeros(count, np.int32) if groups is None else groups[order]
    begins, ends, left = [np.array([0])], [np.array([count])], []
    known = 1
    while True:
        b, e = begins[-1], ends[-1]
        mixed = own[b] != own[e - 1]
        split = mixed | (e - b > leaf_size)
        _sort(order, centres, b[split & ~mixed], e[split & ~mixed])
        middle = b + (e - b + 1) // 2
        for k in np.flatnonzero(mixed):
            middle[k] = _boundary(own, b[k], e[k], middle[k])
        children = np.full(len(b), -1)
        children[split] = known + 2 * np.arange(split.sum())
        left.append(children)
        if not split.any():
            break
        begins.append(np.stack([b[split], middle[split]], axis=1).ravel())
        ends.append(np.stack([middle[split], e[split]], axis=1).ravel())
        known += len(begins[-1])
    return _depth_first(order, begins, ends, left, own if groups is not None else None)


def _sort(order: Any, centres: Any, begins: Any, ends: Any) -> None:
    """Sorts the items of some nodes along the axis where their centres are furthest apart."""
    if not len(begins):
        return
    sizes = ends - begins
    starts = np.cumsum(sizes) - sizes
    node = np.repeat(np.arange(len(begins)), sizes)
    at = np.arange(sizes.sum()) - starts[node] + begins[node]
    those = centres[order[at]]
    extent = np.maximum.reduceat(those, starts) - np.minimum.reduceat(those, starts)
    key = those[np.arange(len(at)), np.argmax(extent, axis=1)[node]]
    order[at] = order[at][np.lexsort((key, node))]


def _boundary(own: Any, begin: int, end: int, middle: int) -> int:
    """The place nearest to the middle where another group begins."""
    after = begin + int(np.searchsorted(own[begin:end], own[middle], "right"))
    before = begin + int(np.searchsorted(own[begin:end], own[middle], "left"))
    if before == begin or (after < end and after - middle < middle - before):
        return after
    return before


def _depth_first(order: Any, begins: Any, ends: Any, left: Any, own: Any) -> Tree:
    first, last, child = (np.concatenate(x) for x in (begins, ends, left))
    levels = np.cumsum([0, *(len(b) for b in begins)])
    size = np.ones(len(first), np.int64)
    at = np.zeros(len(first), np.int64)
    inner = [np.flatnonzero(child[a:b] >= 0) + a for a, b in pairwise(levels)]
    for nodes in reversed(inner):
        size[nodes] += size[child[nodes]] + size[child[nodes] + 1]
    for nodes in inner:
        at[child[nodes]] = at[nodes] + 1
        at[child[nodes] + 1] = at[nodes] + 1 + size[child[nodes]]
    place = np.argsort(at)
    groups = roots = _NONE
    if own is not None:
        parent = np.zeros(len(first), np.int64)
        for nodes in inner:
            parent[child[nodes]] = parent[child[nodes] + 1] = nodes
        pure = own[first] == own[last - 1]
        heads = np.flatnonzero(pure & (~pure[parent] | (np.arange(len(first)) == 0)))
        heads = heads[np.argsort(own[first[heads]])]
        groups, roots = own[first[heads]].astype(np.int32), at[heads].astype(np.int32)
    return Tree(
        order.astype(np.int32), first[place].astype(np.int32),
        (last - first)[place].astype(np.int32), (at + size)[place].astype(np.int32),
        (child < 0)[place],
        tuple((at[k], at[child[k]], at[child[k] + 1]) for k in reversed(inner) if len(k)),
        groups, roots,
    )  # fmt: skip


def boxes(tree: Tree, lowers: Any, uppers: Any) -> tuple[Any, Any]:
    """Boxes of the nodes around those of the items, a little larger: rounding loses nothing."""
    low = np.empty((len(tree.skips), 3), np.float32)
    high = np.empty_like(low)
    if not len(low):
        return low, high
    with np.errstate(all="ignore"):
        ends = tree.firsts[tree.leaf]
        low[tree.leaf] = np.fmin.reduceat(lowers[tree.order], ends)
        high[tree.leaf] = np.fmax.reduceat(uppers[tree.order], ends)
        for nodes, a, b in tree.inner:
            low[nodes] = np.fmin(low[a], low[b])
            high[nodes] = np.fmax(high[a], high[b])
        largest = np.fmax(np.abs(low), np.abs(high))
        slack = np.float32(1e-5) * np.max(largest, initial=0.0, where=np.isfinite(largest))
        return low - slack, high + slack
