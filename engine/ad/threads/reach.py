"""Bounds the elements of an array that the threads of a launch access."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from engine.ad.threads.affine import Given, Value
from engine.ad.threads.bounds import Bounds
from engine.ad.threads.collect import Access, Collected, Touch

Box = tuple[tuple[int, int], ...]  # for each dimension, begin and end


def reach(
    kernel: Collected, array: str, kinds: Collection[Touch], shape: Sequence[int],
    dim: Sequence[int], given: Mapping[Given, int],
) -> list[Box]:  # fmt: skip
    """Boxes that hold every element which a thread touches so; they may hold others.

    kinds: of accesses. given: integer arguments and extents of arrays.
    """
    whole = tuple((0, n) for n in shape)
    if not kernel.known:
        return [whole]
    bounds = Bounds(dim, given)
    some = (a for a in kernel.accesses if a.array == array and a.kind in kinds)
    return list(dict.fromkeys(tuple(_sides(a, shape, bounds)) for a in some))


def _sides(a: Access, shape: Sequence[int], bounds: Bounds) -> Iterator[tuple[int, int]]:
    for d, n in enumerate(shape):
        found = _interval(a.index[d], a, bounds) if d < len(a.index) else None
        if found is None:
            yield 0, n
        else:
            first = min(max(found[0], 0), n)
            yield first, max(min(found[1] + 1, n), first)


def _interval(v: Value | None, a: Access, bounds: Bounds) -> tuple[int, int] | None:
    return bounds.interval(v.form, a.facts) if v is not None and bounds.holds(v, a.facts) else None
