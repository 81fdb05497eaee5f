"""Which form of a kernel a launch takes: see `engine.codegen.apart`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from engine.ad.threads import Access, collect
from engine.codegen.apart import UNKNOWN, Apart
from engine.codegen.apart import WIDE as ROW
from engine.codegen.facts import facts_of
from engine.codegen.guards import decides, guards_of
from engine.codegen.loops import Loops, Place
from engine.codegen.outline import is_large, weight_of
from engine.compile.backend import Entry
from engine.compile.cpu.loops import alone_in, loops_of
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
_PLAIN = ("add", "sub")
_MOST = 2**31 - 1 - 65536  # threads that 32 bits count; see `eng::fits_int32`
SMALL = 200  # operations of a kernel that has a form of its own for speed alone
_KEPT = 256


def known_of(fn: n.Function) -> Apart:
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
    elements = [t.element.size for k, t in kinds.items()
                if k in facts.touched and isinstance(t, ArrayType)]  # fmt: skip
    guards = guards_of(fn, all_facts)
    straight = (
        not any(s.NESTED for s in n.walk(fn.body)) if guards is None else decides(guards, fn.body)
    )
    rows = _rows(fn, loops, arrays, facts.axes)
    # Threads of one CUDA thread run in ascending order.
    wide = (
        (loops.any_order or not fn.adjoints) and weight_of(fn) <= LIGHT
        and straight and not facts.context
        and all(size in _MOVED for size in elements)
        and (len(rows) == len(arrays) or not _jumps(fn))
        and any(alone_in(some, facts.axes) for some in arrays.values())
    )  # fmt: skip
    # Threads and coordinates are counted in 32 bits, and no number is loaded twice.
    small = weight_of(fn) <= SMALL
    return Apart(bool(own or sums or wide or small), own, sums, wide, rows if wide else ())


def _rows(
    fn: n.Function, loops: Loops, arrays: Mapping[str, Sequence[Access]], axes: int
) -> tuple[tuple[str, Place], ...]:
    """The arrays of which each thread touches one element, that of its last coordinate.

    Where the kernel has it as an element, and does to it what can be done to a register.
    """
    spoiled = set[str]()
    for s in n.walk(fn.body):
        if isinstance(s, n.Let) and s.op == "shape":
            continue
        named = None
        if isinstance(s, (n.Load, n.Store)) or (isinstance(s, n.Atomic) and s.kind in _PLAIN):
            named = s.array
        spoiled |= {
            a.name
            for a in n.uses_of(s)
            if isinstance(a, n.Var) and isinstance(a.type, ArrayType) and a != named
        }
    found = []
    for name, box in loops.loans:
        *outer, last = box
        kinds = {a.kind for a in arrays[name]}
        if (
            last == (axes - 1, 0, 0) and all(low == high for _, low, high in outer)
            and not any(axis == axes - 1 for axis, _, _ in outer)
            and kinds <= {"read", "store", "add", "take"} and name not in spoiled
        ):  # fmt: skip
            found.append((name, tuple((axis, low) for axis, low, _ in outer)))
    return tuple(found)


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
    if entry.threads is None or len(dim) != code.facts.axes or math.prod(dim) > _MOST:
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
