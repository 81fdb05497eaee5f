"""Writes how launches run of which some arrays are not contiguous, or one that is read
and written by two names: see `native/cpu/lend.h`.
"""

from __future__ import annotations

from engine.codegen.ahead import AHEAD, ahead
from engine.codegen.cstyle import Emitter
from engine.codegen.facts import Facts, touched_arrays
from engine.codegen.loops import Loops, spans_of
from engine.codegen.spelling import flag, identifier
from engine.ir import nodes as n
from engine.lang.types import ArrayType

HEADER = "lend.h"


def can_lend(fn: n.Function, facts: Facts, known: Loops) -> bool:
    """Whether there are arrays of which threads may get copies of their elements."""
    return bool(known.loans) and facts.axes > 0 and not facts.reads


def table(e: Emitter, known: Loops) -> list[str]:
    """The arrays that a kernel touches, in the order of the parameters."""
    fn, facts = e.fn, e.facts[id(e.fn)]
    loans = dict(known.loans) if can_lend(fn, facts, known) else {}
    more = _looked_at_ahead(fn)
    boxes, rows = list[str](), list[str]()
    for p, at in touched_arrays(fn, facts):
        assert isinstance(p.type, ArrayType)
        extra = AHEAD if p.name in more else 0
        box = loans.get(p.name, ())
        along = "nullptr"
        if box:
            along = f"along_{identifier(p.name)}"
            each = ", ".join(f"{{{axis}, {low}, {high}, {extra}}}" for axis, low, high in box)
            boxes.append(f"static const eng::along_t {along}[] = {{{each}}};")
        told = (p.name in facts.written, p.name in known.alone, bool(box), _is_sure(fn, p),
                _is_early(fn, p))  # fmt: skip
        flags = ", ".join(map(flag, told))
        rows.append(f"    {{{at}, {p.type.element.size}, {p.type.ndim}, {flags}, {along}}},")
    return [*boxes, "static const eng::touched_t touched[] = {", *rows, "};"]


def _is_sure(fn: n.Function, array: n.Var) -> bool:
    """Whether a thread writes to its element of an array whatever happens, and to all of it."""
    if any(isinstance(s, n.Return) for s in n.walk(fn.body)):
        return False
    writes = (s for s in fn.body if isinstance(s, (n.Store, n.Atomic)))
    return any(s.array == array and not s.path for s in writes)


def _is_early(fn: n.Function, array: n.Var) -> bool:
    """Whether a thread only loads from an array, all of it before it writes to any."""
    if fn.adjoints or any(
        isinstance(w, (n.Store, n.Atomic))
        for s in n.walk(fn.body) if isinstance(s, (n.For, n.While))
        for b in n.blocks_of(s) for w in n.walk(b)
    ):  # fmt: skip
        return False
    wrote = False
    for s in n.walk(fn.body):
        if isinstance(s, n.Load) and s.array == array:
            if wrote:
                return False
        elif array in n.uses_of(s) or getattr(s, "array", None) == array:
            return False
        wrote = wrote or (not isinstance(s, n.Load) and _touches(s))
    return True


def _touches(s: n.Stmt) -> bool:
    """Whether a statement may write to an array."""
    given = any(isinstance(a.type, ArrayType) for a in n.uses_of(s))
    return isinstance(s, (n.Store, n.Atomic)) or given


def _looked_at_ahead(fn: n.Function) -> set[str]:
    """Arrays of which a thread looks at elements of others, to ask for what they need."""
    asked = (a for some in ahead(fn).values() for a in some)
    return {s.array.name for a in asked for s in a.needed if isinstance(s, n.Load)}


def sums(e: Emitter, known: Loops) -> str:
    """The most threads over which a sum runs that they cannot be cut of."""
    spans = spans_of(e, known)
    for span in ("launch", "row"):
        if span in spans:
            return span
    shared = e.facts[id(e.fn)].written.difference(dict(known.loans))
    return "block" if shared else "none"
