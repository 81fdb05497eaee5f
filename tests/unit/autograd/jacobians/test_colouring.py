"""Colours of columns: those of one row differ, and there are few of them."""

from __future__ import annotations

import numpy as np
import pytest

from engine.autograd.jacobians.colouring import _greedy, colour


def valid(groups, items, colours) -> bool:
    keys = set(zip(groups.tolist(), colours[items].tolist(), strict=True))
    return len(keys) == len(groups) and (colours[items] >= 0).all()


@pytest.mark.parametrize("seed", range(12))
def test_colours_of_one_group_differ(seed) -> None:
    rng = np.random.default_rng(seed)
    rows, cols = int(rng.integers(1, 60)), int(rng.integers(1, 200))
    matrix = rng.random((rows, cols)) < rng.choice([0.02, 0.2, 0.9])
    groups, items = np.nonzero(matrix)
    for found in (colour, _greedy):
        if not len(groups):
            continue
        colours, count = found(groups, items, cols, *([seed] if found is _greedy else []))
        assert valid(groups, items, colours)
        assert count >= matrix.sum(axis=1).max() and count == len(np.unique(colours[items]))
        assert np.all(colours[~matrix.any(axis=0)] == -1)


def test_bands_get_the_fewest_colours() -> None:
    n = 500
    rows = np.repeat(np.arange(n), 5)
    cols = rows + np.tile(np.arange(-2, 3), n)
    inside = (cols >= 0) & (cols < n)
    assert colour(rows[inside], cols[inside], n)[1] == 5


def test_more_than_64_colours() -> None:
    n = 200
    groups, items = np.nonzero(np.ones((2, n), bool))
    colours, count = _greedy(groups, items, n, 0)
    assert count == n and valid(groups, items, colours)
