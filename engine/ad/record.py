"""The forward kernel of a recorded launch: the primal, and what its adjoint cannot read again."""

from __future__ import annotations

from dataclasses import replace

from engine.ad.rename import names_in
from engine.ir import nodes as n
from engine.ir.builder import Names


def record(fn: n.Function, sites: frozenset[int]) -> n.Function:
    """A prepared kernel that also writes the values of `sites` to the journal, in order."""
    return replace(fn, name=f"{fn.name}_recorded", body=_block(fn.body, sites, Names(names_in(fn))))


def _block(block: n.Block, sites: frozenset[int], names: Names) -> n.Block:
    out: list[n.Stmt] = []
    for s in block:
        if isinstance(s, n.If):
            s = replace(s, then=_block(s.then, sites, names), orelse=_block(s.orelse, sites, names))
        elif isinstance(s, n.For):
            s = replace(s, body=_block(s.body, sites, names))
        elif isinstance(s, n.While):
            s = replace(s, test=_block(s.test, sites, names), body=_block(s.body, sites, names))
        out.append(s)
        if isinstance(s, (n.Load, n.Atomic, n.Call)) and s.site in sites:
            kept = n.defs_of(s)
            if isinstance(s, n.Call) and s.func.replay is not None:
                kept = tuple(n.Var(names.fresh(d.name), d.type) for d in s.dsts)
                out.append(replace(s, dsts=kept, func=s.func.replay))
            out += [n.JournalWrite(d, s.site, s.span) for d in kept]
    return tuple(out)
