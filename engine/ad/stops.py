"""Finds native functions without an adjoint, where gradients end silently."""

from __future__ import annotations

from engine.ad.activity import active
from engine.ir import nodes as n
from engine.lang.types import ArrayType, is_float


def stops(fn: n.Function, wrt: frozenset[str]) -> tuple[n.Function, ...]:
    """The native functions without an adjoint that gradients of the arrays `wrt` get to.

    fn: a prepared kernel. Each function comes once, in the order of its first call.
    """
    calls = [s for s in n.walk(fn.body) if isinstance(s, n.Call) and _is_open(s.func)]
    if not calls:
        return ()
    moving = active(fn, wrt)
    found = {id(s.func): s.func for s in calls if _carries(s, moving, wrt)}
    return tuple(found.values())


def _is_open(f: n.Function) -> bool:
    return f.native is not None and f.grad is None


def _carries(s: n.Call, moving: frozenset[n.Var], wrt: frozenset[str]) -> bool:
    """Whether a call may take a float that matters to another place that matters."""
    native = s.func.native
    assert native is not None
    if any(d in moving for d in s.dsts):
        return True
    read = written = False
    for p, a in zip(s.func.params, s.args, strict=True):
        if not isinstance(a, n.Var) or not is_float(p.type):
            continue
        if not isinstance(p.type, ArrayType):
            read = True
        elif a.name in wrt:
            read |= p.name in native.reads
            written |= p.name in native.writes | native.updates
    return read and written
