"""What the loop over a kernel's threads may do, of launches whose arrays share no memory."""

from __future__ import annotations

from collections.abc import Sequence

from engine.ad.threads import Access, collect
from engine.ad.threads.affine import Axis, Form, Need, Value
from engine.codegen import cpp
from engine.codegen.facts import facts_of
from engine.codegen.loops import Loops
from engine.codegen.outline import is_large
from engine.ir import nodes as n

_MOST = 2**31 - 65536  # threads along an axis, which entry points see to (`eng::fits`)


def text(fn: n.Function, symbol: str, lines: bool = False) -> str:
    """The C++ text of a kernel. See `engine.codegen.cpp.emit`."""
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
    alone = frozenset(k for k, some in arrays.items() if _alone(some, facts.axes))
    free = all(k in alone or {a.kind for a in some} == {"read"} for k, some in arrays.items())
    return Loops(free, alone & facts.written if free else frozenset())


def _alone(accesses: Sequence[Access], axes: int) -> bool:
    """Whether each thread has an element of its own, whose index tells the thread."""
    index = accesses[0].index
    if any(a.index != index or a.kind == "native" for a in accesses):
        return False
    found = {_axis(v) for v in index}
    return axes > 0 and None not in found and found.issuperset(range(axes))


def _axis(v: Value | None) -> int | None:
    """The axis of the grid along which an index goes; -1 if it is a number, None if unknown."""
    if v is None or not all(map(_holds, v.needs)):
        return None
    found = _place(v.form)
    return None if found is None else found[0]


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
