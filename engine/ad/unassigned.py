"""The watch pass for unassigned variables: makes a kernel that reports reads before assignment.

A variable that some path reads before any assignment is zero there (`Function.unassigned`);
whether that happens is known when the kernel runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.rewrite import Rewriter, names_in
from engine.ir.unassigned import UnassignedRead
from engine.lang.types import BOOL, INT64


def watched(fn: n.Function) -> tuple[n.Function, tuple[UnassignedRead, ...]] | None:
    """A kernel as lowered that journals -1 - k for each read k that finds no value.

    Gives it with the reads that it may find; None where there are none.
    """
    reads = tuple(dict.fromkeys(r for f in (fn, *n.callees(fn)) for r in f.unassigned))
    return (_Watch(reads).function(fn), reads) if reads else None


class _Watch(Rewriter):
    custom = False

    def __init__(self, reads: Sequence[UnassignedRead]) -> None:
        super().__init__()
        self.reads = reads

    def body(self, fn: n.Function) -> n.Block:
        body = super().body(fn)
        if not fn.unassigned:
            return body
        names = Names(names_in(fn))
        given = {
            v: n.Var(names.fresh(f"{v}_given"), BOOL, mutable=True)
            for v in dict.fromkeys(v for r in fn.unassigned for v in r.variables)
        }

        def look(b: Builder, statements: Iterable[n.Stmt]) -> None:
            for s in statements:
                for v in dict.fromkeys(u for u in n.uses_of(s) if isinstance(u, n.Var)):
                    if v.name in given:
                        read = _nearest(v.name, s, fn.unassigned)
                        word = n.JournalWrite(const(-1 - self.reads.index(read), INT64), -1, s.span)
                        b.add(n.If(b.op("lnot", given[v.name]), (word,), (), s.span))

        def step(s: n.Stmt) -> list[n.Stmt]:
            b = Builder(names, s.span)
            # A loop's test writes no memory: it is looked at before the loop begins.
            look(b, (*n.walk(s.test), s) if isinstance(s, n.While) else (s,))
            b.add(s)
            for d in n.defs_of(s):
                if d.name in given:
                    b.set(given[d.name], const(True, BOOL))
            return b.stmts

        def outside(block: n.Block) -> n.Block:
            """`step` for each statement, but not in the tests of loops."""
            out: list[n.Stmt] = []
            for s in block:
                inner = {name: outside(getattr(s, name)) for name in s.NESTED if name != "test"}
                out += step(replace(s, **inner) if inner else s)  # type: ignore[type-var]
            return tuple(out)

        first = Builder(names, fn.span)
        for g in given.values():
            first.set(g, const(False, BOOL))
        return (*first.stmts, *outside(body))


def _nearest(variable: str, s: n.Stmt, reads: Sequence[UnassignedRead]) -> UnassignedRead:
    """The read of a variable that a statement is of."""
    own = [r for r in reads if variable in r.variables]
    return next((r for r in own if r.span.line == s.span.line), own[0])
