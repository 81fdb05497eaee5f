"""Makes the forward kernel of a recorded launch: the primal, and saved values for its adjoint."""

from __future__ import annotations

from dataclasses import replace

from engine.ir import nodes as n
from engine.ir.builder import Names
from engine.ir.rewrite import names_in, rewrite


def record(fn: n.Function, sites: frozenset[int]) -> n.Function:
    """A prepared kernel that also writes the values of `sites` to the journal, in order."""
    names = Names(names_in(fn))

    def step(s: n.Stmt) -> list[n.Stmt]:
        out = [s]
        if isinstance(s, (n.Load, n.Atomic, n.Call)) and s.site in sites:
            kept = n.defs_of(s)
            if isinstance(s, n.Call) and s.func.replay is not None:
                kept = tuple(n.Var(names.fresh(d.name), d.type) for d in s.dsts)
                out.append(replace(s, dsts=kept, func=s.func.replay))
            out += [n.JournalWrite(d, s.site, s.span) for d in kept]
        return out

    return replace(fn, name=f"{fn.name}_recorded", body=rewrite(fn.body, step))
