"""The forward kernel of a recorded launch: the primal, and what its adjoint cannot read again."""

from __future__ import annotations

from dataclasses import replace

from engine.ir import nodes as n


def record(fn: n.Function, sites: frozenset[int]) -> n.Function:
    """A prepared kernel that also writes the values of `sites` to the journal, in order."""
    return replace(fn, name=f"{fn.name}_recorded", body=_block(fn.body, sites))


def _block(block: n.Block, sites: frozenset[int]) -> n.Block:
    out: list[n.Stmt] = []
    for s in block:
        if isinstance(s, n.If):
            s = replace(s, then=_block(s.then, sites), orelse=_block(s.orelse, sites))
        elif isinstance(s, n.For):
            s = replace(s, body=_block(s.body, sites))
        elif isinstance(s, n.While):
            s = replace(s, test=_block(s.test, sites), body=_block(s.body, sites))
        out.append(s)
        if isinstance(s, (n.Load, n.Atomic, n.Call)) and s.site in sites:
            out += [n.JournalWrite(d, s.site, s.span) for d in n.defs_of(s)]
    return tuple(out)
