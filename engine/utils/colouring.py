"""Colours graphs: neighbours differ, so that nodes of one colour can be updated together."""

from __future__ import annotations

import enum
import heapq
import operator
from typing import Any

import numpy as np

from engine.lang.types import INT32
from engine.logger import log_warning
from engine.runtime.array import array
from engine.runtime.device import DeviceLike
from engine.utils.common import NumpyArray, check_arrays, on_host, put, refuse_in_graph, refused


class GraphColoringAlgorithm(enum.Enum):
    """In which order nodes get the first colour that no neighbour has.

    MCS: next is the node with the most neighbours that have one (maximum cardinality search).
    GREEDY: nodes with the most neighbours first.
    """

    MCS = 0
    GREEDY = 1


def graph_coloring_assign(
    edges: array,
    node_colors: array,
    algorithm: GraphColoringAlgorithm = GraphColoringAlgorithm.MCS,
) -> int:
    """Colours the nodes of a graph so that neighbours differ. Returns the number of colours.

    Args:
        edges: int32, shape (edges, 2): the nodes that each joins.
        node_colors: int32, one element a node; receives colours from 0 on.
        algorithm: the order in which nodes get their colour.

    Raises UtilityError (a LaunchError and a RuntimeError) E202 for types, E206 for shapes and
    for nodes that are not there.
    """
    refuse_in_graph("graph_coloring_assign", "call it before")
    neighbours = _neighbours("graph_coloring_assign", edges, node_colors)
    order = (
        _by_search if GraphColoringAlgorithm(algorithm) is GraphColoringAlgorithm.MCS else _by_size
    )
    colours = np.full(len(neighbours), -1, np.int32)
    for node in order(neighbours):
        taken = {int(colours[n]) for n in neighbours[node]}
        colours[node] = next(c for c in range(len(taken) + 1) if c not in taken)
    put(node_colors, colours)
    return int(colours.max(initial=-1)) + 1


def graph_coloring_balance(
    edges: array,
    node_colors: array,
    color_count: int,
    target_max_min_ratio: float,
    *,
    max_iterations: int | None = None,
) -> float:
    """Gives nodes other colours, so that each colour has about as many. Neighbours still differ.

    Args:
        edges: as `graph_coloring_assign` takes them.
        node_colors: as `graph_coloring_assign` fills it.
        color_count: the number of colours.
        target_max_min_ratio: nodes of the largest colour to those of the smallest at which it
            ends.
        max_iterations: how many nodes get another colour at most; as many as there are where left
            out.

    Returns the ratio that was reached. Warns (UserWarning) where max_iterations ended it.
    Raises what `graph_coloring_assign` does, and for colours that are none of the graph.
    """
    refuse_in_graph("graph_coloring_balance", "call it before")
    neighbours = _neighbours("graph_coloring_balance", edges, node_colors)
    count = operator.index(color_count)
    limit = len(neighbours) if max_iterations is None else operator.index(max_iterations)
    if not 0 <= limit < 1 << 31:
        raise refused(f"graph_coloring_balance: max_iterations cannot be {limit}")
    colours = on_host(node_colors).copy()
    if colours.size and not (colours.min() >= 0 and colours.max() < count):
        raise refused(f"graph_coloring_balance: node_colors has colours outside of 0..{count - 1}")
    if not colours.size or count < 2:
        return 1.0
    groups: list[dict[int, None]] = [{} for _ in range(count)]
    for node, colour in enumerate(colours.tolist()):
        groups[colour][node] = None
    steps = 0
    while _ratio(groups) > target_max_min_ratio:
        move = _move(groups, neighbours, colours)
        if move is None:
            break
        if steps == limit:
            log_warning(f"graph_coloring_balance ended after {limit} changes at a ratio of "
                        f"{_ratio(groups):.3g}")  # fmt: skip
            break
        node, colour = move
        del groups[int(colours[node])][node]
        groups[colour][node] = None
        colours[node] = colour
        steps += 1
    put(node_colors, colours)
    return _ratio(groups)


def graph_coloring_get_groups(
    node_colors: array, color_count: int, return_wp_array: bool = True, device: DeviceLike = "cpu"
) -> tuple[Any, ...]:
    """The nodes of each colour, in order: int32 arrays (of NumPy where `return_wp_array` is False).

    Raises UtilityError (a LaunchError and a RuntimeError) for colours outside of `color_count`.
    """
    check_arrays("graph_coloring_get_groups", node_colors=node_colors)
    colours, count = on_host(node_colors).reshape(-1), operator.index(color_count)
    if colours.size and not (colours.min() >= 0 and colours.max() < count):
        raise refused(f"graph_coloring_get_groups: colours are outside of 0..{count - 1}")
    order = np.argsort(colours, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(colours, minlength=count))
    found = np.split(order, ends[:-1]) if count else []
    if not return_wp_array:
        return tuple(found)
    return tuple(array(x, dtype=INT32, device=device) for x in found)


def _neighbours(function: str, edges: array, node_colors: array) -> list[list[int]]:
    """The neighbours of each node, each once."""
    check_arrays(function, edges=edges, node_colors=node_colors)
    for name, a, ndim in (("edges", edges, 2), ("node_colors", node_colors, 1)):
        if a._ir.element != INT32:
            raise refused(f"{function}: {name} are int32, got {a.dtype.__name__}", code="E202")
        if a.ndim != ndim or (ndim == 2 and a.shape[1] != 2):
            raise refused(f"{function}: {name} cannot have shape {a.shape}")
    pairs: NumpyArray = on_host(edges)
    bad = np.flatnonzero(((pairs < 0) | (pairs >= node_colors.size)).any(1))
    if bad.size:
        k = int(bad[0])
        raise refused(f"{function}: edge {k} joins {pairs[k].tolist()}, but there are "
                      f"{node_colors.size} nodes")  # fmt: skip
    out: list[dict[int, None]] = [{} for _ in range(node_colors.size)]
    for a, b in pairs.tolist():
        if a != b:
            out[a][b] = out[b][a] = None
    return [list(x) for x in out]


def _by_size(neighbours: list[list[int]]) -> list[int]:
    return sorted(range(len(neighbours)), key=lambda n: -len(neighbours[n]))


def _by_search(neighbours: list[list[int]]) -> list[int]:
    weights = [0] * len(neighbours)
    queue = [(0, n) for n in range(len(neighbours))]
    order, seen = [], [False] * len(neighbours)
    while queue:
        weight, node = heapq.heappop(queue)
        if seen[node] or -weight != weights[node]:
            continue
        seen[node] = True
        order.append(node)
        for n in neighbours[node]:
            if not seen[n]:
                weights[n] += 1
                heapq.heappush(queue, (-weights[n], n))
    return order


def _ratio(groups: list[dict[int, None]]) -> float:
    sizes = [len(g) for g in groups]
    return max(sizes) / min(sizes) if min(sizes) else float("inf")


def _move(
    groups: list[dict[int, None]], neighbours: list[list[int]], colours: NumpyArray
) -> tuple[int, int] | None:
    """A node of a largest colour, and the smallest that it may have; None where none gains."""
    sizes = [len(g) for g in groups]
    by_size = sorted(range(len(groups)), key=lambda c: sizes[c])
    largest = max(sizes)
    for source in (c for c in reversed(by_size) if sizes[c] == largest):
        for target in by_size:
            if sizes[target] + 1 >= largest:
                break
            for node in groups[source]:
                if all(colours[n] != target for n in neighbours[node]):
                    return node, target
    return None
