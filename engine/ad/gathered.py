"""Merges values that are built component by component into one construction.

    t = insert(0, 0, a); u = insert(t, 1, b)    becomes    u = construct(a, b)

Reverse mode adds to adjoints one component at a time; compilers copy the whole for each.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from engine.ad.components import component, places
from engine.ir import nodes as n
from engine.ir.rewrite import rewrite
from engine.ir.sites import placed


def gathered(fn: n.Function) -> n.Function:
    """The function with such chains of two or more replaced, where every component is known."""
    made = {s.dst: s for s in n.walk(fn.body) if isinstance(s, n.Let)}
    chains = {v for v, s in made.items() if s.op == "insert" and placed(s)}
    # How often values are used, and which are used as more than the next one's beginning.
    used: Counter[n.Atom] = Counter()
    ends: set[n.Atom] = set()
    for s in n.walk(fn.body):
        for k, a in enumerate(n.uses_of(s)):
            used[a] += 1
            if k or not (isinstance(s, n.Let) and s.dst in chains):
                ends.add(a)

    def step(s: n.Stmt) -> n.Stmt:
        if not isinstance(s, n.Let) or s.dst not in chains or s.dst not in ends:
            return s
        before = s.args[0]
        if before not in chains or used[before] > 1:
            return s
        parts = [component((s.dst, *at), made) for at in places(s.dst.type)]
        known = tuple(p for p in parts if p is not None)
        return n.Let(s.dst, "construct", known, s.span) if len(known) == len(parts) else s

    return replace(fn, body=rewrite(fn.body, step)) if chains & ends else fn
