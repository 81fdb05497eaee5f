"""Divides a launch into parts, such that its results do not depend on the number of threads.

A part is a run of threads of the grid; where the parts begin follows from the kernel, the grid
and the arguments alone. Arrays that threads only add to are dealt with in one of two ways:

* where threads that add to one element are near each other in the grid, every second part runs
  first, then the others: an element is of one part, or of two that follow each other;
* else each part has an array of its own, and these are added up in the order of the parts.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from engine import config
from engine.cached import cached_property
from engine.classes import dataclass
from engine.compile.cpu.pool import thread_count
from engine.compile.threads import Placed, Threads
from engine.lang.types import ScalarType, scalar_of

if TYPE_CHECKING:
    from engine.ad.threads import Group
    from engine.compile.cpu.rounds import Rounds

# Operations (about a nanosecond each) below which a launch is not divided, and of a part.
LEAST, PART = 400_000, 60_000
PARTS = 64
# The parts' own copies of arrays may take this much of the launch's time: one over it.
SHARE = 8
# What a copy takes that has next to no elements, to be made and added up again, in operations.
COPY = 12_000
LINE = 64  # threads, with whole lines of the cache of whatever they write
_ENOUGH = 16  # parts, beyond which more are no gain
KEPT = 256  # launches of a kernel that are remembered
_LARGEST = 2**31 - 65536  # threads; more may be refused, which the whole launch decides


@dataclass(frozen=True)
class Private:
    """An array of which each part has its own, until they are one again.

    kind: what threads do to it. names: parameters that are the array. at: where the arguments
    name it. wins: the adjoint takes its gradient for who replaced a value last.
    """

    kind: str
    names: tuple[str, ...]
    array: Placed
    at: tuple[int, ...]
    wins: bool

    def of(self, args: bytes) -> Private:
        """The same for arguments whose arrays are elsewhere."""
        (address,) = struct.unpack_from("<q", args, self.array.at)
        return replace(self, array=replace(self.array, address=address))


@dataclass(frozen=True)
class Schedule:
    """bounds: where the parts begin, and the end. rounds: which parts run together.

    free: whether the threads of a part may run in any order, too.
    """

    bounds: tuple[int, ...]
    rounds: tuple[tuple[int, ...], ...]
    private: tuple[Private, ...] = ()
    free: bool = False

    def of(self, args: bytes) -> Schedule:
        """The same for arguments whose arrays are elsewhere."""
        if not self.private:
            return self
        return replace(self, private=tuple(p.of(args) for p in self.private))

    @cached_property
    def told(self) -> Rounds | None:
        """What compiled code is told of it, if that can run it alone."""
        from engine.compile.cpu.rounds import rounds

        return rounds(self)


def schedule(
    threads: Threads,
    dim: tuple[int, ...],
    args: bytes,
    bounds: tuple[int, ...] | None = None,
    dealt: frozenset[str] = frozenset(),
) -> Schedule | None:
    """How to run a launch in parts; None where one thread must run after another, or may as well.

    bounds: parts that are given. dealt: gradients of which each part gets what it may take.
    """
    total = math.prod(dim)
    if total < 2 or total >= _LARGEST:
        return None
    if bounds is None and threads.most is not None and total * threads.most < LEAST:
        return None
    # Tests change what is too small.
    rest = (dim, bounds, dealt, LEAST, _reproducible() or thread_count())
    found = threads.schedules.get((args, rest), False)
    if found is False:
        found = _like(threads, dim, args, bounds, dealt, rest)
        if len(threads.schedules) >= KEPT:
            threads.schedules.clear()
        threads.schedules[args, rest] = found
    return found  # type: ignore[return-value]


def _like(
    threads: Threads,
    dim: tuple[int, ...],
    args: bytes,
    bounds: tuple[int, ...] | None,
    dealt: frozenset[str],
    rest: object,
) -> Schedule | None:
    """The schedule, of a launch like it where there was one."""
    known = threads.alike
    layout = threads.layout(args)
    if bounds is None and (layout, rest) in known:
        return None
    # Where arrays are matters by how they lie to each other alone.
    apart = threads.apart(args)
    if (apart, rest) in known:
        like: Schedule | None = known[apart, rest]  # type: ignore[assignment]
        return None if like is None else like.of(args)
    total = math.prod(dim)
    found = _schedule(threads, dim, args, bounds, dealt, total)
    if len(known) >= KEPT:
        known.clear()
    small = False
    if found is None and bounds is None:
        # Whether it is too small, extents and integers say alone.
        small = total * threads.classes_of(dim, args).cost < LEAST
    known[layout if small else apart, rest] = found
    return found


def _schedule(
    threads: Threads,
    dim: tuple[int, ...],
    args: bytes,
    bounds: tuple[int, ...] | None,
    dealt: frozenset[str],
    total: int,
) -> Schedule | None:
    arrays = threads.arrays(args)
    classes = threads.classes(dim, args, arrays)
    work = total * classes.cost
    if not classes.order_free_but_for(dealt) or (bounds is None and work < LEAST):
        return None
    axis = next(d for d, n in enumerate(dim) if n > 1)
    rows, row = dim[axis], math.prod(dim[axis + 1 :])
    merged = [_Merged(g, arrays) for g in classes.groups if g.sharing in ("accumulate", "replace")]
    if any(threads.wins(m.group.names) == "mixed" for m in merged):
        return None
    if bounds is None:
        count = min(PARTS, total, work // PART)
        for m in merged:
            m.local = m.least_rows is not None and rows // m.least_rows >= min(
                _most([m], work), _ENOUGH
            )
            count = min(count, rows // (m.least_rows or 1)) if m.local else count
        count = min(count, _most(merged, work))
        if count < _ENOUGH:
            count -= count % 2  # of few parts, the last one would keep a single processor busy
        if count < 2:
            return None
        # Whole rows where there are enough: an adjoint may need that of the journal's parts.
        whole = rows >= 4 * count or any(m.local for m in merged)
        step, unit = (rows, row) if whole else (total, 1)
        # Parts that share elements with their neighbours must not get narrower than these reach.
        bounds = _bounds(step, count, unit, 1 if any(m.local for m in merged) else LINE)
    else:
        count = len(bounds) - 1
        for m in merged:
            m.local = m.least_rows is not None and _wide(bounds, row, m.least_rows)
        if count > _most(merged, work):
            return None
    private = [_private(threads, m.group, arrays) for m in merged if not m.local]
    if any(p is None for p in private):
        return None
    every = tuple(range(count))
    crossing = any(m.local and m.group.reach for m in merged)
    rounds = (every[::2], every[1::2]) if crossing else (every,)
    free = classes.order_free
    return Schedule(bounds, rounds, tuple(p for p in private if p is not None), free)


def _bounds(step: int, count: int, unit: int, line: int) -> tuple[int, ...]:
    """Where parts begin of so many steps, each of `unit` threads, and the end.

    At whole lines of most arrays, where there is a choice: vectors that lie across two take longer.
    """
    line = line if step >= count * line and unit % line else 1
    return *(k * step // count // line * line * unit for k in range(count)), step * unit


class _Merged:
    """An array that several threads add to. local: in the first of the two ways."""

    def __init__(self, group: Group, arrays: Sequence[Placed]) -> None:
        self.group = group
        self.local = False
        # Rows that a part must have at least, for parts that are not neighbours to be apart.
        self.least_rows = None if group.reach is None else max(group.reach, 1)
        a = next(a for a in arrays if a.name == group.names[0])
        self.elements = math.prod(a.scalars)


def _most(merged: Sequence[_Merged], work: int) -> int:
    """Parts of a launch that may have arrays of their own each, those which are not local."""
    own = [m.elements + COPY for m in merged if not m.local]
    if not own:
        return PARTS
    most = work // max(SHARE * sum(own), 1)
    return most if _reproducible() else min(4 * most, thread_count())


def _reproducible() -> bool:
    """Whether results may not depend on the number of threads."""
    return config.deterministic is None or bool(config.deterministic)


def _wide(bounds: Sequence[int], row: int, apart: int) -> bool:
    """Whether parts are of whole rows, and of as many as threads that meet are apart."""
    if any(b % row for b in bounds):
        return False
    return all(b - a >= apart * row for a, b in pairwise(bounds))


def _private(threads: Threads, g: Group, arrays: Sequence[Placed]) -> Private | None:
    """None where a group's arrays are of several types."""
    members = [a for a in arrays if a.name in g.names]
    if len({a.type.element for a in members}) != 1:
        return None
    assert isinstance(scalar_of(members[0].type), ScalarType)
    places = tuple(a.at for a in members)
    wins = g.sharing == "replace" and threads.wins(g.names) == "deal"
    return Private(g.accesses[0].kind, g.names, members[0], places, wins)
