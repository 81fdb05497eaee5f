"""Finds the array parameters that a kernel accesses, directly or by calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from engine.ir import nodes as n

Statements: TypeAlias = Iterable[n.Stmt]


def _all(fn: n.Function) -> Statements:
    return n.walk(fn.body)


def arrays_of(
    fn: n.Function,
    pick: Callable[[Statements], Iterable[n.Atom]],
    reach: Callable[[n.Function], Statements] = _all,
    custom: bool = False,
    known: dict[int, frozenset[str]] | None = None,
) -> frozenset[str]:
    """Array parameters that `pick` finds in the function or in what it calls.

    reach: which statements count. custom: looks into the users' own gradients and replays too.
    known: of functions, by identity.
    """
    known = {} if known is None else known
    if id(fn) in known:
        return known[id(fn)]
    out = {a.name for a in pick(reach(fn)) if isinstance(a, n.Var)}
    if fn.native is not None:
        named = fn.native.updates
        if pick is accessed:
            named |= fn.native.reads | fn.native.writes
        out |= named & {p.name for p in fn.params}
    for s in reach(fn):
        if isinstance(s, n.Call):
            own = (s.func.grad, s.func.replay) if custom else ()
            for f in filter(None, (s.func, *own)):
                inner = arrays_of(f, pick, reach, custom, known)
                # A gradient has more parameters than the call has arguments.
                for p, a in zip(f.params, s.args, strict=False):
                    if p.name in inner and isinstance(a, n.Var):
                        out.add(a.name)
    known[id(fn)] = frozenset(out)
    return known[id(fn)]


def updated(body: Statements) -> Iterable[n.Atom]:
    """Arrays that statements update by atomics."""
    return [s.array for s in body if isinstance(s, n.Atomic)]


def accessed(body: Statements) -> Iterable[n.Atom]:
    """Arrays that statements read or write."""
    return [s.array for s in body if isinstance(s, (n.Load, n.Store, n.Atomic))]
