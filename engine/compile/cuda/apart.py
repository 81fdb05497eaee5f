"""Selects the form of a kernel for a launch: see `engine.codegen.apart`."""

from __future__ import annotations

import math

from engine.ad.threads import Access, collect
from engine.codegen.apart import UNKNOWN, Apart
from engine.codegen.apart import WIDE as ROW
from engine.codegen.facts import facts_of
from engine.codegen.guards import guards_of, straight
from engine.codegen.outline import is_large, weight_of
from engine.compile.backend import Entry
from engine.compile.cpu.loops import alone_in, loops_of
from engine.compile.cuda.rows import around_of, can_add_several, free_of, rows_of
from engine.compile.threads import Placed
from engine.ir import nodes as n
from engine.lang.types import ArrayType, scalar_of

ANY, APART, WIDE = 0, 1, 2
LIGHT = 60  # operations of a kernel whose time is that of memory
_PIECE = 16  # bytes that one instruction moves, at most
_MOVED = (4, 8, 16)  # sizes of elements of which it moves several, or one
# Functions with jumps, over which the compiler brings no accesses of neighbours together. Threads
# in rows would then each move single numbers, far from those of the next CUDA thread.
_JUMPING = frozenset(
    ["atan", "atan2", "cos", "erf", "erfcinv", "erfinv", "log", "log10", "log2", "mod", "pow",
     "sin", "tan"]
)  # fmt: skip
MOST = 2**31 - 1 - 65536  # threads that 32 bits count; see `eng::fits_int32`
SMALL = 200  # operations of a kernel that has a form of its own for speed alone
_KEPT = 256


def known_of(fn: n.Function, arch: str = "sm_90") -> Apart:
    """What is known of a kernel's launches whose arrays share no memory."""
    all_facts = facts_of(fn)
    facts = all_facts[id(fn)]
    if not (facts.touched and facts.axes) or fn.watch or is_large(fn):
        return UNKNOWN
    found = collect(fn)
    if not found.known or found.stops:
        return UNKNOWN
    arrays: dict[str, list[Access]] = {}
    for a in found.accesses:
        arrays.setdefault(a.array, []).append(a)
    own = frozenset(k for k, some in arrays.items()
                    if {"add", "read"} >= {a.kind for a in some} != {"read"}
                    and alone_in(some, facts.axes))  # fmt: skip
    loops = loops_of(fn)
    kinds = {p.name: p.type for p in fn.params}
    sums = tuple((k, places) for k, places in loops.sums
                 if all(axis < 0 for place in places for axis, _ in place)
                 and scalar_of(kinds[k]).size >= 4)  # fmt: skip
    # Threads and coordinates are counted in 32 bits, and no number is loaded twice.
    weight = weight_of(fn)
    narrow = Apart(bool(own or sums or weight <= SMALL), own, sums)
    if facts.context or weight > LIGHT:
        return narrow
    run = straight(fn.body, guards_of(fn, all_facts, True))
    if run is None:
        return narrow
    elements = [t.element.size for k, t in kinds.items()
                if k in facts.touched and isinstance(t, ArrayType)]  # fmt: skip
    summed = {k for k, _ in sums}
    others = {k: some for k, some in arrays.items() if k not in summed}
    free = free_of(fn, run)
    rows = rows_of(loops, {k: some for k, some in others.items() if k in free}, facts.axes)
    held = {k for k, _ in rows}
    left = {k: some for k, some in others.items() if k in free and k not in held}
    around = around_of(fn, left, facts.axes) if can_add_several(arch) else ()
    held |= {k for k, _ in around}
    # Threads of one CUDA thread run in ascending order.
    wide = (
        (loops.any_order or not fn.adjoints)
        and all(size in _MOVED for size in elements)
        and (held == others.keys() or not _jumps(fn))
        and any(alone_in(some, facts.axes) for some in arrays.values())
        and all(k in held or k not in facts.written or alone_in(some, facts.axes)
                for k, some in others.items())
    )  # fmt: skip
    return Apart(True, own, sums, wide, rows, around) if wide else narrow


def _jumps(fn: n.Function) -> bool:
    return any(
        isinstance(s, n.Let) and s.op in _JUMPING
        for f in (*n.callees(fn), fn) for s in n.walk(f.body)
    )  # fmt: skip


def form_of(entry: Entry, dim: tuple[int, ...], args: bytes) -> int:
    """The form that a launch of all threads of a grid takes."""
    forms = entry.code.forms
    found: int | None = forms.get((dim, args))
    if found is None:
        if len(forms) >= _KEPT:
            forms.clear()
        found = forms[dim, args] = _form(entry, dim, args)
    return found


def _form(entry: Entry, dim: tuple[int, ...], args: bytes) -> int:
    code = entry.code
    if entry.threads is None or len(dim) != code.facts.axes or math.prod(dim) > MOST:
        return ANY
    touched = [a for a in entry.threads.arrays(args) if a.name in code.facts.touched]
    if not are_apart([a for a in touched if not a.empty], code.facts.written):
        return ANY
    rows = len(dim) == 1 or dim[-1] % ROW == 0
    wide = code.apart.wide and rows and all(map(_in_pieces, touched))
    return WIDE if wide else APART


def are_apart(arrays: list[Placed], written: frozenset[str]) -> bool:
    """Whether no array that is written shares memory, and all have contiguous rows."""
    spans = []
    for a in arrays:
        size = a.type.element.size
        if a.strides[-1] != size and a.shape[-1] > 1:
            return False
        if a.name in written and a.overlaps_itself:
            return False
        spans.append((*a.ends, a.name in written))
    spans.sort()
    reached = written_to = 0  # by all so far, and by those that are written
    for lo, hi, is_written in spans:
        if lo < (reached if is_written else written_to):
            return False
        reached = max(reached, hi)
        if is_written:
            written_to = max(written_to, hi)
    return True


def _in_pieces(a: Placed) -> bool:
    """Whether all rows begin at an address that one instruction can move much from."""
    return a.address % _PIECE == 0 and all(s % _PIECE == 0 for s in a.strides[:-1])
