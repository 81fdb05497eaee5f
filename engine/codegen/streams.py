"""Which arrays threads write so that memory need not be read first: see `native/cpu/stream.h`.

A processor reads the line of memory that it writes a part of. Where all of an array is written and
little is computed, and arrays are larger than any cache, that is a quarter of the time or more. So
some threads write to memory that stays near, which then goes out whole lines at a time.
"""

from __future__ import annotations

from engine.codegen.cstyle import Emitter
from engine.codegen.loops import Loops, Place
from engine.codegen.rows import operations
from engine.ir import nodes as n
from engine.lang.types import ArrayType

HEADER = "stream.h"
# Operations of a thread for each word that it writes, beyond which arithmetic takes the time.
LITTLE = 4
VAST = 96 << 20  # bytes of a launch's arrays; tests change it


def streams(e: Emitter, known: Loops) -> tuple[tuple[str, Place], ...]:
    """Arrays of which each thread writes one element, whatever happens, and where."""
    fn, facts = e.fn, e.facts[id(e.fn)]
    loans = dict(known.loans)
    if fn.adjoints or facts.context or not facts.axes or known.sums:
        return ()
    if any(isinstance(s, (n.Return, n.For, n.While)) for s in n.walk(fn.body)):
        return ()
    out, words = [], 0
    for p in fn.params:
        if not isinstance(p.type, ArrayType) or p.name not in facts.written:
            continue
        place = tuple((axis, low) for axis, low, _ in loans.get(p.name, ()))
        if not place or place[-1][0] != facts.axes - 1 or not _is_written(fn, p):
            return ()
        words += p.type.element.size // 4
        out.append((p.name, place))
    return tuple(out) if operations(fn.body, calls=True) <= LITTLE * words else ()


def _is_written(fn: n.Function, array: n.Var) -> bool:
    """Whether a thread writes to an array by one statement, on every way, and does nothing else."""
    touches = [
        s for s in n.walk(fn.body) if array in n.uses_of(s) or getattr(s, "array", 0) == array
    ]
    stores = [s for s in fn.body if isinstance(s, n.Store) and s.array == array and not s.path]
    return len(stores) == 1 and touches == stores
