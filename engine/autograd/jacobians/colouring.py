"""Groups columns that share no row, so that one directional derivative gives them all.

Curtis, Powell and Reid (1974): columns of one colour have their non-zeros in different
rows, so the sum of the columns shows each of them. First remainders are tried, which
colour stencils and bands; else columns are coloured greedily, many at a time: a column
waits for those neighbours with a higher random priority (Jones and Plassmann, 1993).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.draws import default_rng

Ints = NDArray[np.int64]

_SAMPLE = 4096  # rows that remainders are tried on first
_WORD = 64


def colour(groups: Ints, items: Ints, count: int, seed: int = 0) -> tuple[Ints, int]:
    """Colours `count` items so that those of one group differ. Gives colours and their number.

    groups, items: the membership, one entry each, sorted by group, then by item. Items in no
    group get -1.
    """
    if not len(groups):
        return np.full(count, -1), 0
    least = int(np.bincount(groups).max())
    found = _remainders(groups, items, least)
    colours = np.full(count, -1)
    if found:
        colours[items] = items % found
        return _numbered(colours)
    return _greedy(groups, items, count, seed)


def _numbered(colours: Ints) -> tuple[Ints, int]:
    """The colours that occur, numbered without gaps."""
    used = np.flatnonzero(np.bincount(colours[colours >= 0], minlength=1))
    table = np.full(int(colours.max(initial=0)) + 2, -1)
    table[used] = np.arange(len(used))
    return table[colours], len(used)


def _remainders(groups: Ints, items: Ints, least: int) -> int:
    """A number by which the items of every group leave different remainders; 0 for none near."""
    if least == 1:
        return 1
    start = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    length = np.diff(np.append(start, len(groups)))
    rows = np.linspace(0, len(start) - 1, min(_SAMPLE, len(start))).astype(np.int64)
    part = np.concatenate([np.arange(start[r], start[r] + length[r]) for r in rows])
    for m in range(least, 2 * least + 9):
        if _distinct(groups[part], items[part] % m, m) and _distinct(groups, items % m, m):
            return m
    return 0


def _distinct(groups: Ints, values: Ints, limit: int) -> bool:
    keys = groups * limit + values
    if int(keys[-1]) < 8 * len(keys) + 1024:  # dense enough for a table
        seen = np.zeros((int(groups[-1]) + 1) * limit, bool)
        seen[keys] = True
        return int(np.count_nonzero(seen)) == len(keys)
    keys = np.sort(keys)
    return not bool(np.any(keys[1:] == keys[:-1]))


def _greedy(groups: Ints, items: Ints, count: int, seed: int) -> tuple[Ints, int]:
    """Colours items in order of a random priority, all that wait for nobody at once."""
    priority = default_rng(seed).permutation(count)
    colours = np.full(count, -1)
    rows = int(groups[-1]) + 1
    base = 0
    while len(groups):  # each round hands out 64 colours, a bit each
        taken = np.zeros(rows, np.uint64)
        g, i = groups, items
        while len(g):
            mine = priority[i]
            best = np.full(rows, -1)
            np.maximum.at(best, g, mine)
            beaten = np.zeros(count, bool)
            beaten[i[best[g] != mine]] = True
            used = np.zeros(count, np.uint64)
            np.bitwise_or.at(used, i, taken[g])
            winners = np.unique(i[~beaten[i]])
            free = ~used[winners]
            bit = free & (~free + np.uint64(1))  # the lowest bit that is free
            chosen = bit != 0
            place = np.zeros(count, np.uint64)
            place[winners] = bit
            colours[winners[chosen]] = base + _log2(bit[chosen])
            done = np.zeros(count, bool)
            done[winners] = True
            hit = done[i]
            np.bitwise_or.at(taken, g[hit], place[i[hit]])
            g, i = g[~hit], i[~hit]
        left = colours[items] < 0
        groups, items = groups[left], items[left]
        base += _WORD
    return _numbered(colours)


def _log2(bits: NDArray[np.uint64]) -> Ints:
    return np.frexp(bits.astype(np.float64))[1].astype(np.int64) - 1
