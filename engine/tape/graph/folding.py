"""Folds a sequence of operations: repetitions are shown once, long sequences are shortened.

Two runs of a loop are alike where they launch the same kernels over the same grids. Loops that
use the same arrays each time are looked for first, so that buffers that take turns
(`a -> b`, `b -> a`) stay apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

import numpy as np

from engine.classes import dataclass

# The same for operations that may share a picture.
Likeness: TypeAlias = Callable[[int], Hashable]

_PERIOD = 4096  # operations in the longest loop body that is looked for
_ROUNDS = 4
_ITEMS = 24  # drawn of one sequence
_ENDS = 8  # of these at its beginning, and at its end


@dataclass(frozen=True)
class Step:
    """Operations drawn as one box: by their positions."""

    positions: tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """Items drawn within a frame. repeated: how often they ran, 1 for a scope. name: its name."""

    name: str
    items: tuple[Item, ...]
    repeated: int = 1


@dataclass(frozen=True)
class LeftOut:
    """Operations that are not drawn, in one box that counts them."""

    positions: tuple[int, ...]


Item: TypeAlias = Step | Block | LeftOut


def folded(items: Sequence[Item], same: Likeness, alike: Likeness) -> tuple[Item, ...]:
    """The items with repeated sequences as blocks, blocks within blocks included.

    same: what the operation at a position is, with its arrays. alike: the same without.
    """
    inner = tuple(
        Block(i.name, folded(i.items, same, alike), i.repeated) if isinstance(i, Block) else i
        for i in items
    )
    # Arrays become one where launches are only alike: not for what two lines of a program do.
    for likeness, least in ((same, 2), (alike, 3)):
        for _ in range(_ROUNDS):
            found = _once(inner, likeness, least)
            if len(found) == len(inner):
                break
            inner = found
    return inner


def _once(items: tuple[Item, ...], likeness: Likeness, least: int) -> tuple[Item, ...]:
    """Folds the repetitions that cover most, once. least: how many make one."""
    numbers: dict[Hashable, int] = {}
    codes = np.array(
        [numbers.setdefault(_signature(i, likeness), len(numbers)) for i in items], np.int64
    )
    out: list[Item] = []
    at = 0
    for begin, period, count in _repetitions(codes, least):
        out += items[at:begin]
        runs = [items[begin + k * period : begin + (k + 1) * period] for k in range(count)]
        body = tuple(_merged(list(column)) for column in zip(*runs, strict=True))
        # A body may have repetitions of its own.
        out.append(Block("", _once(body, likeness, least) if period > 1 else body, count))
        at = begin + period * count
    return (*out, *items[at:])


def _repetitions(
    codes: np.ndarray[tuple[int], np.dtype[np.int64]], least: int
) -> list[tuple[int, int, int]]:
    """Begin, period and count (from `least` on) of repetitions that do not overlap, in order."""
    n = len(codes)
    found: list[tuple[int, int, int, int]] = []
    for period in range(1, min(n // least, _PERIOD) + 1):
        equal = codes[period:] == codes[:-period]
        if not equal.any():
            continue
        edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.view(np.int8), [0]))))
        begins, lengths = edges[::2], edges[1::2] - edges[::2]
        for k in np.flatnonzero(lengths >= (least - 1) * period):
            count = int(lengths[k]) // period + 1
            found.append((-count * period, period, int(begins[k]), count))
    taken = np.zeros(n, bool)
    out = []
    for cover, period, begin, count in sorted(found):
        if not taken[begin : begin - cover].any():
            taken[begin : begin - cover] = True
            out.append((begin, period, count))
    return sorted(out)


def _signature(item: Item, likeness: Likeness) -> Hashable:
    if isinstance(item, Step):
        return tuple(likeness(p) for p in item.positions[:1])
    if isinstance(item, Block):
        return (item.name, item.repeated, tuple(_signature(i, likeness) for i in item.items))
    return item


def _merged(items: Sequence[Item]) -> Item:
    """One item for items of one signature."""
    first = items[0]
    if isinstance(first, Step):
        return Step(tuple(p for i in items if isinstance(i, Step) for p in i.positions))
    if isinstance(first, Block):
        columns = zip(*(i.items for i in items if isinstance(i, Block)), strict=True)
        return Block(first.name, tuple(_merged(list(c)) for c in columns), first.repeated)
    return first


def shortened(items: Sequence[Item], weight: Callable[[int], int]) -> tuple[Item, ...]:
    """The items with the middle of each long sequence left out, but for what has weight."""
    inner = [
        Block(i.name, shortened(i.items, weight), i.repeated) if isinstance(i, Block) else i
        for i in items
    ]
    if len(inner) <= _ITEMS:
        return tuple(inner)
    keep = {*range(_ENDS), *range(len(inner) - _ENDS, len(inner))}
    weights = [max(map(weight, positions([item]))) for item in inner]
    for k in sorted(range(len(inner)), key=lambda k: (-weights[k], k)):
        if len(keep) >= _ITEMS - 2 or not weights[k]:
            break
        keep.add(k)
    out: list[Item] = []
    gone: list[Item] = []
    for k, item in enumerate(inner):
        if k in keep:
            out += _gap(gone)
            out.append(item)
            gone = []
        else:
            gone.append(item)
    return (*out, *_gap(gone))


def _gap(gone: list[Item]) -> list[Item]:
    return [LeftOut(tuple(positions(gone)))] if len(gone) > 1 else gone


def positions(items: Sequence[Item]) -> list[int]:
    """All operations of some items, in the order of the picture."""
    out: list[int] = []
    for i in items:
        out += positions(i.items) if isinstance(i, Block) else i.positions
    return out


def counted(names: Sequence[str], limit: int = 4) -> str:
    """`step 20x, add and 2 more kinds`."""
    found = Counter(names).most_common()
    more = f" and {len(found) - limit} more kinds" if len(found) > limit else ""
    return ", ".join(name if n == 1 else f"{name} {n}x" for name, n in found[:limit]) + more
