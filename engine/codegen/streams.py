"""Which arrays threads write so that memory need not be read first: see `native/cpu/lend.h`.

A processor reads the line of memory that it writes a part of. Where all of an array is written and
little is computed, and arrays are larger than any cache, that is a quarter of the time or more. So
some threads write to memory that stays near, which then goes out whole lines at a time.
"""

from __future__ import annotations

from engine.codegen.cstyle import Emitter
from engine.codegen.loops import Loops
from engine.codegen.rows import operations
from engine.ir import nodes as n
from engine.lang.types import ArrayType

# Operations of a thread for each word that it writes, beyond which arithmetic takes the time.
LITTLE = 4
VAST = 96 << 20  # bytes of a launch's arrays; tests change it


def streams(e: Emitter, known: Loops) -> bool:
    """Whether each thread writes one element of each array that it writes, whatever happens."""
    fn, facts = e.fn, e.facts[id(e.fn)]
    loans = dict(known.loans)
    if fn.adjoints or facts.context or not facts.axes or known.sums:
        return False
    if any(isinstance(s, (n.Return, n.For, n.While)) for s in n.walk(fn.body)):
        return False
    written, words = False, 0
    for p in fn.params:
        if not isinstance(p.type, ArrayType) or p.name not in facts.written:
            continue
        box = loans.get(p.name, ())
        if not box or box[-1][0] != facts.axes - 1 or not _is_written(fn, p):
            return False
        written, words = True, words + p.type.element.size // 4
    return written and operations(fn.body, calls=True) <= LITTLE * words


def _is_written(fn: n.Function, array: n.Var) -> bool:
    """Whether a thread writes to an array by one statement, on every way, and does nothing else."""
    touches = [
        s for s in n.walk(fn.body) if array in n.uses_of(s) or getattr(s, "array", 0) == array
    ]
    stores = [s for s in fn.body if isinstance(s, n.Store) and s.array == array and not s.path]
    return len(stores) == 1 and touches == stores
