"""Colours of graphs: neighbours differ, colours are few, groups are evened out."""

import numpy as np
import pytest

import engine as wp
from engine.utils import (
    GraphColoringAlgorithm,
    graph_coloring_assign,
    graph_coloring_balance,
    graph_coloring_get_groups,
)


def grid_edges(n):
    """The edges of n x n squares, each with one diagonal: three colours are enough."""
    at = np.arange(n * n).reshape(n, n)
    pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:]), (at[:-1, :-1], at[1:, 1:])]
    return np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in pairs])


@pytest.mark.parametrize("algorithm", list(GraphColoringAlgorithm))
def test_neighbours_differ_and_groups_are_evened_out(algorithm) -> None:
    pairs = grid_edges(12)
    edges, colours = wp.array(pairs, dtype=int), wp.full(144, -1, dtype=int)
    count = graph_coloring_assign(edges, colours, algorithm)
    found = colours.numpy()
    assert count == found.max() + 1
    assert 3 <= count <= 5
    assert (found[pairs[:, 0]] != found[pairs[:, 1]]).all()
    before = np.bincount(found, minlength=count)
    ratio = graph_coloring_balance(edges, colours, count, 1.1)
    sizes = np.bincount(colours.numpy(), minlength=count)
    assert ratio == pytest.approx(sizes.max() / sizes.min())
    assert ratio <= before.max() / before.min()
    assert (colours.numpy()[pairs[:, 0]] != colours.numpy()[pairs[:, 1]]).all()
    groups = graph_coloring_get_groups(colours, count)
    assert sorted(np.concatenate([g.numpy() for g in groups])) == list(range(144))
    for colour, g in enumerate(groups):
        assert (colours.numpy()[g.numpy()] == colour).all()


def test_changes_end_at_the_limit() -> None:
    colours = wp.array([0, 1, 0, 0, 0], dtype=int)
    edges = wp.array([[0, 1]], dtype=int)
    with pytest.warns(UserWarning, match="ended after 0 changes at a ratio of 4"):
        assert graph_coloring_balance(edges, colours, 2, 1.0, max_iterations=0) == 4.0
    assert colours.numpy().tolist() == [0, 1, 0, 0, 0]
    assert graph_coloring_balance(edges, colours, 2, 1.5) == 1.5
    assert [len(g) for g in graph_coloring_get_groups(colours, 2, False)] in ([2, 3], [3, 2])


def test_refusals() -> None:
    colours = wp.zeros(3, dtype=int)
    with pytest.raises(RuntimeError, match=r"edge 1 joins \[2, 3\], but there are 3 nodes"):
        graph_coloring_assign(wp.array([[0, 1], [2, 3]], dtype=int), colours)
    with pytest.raises(RuntimeError, match=r"edges cannot have shape \(1, 3\)"):
        graph_coloring_assign(wp.zeros((1, 3), dtype=int), colours)
    with pytest.raises(RuntimeError, match=r"outside of 0\.\.1"):
        graph_coloring_balance(wp.array([[0, 1]], dtype=int), wp.full(3, 2, dtype=int), 2, 1.0)
