"""Bounds the saved values and messages of a kernel's threads."""

from __future__ import annotations

from collections.abc import Mapping

from engine.classes import dataclass
from engine.codegen.facts import constant_trips, is_short, sure_pushes
from engine.codegen.layout import SLOT
from engine.ir import nodes as n
from engine.lang.types import ArrayType


@dataclass(frozen=True)
class Frames:
    """Bytes for one thread; None where loops decide.

    stack, journal: what it saves. beyond: what it may push after effects, in loops that measure
    nothing. words: slots of its messages, those in loops counted once.
    """

    stack: int | None
    journal: int | None
    beyond: int
    words: int


_NOTHING = Frames(0, 0, 0, 0)


def frames_of(fn: n.Function) -> Frames:
    """The frames of a kernel."""
    known: dict[int, Frames] = {}
    for f in (*n.callees(fn), fn):
        known[id(f)] = _of_block(f.body, sure_pushes(f), known)
    return known[id(fn)]


def _of_block(block: n.Block, sure: frozenset[int], known: Mapping[int, Frames]) -> Frames:
    """All statements that may run. Branches count as if both ran."""
    total = _NOTHING
    for s in block:
        found = _of_statement(s, sure, known)
        for b in n.blocks_of(s):
            found = _sum(found, _of_block(b, sure, known))
        if isinstance(s, (n.For, n.While)):
            trips = constant_trips(s)
            found = Frames(
                _times(found.stack, trips), _times(found.journal, trips),
                # What is pushed in a turn of a longer loop is taken back in it.
                found.beyond * ((256 if trips is None else trips) if is_short(s) else 1),
                found.words,
            )  # fmt: skip
        total = _sum(total, found)
    return total


def _of_statement(s: n.Stmt, sure: frozenset[int], known: Mapping[int, Frames]) -> Frames:
    if isinstance(s, n.Push):
        size = _bytes(s.value)
        return Frames(size, 0, size if id(s) in sure else 0, 0)
    if isinstance(s, n.JournalWrite):
        return Frames(0, _bytes(s.value), 0, 0)
    if isinstance(s, n.Message):
        return Frames(0, 0, 0, 2 + sum(_bytes(a) // SLOT for a in s.args))
    return known[id(s.func)] if isinstance(s, n.Call) else _NOTHING


def _bytes(a: n.Atom) -> int:
    t = a.type
    assert not isinstance(t, ArrayType)
    return SLOT * -(-t.size // SLOT)


def _sum(a: Frames, b: Frames) -> Frames:
    stack = None if a.stack is None or b.stack is None else a.stack + b.stack
    journal = None if a.journal is None or b.journal is None else a.journal + b.journal
    return Frames(stack, journal, a.beyond + b.beyond, a.words + b.words)


def _times(size: int | None, trips: int | None) -> int | None:
    if size == 0:
        return 0
    return None if size is None or trips is None else size * trips
