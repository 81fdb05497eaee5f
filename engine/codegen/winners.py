"""Recorded minima and maxima whose winner a GPU determines: see `native/cuda/winners.h`."""

from __future__ import annotations

from collections import Counter

from engine.classes import dataclass
from engine.ir import nodes as n
from engine.lang.types import ArrayType

MOST = 4  # arrays of a kernel, as `native/cuda/block.h` has it


@dataclass(frozen=True)
class Fights:
    """names: of all arrays that recorded minima or maxima are of. open: of those whose winners can
    be found; nothing else is done to them, and nobody uses what was there before. sites: of their
    updates.
    """

    names: frozenset[str] = frozenset()
    open: tuple[str, ...] = ()
    sites: frozenset[int] = frozenset()

    def place(self, s: n.Atomic) -> int | None:
        """The number of the array of an update whose winner can be found."""
        return self.open.index(s.array.name) if s.site in self.sites else None


NONE = Fights()


def fights_of(fn: n.Function) -> Fights:
    """What is fought for in a recorded kernel."""
    written: set[n.Atom] = set()
    used: Counter[n.Atom] = Counter()  # arrays and results, by statements that use them
    atomics: list[n.Atomic] = []
    for s in n.walk(fn.body):
        if isinstance(s, n.JournalWrite):
            written.add(s.value)
            continue
        # Extents are no elements.
        used.update({a for a in n.uses_of(s)
                     if not (isinstance(s, n.Let) and isinstance(a.type, ArrayType))})  # fmt: skip
        if isinstance(s, n.Atomic) and s.kind in ("min", "max"):
            atomics.append(s)
    fought = [s for s in atomics if s.dst in written]
    found: list[str] = []
    for array in dict.fromkeys(s.array for s in fought):
        mine = [s for s in fought if s.array == array and not used[s.dst]]  # type: ignore[index]
        if len(mine) == used[array]:
            found.append(array.name)
    found = found[:MOST]
    sites = frozenset(s.site for s in fought if s.array.name in found)
    return Fights(frozenset(s.array.name for s in fought), tuple(found), sites)
