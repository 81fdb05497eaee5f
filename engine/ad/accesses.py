"""The access pass: makes a kernel that records the scalars that each thread reads and writes.

For sparse Jacobians: an output scalar can depend on an input scalar only where one thread
reads the one and writes the other, by statements between which a derivative can flow,
unless threads read what other threads wrote (whoever uses the record looks for that).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from engine.classes import dataclass
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.ops import OPS, NoDerivative
from engine.ir.rewrite import names_in, rewrite
from engine.lang.types import INT32, INT64, ArrayType, is_float, shape_of


@dataclass(frozen=True, slots=True)
class Access:
    """A place in the code that reads or writes float scalars of an array.

    width: how many scalars side by side: those of an element, or 1 for a component.
    sources: numbers of the accesses whose values can reach what it writes.
    """

    array: str
    reads: bool
    writes: bool
    width: int
    sources: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Accesses:
    """A kernel that records its accesses, one word each in the journal, and what these are.

    A word is -1 - (number + count * scalar), which frame ends, being positive, are not:
    `number` counts `sites`, `scalar` is the first that is touched, counted row-major.
    """

    fn: n.Function
    sites: tuple[Access, ...]


def accesses(fn: n.Function) -> Accesses | None:
    """The record of a prepared kernel; None where what it touches cannot be told.

    That is so for calls with arrays: a user's own gradient may use them in any way.
    """
    found: dict[int, tuple[int, n.Load | n.Store | n.Atomic]] = {}
    for s in n.walk(fn.body):
        if isinstance(s, n.Call) and any(isinstance(a.type, ArrayType) for a in s.args):
            return None
        if isinstance(s, (n.Load, n.Store, n.Atomic)) and is_float(s.array.type):
            found[id(s)] = (len(found), s)
    flow = _Flow(fn, found)
    sites = tuple(
        Access(
            s.array.name,
            isinstance(s, n.Load) or (isinstance(s, n.Atomic) and s.dst is not None),
            not isinstance(s, n.Load),
            1 if s.path else _width(s.array),
            frozenset() if isinstance(s, n.Load) else flow.sources(s),
        )
        for _, s in found.values()
    )
    names = Names(names_in(fn))

    def step(s: n.Stmt) -> list[n.Stmt]:
        b = Builder(names, s.span)
        b.add(s)
        if id(s) in found and isinstance(s, (n.Load, n.Store, n.Atomic)):
            b.add(n.JournalWrite(_word(b, s, found[id(s)][0], len(found)), -1, s.span))
        return b.stmts

    body = rewrite(fn.body, step)
    return Accesses(replace(fn, name=f"{fn.name}_accesses", body=body), sites)


def _width(array: n.Var) -> int:
    assert isinstance(array.type, ArrayType)
    return int(np.prod(shape_of(array.type.element), dtype=np.int64))


class _Flow:
    """For each variable, the reads whose values can reach it. Flow-insensitive.

    A variable, and an array that is written, counts as one thing through the whole kernel.
    """

    def __init__(
        self, fn: n.Function, found: dict[int, tuple[int, n.Load | n.Store | n.Atomic]]
    ) -> None:
        self.masks: dict[object, int] = {}
        edges: list[tuple[object, object]] = []  # (from, to); arrays by name

        def link(origins: Iterable[n.Atom], to: object) -> None:
            edges.extend((o, to) for o in origins if isinstance(o, n.Var))

        for s in n.walk(fn.body):
            if isinstance(s, n.Let):
                if not isinstance(OPS[s.op].derivative, NoDerivative):
                    link(s.args, s.dst)
            elif isinstance(s, n.Set):
                link((s.value,), s.dst)
            elif isinstance(s, n.Call):
                for d in s.dsts:
                    link(s.args, d)
            elif isinstance(s, (n.Load, n.Store, n.Atomic)) and id(s) in found:
                if not isinstance(s, n.Load):
                    link((s.value,), s.array.name)
                if not isinstance(s, n.Store) and s.dst is not None:
                    edges.append((s.array.name, s.dst))
                    self.masks[s.dst] = 1 << found[id(s)][0]
        changed = True
        while changed:
            changed = False
            for a, b in edges:
                mask = self.masks.get(a, 0)
                if mask & ~self.masks.get(b, 0):
                    self.masks[b] = self.masks.get(b, 0) | mask
                    changed = True

    def sources(self, s: n.Store | n.Atomic) -> frozenset[int]:
        mask = self.masks.get(s.value, 0)
        return frozenset(k for k in range(mask.bit_length()) if mask >> k & 1)


def _word(b: Builder, s: n.Load | n.Store | n.Atomic, number: int, count: int) -> n.Atom:
    """-1 - (number + count * scalar)."""
    assert isinstance(s.array.type, ArrayType)
    flat = _row_major(b, s.index, [_extent(b, s.array, d) for d in range(len(s.index))])
    shape = shape_of(s.array.type.element)
    inner = _row_major(b, s.path, [const(m, INT64) for m in shape]) if s.path else None
    width = int(np.prod(shape, dtype=np.int64))
    if width > 1:
        flat = b.op("mul", flat, const(width, INT64))
    if inner is not None:
        flat = b.op("add", flat, inner)
    scaled = b.op("mul", flat, const(-count, INT64))
    return b.op("add", scaled, const(-1 - number, INT64))


def _extent(b: Builder, array: n.Var, axis: int) -> n.Atom:
    return _wide(b, b.op("shape", array, const(axis, INT32)))


def _row_major(b: Builder, index: tuple[n.Atom, ...], extents: list[n.Atom]) -> n.Atom:
    flat = _wide(b, index[0])
    for i, extent in list(zip(index, extents, strict=True))[1:]:
        flat = b.op("add", b.op("mul", flat, extent), _wide(b, i))
    return flat


def _wide(b: Builder, a: n.Atom) -> n.Atom:
    if a.type == INT64:
        return a
    if isinstance(a, n.Const):
        assert isinstance(a.value, (bool, int))
        return const(int(a.value), INT64)
    return b.op("cast", a, result=INT64)
