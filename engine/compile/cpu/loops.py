"""Assumptions that the loop over a kernel's threads may make when arrays share no memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.ad.threads import Access, collect
from engine.ad.threads.affine import Axis, Form, Need, Value
from engine.ad.unroll import write_out
from engine.codegen import cpp
from engine.codegen.facts import facts_of
from engine.codegen.loops import Loops
from engine.codegen.outline import is_large, weight_of
from engine.codegen.sums import STEP, Place, even
from engine.ir import nodes as n
from engine.lang.types import ArrayType, is_float, is_integer, scalar_of

MEMORY = 1 << 14  # bytes of lanes, which are to stay near
PLACES = 12  # of one array; an index is compared with each
HALO = 16  # elements between those of one thread, which get copied too
_MOST = 2**31 - 65536  # threads along an axis, which entry points see to (`eng::fits`)


def written(fn: n.Function) -> n.Function:
    """A kernel as its text is made of: short loops through local values are written out.

    Adjoints are as they are (`engine.ad.reverse` begins with what is written out), and so is
    what is watched, whose places have numbers. What would become so long that compilers see less
    in it than in its loops stays, too.
    """
    if fn.watch or fn.adjoints:
        return fn
    out = write_out(fn)
    grows = weight_of(out) > 2 * weight_of(fn)
    return fn if grows and is_large(out) and not is_large(fn) else out


def text(fn: n.Function, symbol: str, lines: bool = False) -> str:
    """The C++ text of a kernel. See `engine.codegen.cpp.emit`."""
    fn = written(fn)
    return cpp.emit(fn, symbol, lines, loops_of(fn))


def loops_of(fn: n.Function) -> Loops:
    """What is known of a kernel's threads."""
    facts = facts_of(fn)[id(fn)]
    if not facts.touched or fn.watch or is_large(fn):
        return cpp.PLAIN
    found = collect(fn)
    if not found.known or found.stops:
        return cpp.PLAIN
    arrays: dict[str, list[Access]] = {}
    for a in found.accesses:
        arrays.setdefault(a.array, []).append(a)
    alone = frozenset(k for k, some in arrays.items() if alone_in(some, facts.axes))
    free = all(k in alone or {a.kind for a in some} in ({"read"}, {"add"})
               for k, some in arrays.items())  # fmt: skip
    sums, lanes = _sums(fn, arrays, facts.axes)
    loans = tuple((k, box) for k, some in arrays.items()
                  if (k in alone or {a.kind for a in some} == {"read"})
                  and (box := box_of(some)))  # fmt: skip
    return Loops(free, alone & facts.written if free else frozenset(), sums, lanes, loans)


def box_of(accesses: Sequence[Access]) -> tuple[tuple[int, int, int], ...]:
    """What a thread touches of an array, around its coordinates; nothing where it may be more."""
    places = [tuple(map(place_of, a.index)) for a in accesses]
    out: list[tuple[int, int, int]] = []
    for some in zip(*places, strict=True):
        known = [x for x in some if x is not None]
        axes, added = {axis for axis, _ in known}, [by for _, by in known]
        if len(known) < len(some) or len(axes) > 1 or max(added) - min(added) > HALO:
            return ()
        out.append((axes.pop(), min(added), max(added)))
    named = [axis for axis, _, _ in out if axis >= 0]
    return tuple(out) if named and len(set(named)) == len(named) else ()


def _sums(
    fn: n.Function, arrays: Mapping[str, Sequence[Access]], axes: int
) -> tuple[tuple[tuple[str, tuple[Place, ...]], ...], int]:
    """The arrays that threads only add to by lanes, and how many lanes."""
    out, size = [], 0
    for p in fn.params:
        places = _added(arrays.get(p.name, ()), axes)
        if places and isinstance(p.type, ArrayType) and _is_summed(p.type):
            out.append((p.name, places))
            size += len(places) * p.type.element.size
    counts = (STEP,) if even(dict(out), axes) else (256, 64)
    lanes = next((some for some in counts if some * size <= MEMORY), 0)
    return (tuple(out), lanes) if out and lanes else ((), 0)


def _is_summed(t: ArrayType) -> bool:
    s = scalar_of(t)
    return is_integer(s) or (is_float(s) and s.bits >= 32)


def _added(accesses: Sequence[Access], axes: int) -> tuple[Place, ...]:
    """Where threads add to an array; none if they do otherwise, or need no lanes."""
    if not axes or {a.kind for a in accesses} != {"add"}:
        return ()
    found: dict[Place, None] = {}
    for a in accesses:
        place = tuple(map(place_of, a.index))
        known = tuple(x for x in place if x is not None)
        if len(known) < len(place) or any(axis == axes - 1 for axis, _ in known[:-1]):
            return ()
        found[known] = None
    places = tuple(found)
    one_each = len(places) == 1 and places[0][-1][0] == axes - 1
    return () if one_each or len(places) > PLACES else places


def alone_in(accesses: Sequence[Access], axes: int) -> bool:
    """Whether each thread has an element of its own, whose index tells the thread."""
    index = accesses[0].index
    if any(a.index != index or a.kind == "native" for a in accesses):
        return False
    found = {None if x is None else x[0] for x in map(place_of, index)}
    return axes > 0 and None not in found and found.issuperset(range(axes))


def place_of(v: Value | None) -> tuple[int, int] | None:
    """An index as a coordinate of the thread, and a number to be added; None if it is otherwise."""
    return None if v is None or not all(map(_holds, v.needs)) else _place(v.form)


def _place(f: Form) -> tuple[int, int] | None:
    """A form as a coordinate of the thread and a number to be added to it, or -1 and a number."""
    by = f.constant.number
    if by is None:
        return None
    if not f.terms:
        return -1, by
    (axis, factor), *more = f.terms
    if more or not isinstance(axis, Axis) or factor.number != 1:
        return None
    return axis.dim, by


def _holds(need: Need) -> bool:
    """Whether a need is met whatever the launch is."""
    found = _place(need.form)
    if found is None:
        return False
    axis, by = found
    return need.low <= by and by + (_MOST if axis >= 0 else 0) <= need.high
