"""Decides whether the adjoint of a kernel keeps loops that could be unrolled."""

from __future__ import annotations

import engine.ad as ad
from engine.codegen.outline import is_large
from engine.ir import nodes as n
from engine.lang.types import is_float

# Sums into elements of several threads that an adjoint may well do one by one.
SHARED = 20
LONG = 64  # bytes of a value that is long


def better_rolled(
    rolled: n.Function, written: n.Function, wrt: frozenset[str], journaled: frozenset[str]
) -> bool:
    """Of a prepared kernel, and its form with loops written out.

    Loops over what threads share (weights, a neighbourhood) are sums in the adjoint, which are fast
    together: they are kept, unless they make the adjoint large or save long values each turn.
    """
    if is_large(rolled) or _shared(written) <= SHARED:
        return False
    short = ad.reverse(rolled, wrt, journaled).fn
    saved = [s.value.type for s in n.walk(short.body) if isinstance(s, n.Push)]
    return not is_large(short) and all(t.size <= LONG for t in saved)  # type: ignore[union-attr]


def _shared(fn: n.Function) -> int:
    """How many floats are read that several threads may read: sums in the adjoint."""
    own = {s.dst: s for s in n.walk(fn.body) if isinstance(s, n.Let) and s.op in ("tid", "thread")}
    axes = {s.args[:1] for s in own.values()}
    found = 0
    for s in n.walk(fn.body):
        if isinstance(s, n.Load) and is_float(s.dst.type):
            named = {own[a].args[:1] for a in s.index if isinstance(a, n.Var) and a in own}
            found += not named or not named >= axes
    return found
