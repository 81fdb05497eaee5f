"""The inputs that arrays depend on, as sets and through their sources."""

from __future__ import annotations

import sys
from typing import Any
from weakref import ref

import numpy as np
import pytest

from engine.autograd.watch.reach import NONE, Edge, Leaf, Reach
from engine.diagnostics.site import call_site
from tests.unit.autograd.watch.programs import zeros

ARRAY = zeros(1)


def leaf(k: int) -> Leaf:
    return Leaf(k, f"x{k}", ref(ARRAY))


def edge(k: int) -> Edge:
    return Edge("launch", f"k{k}", None)


class Sets:
    """The same, by the definition."""

    def __init__(self, leaves: Any = (), cut: Any = ()) -> None:
        self.leaves, self.cut = frozenset(leaves), frozenset(cut)

    def __or__(self, other: Sets) -> Sets:
        return Sets(self.leaves | other.leaves, self.cut | other.cut)

    def cut_at(self, at: Edge) -> Sets:
        return Sets((), self.cut | {(x, at) for x in self.leaves})


@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_sets_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made: list[tuple[Reach, Sets]] = [(NONE, Sets())]
    for k in range(60):
        i, j = rng.integers(len(made), size=2)
        kind = rng.integers(4)
        if kind == 0:
            made.append((Reach(frozenset({leaf(k)}), bits=1 << k), Sets({leaf(k)})))
        elif kind == 1:
            at = edge(int(rng.integers(6)))
            made.append((made[i][0].cut_at(at), made[i][1].cut_at(at)))
        else:
            made.append((made[i][0] | made[j][0], made[i][1] | made[j][1]))
    for found, right in made:
        assert found.leaves == right.leaves and found.cut == right.cut
        assert (found.is_smooth, found.is_cut) == (bool(right.leaves), bool(right.cut))
        assert bool(found) == bool(right.leaves or right.cut)
        roots = {x.root for x in right.leaves} | {x.root for x, _ in right.cut}
        assert found.bits == sum(1 << k for k in roots)


def test_what_has_become_deep_is_made_flat() -> None:
    right, found = Sets(), NONE
    for k in range(2000):
        at = edge(k % 3)
        found = (found | Reach(frozenset({leaf(k % 40)}), bits=1 << k % 40)).cut_at(at).flat()
        right = (right | Sets({leaf(k % 40)})).cut_at(at)
    assert found.leaves == right.leaves and found.cut == right.cut
    assert found._depth < 1000 and found.bits == (1 << 40) - 1


def test_cuts_of_one_call_are_equal() -> None:
    edges = {Edge("copy", "z.assign(y)", call_site(1)) for _ in range(3)}
    assert len(edges) == 1
    assert Edge("copy", "z.assign(y)", call_site(1)) not in edges
    assert Edge("clone", "z.assign(y)", None) != Edge("copy", "z.assign(y)", None)


def test_work_is_linear_in_inputs() -> None:
    def calls(count: int) -> int:
        seen = 0

        def count_one(frame: object, event: str, arg: object) -> None:
            nonlocal seen
            seen += event in ("call", "c_call")

        sys.setprofile(count_one)
        try:
            state = NONE
            for k in range(count):
                state |= Reach(frozenset({leaf(k)}))
                if k % 3 == 0:
                    state = state.cut_at(edge(k)) | Reach(frozenset({leaf(-k - 1)}))
            found = len(state.leaves) + len(state.cut)
        finally:
            sys.setprofile(None)
        assert found >= count
        return seen

    assert calls(4_000) < 5 * calls(1_000)  # where each input counted again: sixteen times


def test_sets_stay_small() -> None:
    state = NONE
    for k in range(4_000):
        state |= Reach(frozenset({leaf(k)}))
    todo, known, held = [state], set(), 0
    while todo:
        node = todo.pop()
        if id(node) not in known:
            known.add(id(node))
            held += len(node._leaves) + len(node._cut)
            todo += node._parts
    assert 4_000 <= held < 8 * 4_000
