"""Sums that many threads of a GPU add to one element at once, as far as the text shows it."""

from __future__ import annotations

from engine.ir import nodes as n


def even_sums(fn: n.Function) -> frozenset[int]:
    """Atomic sums (by identity) whose index does not come from the thread's place in the grid.

    It is a guess: where threads are apart in a loop, they may mean different elements. Code that
    relies on it has to look.
    """
    sums = [s for s in n.walk(fn.body) if isinstance(s, n.Atomic) and s.kind in ("add", "sub")]
    if not fn.is_kernel or all(s.dst is not None for s in sums):
        return frozenset()
    apart: set[n.Var] = set()
    before = -1
    while before != len(apart):
        before = len(apart)
        for s in n.walk(fn.body):
            own = isinstance(s, n.Let) and s.op in ("tid", "thread")
            if own or isinstance(s, (n.Call, n.Atomic)) or any(a in apart for a in n.uses_of(s)):
                apart.update(n.defs_of(s))
    return frozenset(id(s) for s in sums if s.dst is None and not any(a in apart for a in s.index))
