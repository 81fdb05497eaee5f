"""Determines the winner of recorded minima and maxima, in any order of the threads.

See `native/cuda/winners.h`: each scalar that is fought for has a word of claims meanwhile. What
the journal says afterwards is that one thread alone took a scalar's place, or none did.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.ad.threads import Access
from engine.ad.threads.apart import Numbers
from engine.ad.threads.bounds import Bounds
from engine.classes import dataclass
from engine.compile.backend import Entry
from engine.compile.cuda.gpu import parameters
from engine.compile.threads import Placed
from engine.lang.types import scalar_of

if TYPE_CHECKING:
    from engine.compile.cuda import Code
    from engine.compile.cuda.runner import Memory, Run

_CROWNS = "crowns.h"
_BLOCK, _MOST_BLOCKS = 256, 1 << 16


@dataclass(frozen=True)
class Won:
    """fought: arrays of which several threads may have replaced an element by a minimum or maximum.
    groups: those of them whose winners are in the journal, by arrays that are one.
    """

    fought: frozenset[str] = frozenset()
    groups: tuple[frozenset[str], ...] = ()


NOTHING = Won()


class Crowns(ctypes.Structure):
    """`eng_crowns`."""

    _fields_ = (
        ("claims", ctypes.c_void_p), ("count", ctypes.c_int64), ("beaten", ctypes.c_uint64),
        ("least", ctypes.c_uint64), ("greatest", ctypes.c_uint64),
    )  # fmt: skip


def won(entry: Entry, dim: tuple[int, ...], args: bytes) -> Won:
    """What a recorded launch will know."""
    code: Code = entry.code
    threads = entry.threads
    if not code.fights.names or threads is None:
        return NOTHING
    key = "won", dim, threads.apart(args)
    found = threads.alike.get(key)
    if found is None:
        if len(threads.alike) >= 256:
            threads.alike.clear()
        found = threads.alike[key] = _won(entry, dim, args)
    assert isinstance(found, Won)
    return found


def _won(entry: Entry, dim: tuple[int, ...], args: bytes) -> Won:
    code: Code = entry.code
    threads = entry.threads
    assert threads is not None
    classes = threads.classes_of(dim, args)
    if not classes.known:
        return Won(code.fights.names)
    placed = threads.arrays(args)
    arrays = {a.name: a for a in placed}
    numbers = Numbers(Bounds(dim, threads.given(args, placed)))
    owned = {k for g in classes.groups if g.sharing == "owned" for k in g.names}
    groups = tuple(
        frozenset(g.names) for g in classes.groups
        if g.sharing in ("replace", "ordered") and set(code.fights.open) >= set(g.names)
        and _one_way(numbers, g.accesses) and len({arrays[k].type.element for k in g.names}) == 1
        and _whole(arrays[g.names[0]]) and threads.wins(g.names) == "deal"
    )  # fmt: skip
    return Won(code.fights.names - owned, groups)


def _one_way(numbers: Numbers, accesses: Sequence[Access]) -> bool:
    """Whether each element is only made less, or only greater."""
    less, greater = ([a for a in accesses if a.kind == kind] for kind in ("min", "max"))
    return len(less) + len(greater) == len(accesses) and all(
        numbers.disjoint(a, b) for a in less for b in greater
    )


def _whole(a: Placed) -> bool:
    """Whether the scalars of an array lie a whole number of scalars apart."""
    size = scalar_of(a.type).numpy.itemsize
    return not any(s % size for s in (a.address, *a.strides))


class Claimed:
    """The claims of a launch."""

    def __init__(self, run: Run, entry: Entry, won: Won) -> None:
        self._run = run
        self._memory: list[tuple[Memory, Crowns, int]] = []
        code: Code = entry.code
        if not won.groups or entry.threads is None:
            return
        arrays = {a.name: a for a in entry.threads.arrays(run.args)}
        for names in won.groups:
            a = arrays[min(names)]
            if a.empty:
                continue
            low, high = a.ends
            numbers = scalar_of(a.type).numpy
            count = (high - low) // numbers.itemsize
            kept = run.memory(8 * count)
            for name in names:
                claims = run.state.claims[code.fights.open.index(name)]
                claims.base, claims.words = low, kept.address
            crowns = Crowns(kept.address, count, *_ends(numbers))
            self._memory.append((kept, crowns, numbers.itemsize))

    def clear(self) -> None:
        """Before the launch: nobody has one."""
        for kept, _, _ in self._memory:
            self._run.gpu.clear(kept.address, kept.nbytes)

    def crown(self) -> None:
        """After it."""
        for _, crowns, size in self._memory:
            blocks = min(-(-crowns.count // _BLOCK), _MOST_BLOCKS)
            crown = self._run.backend.helper(_CROWNS, f"eng_crown_{size}")
            self._run.gpu.launch(crown, blocks, _BLOCK, parameters(crowns))


def _ends(numbers: np.dtype[Any]) -> list[int]:
    """What each number beats, the least and the greatest, by bits. Only floats have gradients."""
    ends = (np.nan, -np.inf, np.inf)
    return [int.from_bytes(np.array(v, numbers).tobytes(), "little") for v in ends]
