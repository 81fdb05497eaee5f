"""Finds accesses that are slow on a GPU."""

from __future__ import annotations

from math import copysign

from engine.ir import nodes as n
from engine.lang.types import is_float, scalar_of


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


def cleared(block: n.Block, k: int) -> n.Var | None:
    """What the statement before number k loaded, if that one stores zeros there.

    So a cotangent is consumed. A GPU takes three times as long to store to what is still on its
    way, so that the zeros are made to come after it.
    """
    s, before = block[k], block[k - 1] if k else None
    if not (isinstance(s, n.Store) and isinstance(before, n.Load) and isinstance(s.value, n.Const)):
        return None
    same = (s.array, s.index, s.path, ()) == (before.array, before.index, (), before.path)
    return before.dst if same and not before.dst.mutable and _is_zero(s.value) else None


def _is_zero(c: n.Const) -> bool:
    if not is_float(scalar_of(c.type)):
        return False
    todo: list[object] = [c.value]
    while todo:
        x = todo.pop()
        if isinstance(x, tuple):
            todo += x
        elif not isinstance(x, (int, float)) or x != 0 or copysign(1.0, x) < 0:
            return False
    return True
