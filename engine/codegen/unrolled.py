"""Loops that compilers are told to write out: those that count through a local vector or matrix.

Written out, every component has a name of its own, and lives in a register; before, the value lies
in memory, where each turn reads and writes it, and no loop over threads becomes vector code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.codegen.facts import constant_trips
from engine.ir import nodes as n
from engine.lang.types import ArrayType, is_integer, shape_of

TURNS = 16  # of a loop, at most: what `ENG_UNROLL` writes out
# Statements of a nest of loops that is written out, with those of the functions that it calls.
MOST = 2000
_READS = ("extract", "extract_row")
_COMPONENTS = (*_READS, "insert", "insert_row")


def unrolled(fn: n.Function) -> frozenset[int]:
    """These loops of a function, by identity."""
    if not any(isinstance(s, n.For) for s in n.walk(fn.body)):
        return frozenset()
    sizes: dict[int, int] = {}
    for f in n.callees(fn):
        sizes[id(f)] = _block(f.body, set(), sizes)
    found: set[int] = set()
    _block(fn.body, found, sizes)
    return frozenset(found)


def _block(block: n.Block, found: set[int], sizes: Mapping[int, int]) -> int:
    """Finds those of a block. How many statements it has with them written out.

    sizes: of the functions that it calls, by identity.
    """
    total = 0
    for s in block:
        inner = sum(_block(b, found, sizes) for b in n.blocks_of(s))
        if isinstance(s, n.Call):
            inner = sizes[id(s.func)]
        trips = constant_trips(s)
        if isinstance(s, n.For) and trips is not None and 1 <= trips <= TURNS:
            if trips * inner <= MOST and _counts(s):
                found.add(id(s))
                inner *= trips
        total += inner + 1
    return total


def _counts(s: n.For) -> bool:
    """Whether a component is taken by a number that comes of the loop's."""
    known: set[n.Atom] = {s.var}
    for x in n.walk(s.body):
        if isinstance(x, n.Let):
            if x.op in _COMPONENTS and not known.isdisjoint(_places(x)):
                return True
            if is_integer(x.dst.type) and not known.isdisjoint(x.args):
                known.add(x.dst)
        elif isinstance(x, n.Set) and x.value in known:
            known.add(x.dst)
    return False


def _places(s: n.Let) -> Sequence[n.Atom]:
    """The indices of an access to a component."""
    if isinstance(s.args[0].type, ArrayType) or not shape_of(s.args[0].type):
        return ()
    return s.args[1:] if s.op in _READS else s.args[1:-1]
