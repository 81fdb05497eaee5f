"""Elements of arrays that consecutive threads keep in registers: see `engine.codegen.apart`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from engine.ad.threads import Access
from engine.codegen.apart import WIDE, Around
from engine.codegen.loops import Loops
from engine.codegen.sums import Place
from engine.compile.cpu.loops import box_of, place_of
from engine.ir import nodes as n
from engine.lang.types import FLOAT32, ArrayType

_PLAIN = ("add", "sub")
_MOST = 40  # numbers of an array that threads in a row add to
_BOX = 512  # those of the box around them, with all that nothing is added to, at most


def can_add_several(arch: str) -> bool:
    """Whether a GPU adds several floats to memory by one instruction."""
    number = "".join(filter(str.isdigit, arch))
    return bool(number) and int(number) >= 90


def free_of(fn: n.Function, run: Sequence[n.Stmt]) -> set[str]:
    """The arrays of which a kernel needs elements alone, and to which it does what can be done to
    registers, all of it in what threads run.
    """
    touched, runs, spoiled = Counter[str](), Counter[str](), set[str]()
    for s in n.walk(fn.body):
        if isinstance(s, n.Let) and s.op == "shape":
            continue
        named = _element_of(s)
        if named is not None:
            touched[named.name] += 1
        spoiled |= {
            a.name for a in n.uses_of(s)
            if isinstance(a, n.Var) and isinstance(a.type, ArrayType) and a != named
        }  # fmt: skip
    runs.update(named.name for s in run if (named := _element_of(s)) is not None)
    return {k for k, count in touched.items() if runs[k] == count and k not in spoiled}


def _element_of(s: n.Stmt) -> n.Var | None:
    if isinstance(s, (n.Load, n.Store)) or (isinstance(s, n.Atomic) and s.kind in _PLAIN):
        return s.array
    return None


def rows_of(
    loops: Loops, arrays: Mapping[str, Sequence[Access]], axes: int
) -> tuple[tuple[str, Place], ...]:
    """The arrays of which each thread touches one element, that of its last coordinate."""
    found = []
    for name, box in loops.loans:
        if name not in arrays:
            continue
        *outer, last = box
        kinds = {a.kind for a in arrays[name]}
        if (
            last == (axes - 1, 0, 0) and all(low == high for _, low, high in outer)
            and kinds <= {"read", "store", "add", "take"}
        ):  # fmt: skip
            found.append((name, tuple((axis, low) for axis, low, _ in outer)))
    return tuple(found)


def around_of(
    fn: n.Function, arrays: Mapping[str, Sequence[Access]], axes: int
) -> tuple[tuple[str, Around], ...]:
    """The arrays of floats to which threads only add, near their own coordinates."""
    types = {p.name: p.type for p in fn.params}
    found = []
    for name, some in arrays.items():
        kind = types[name]
        assert isinstance(kind, ArrayType)
        if kind.element != FLOAT32 or {a.kind for a in some} != {"add"}:
            continue
        box = box_of(some)
        if not box or box[-1][0] != axes - 1:
            continue
        ends: dict[tuple[int, ...], list[int]] = {}
        for a in some:
            *outer, last = (place for x in a.index if (place := place_of(x)))
            ends.setdefault(tuple(by for _, by in outer), []).append(last[1])
        places = tuple((outer, min(by), max(by)) for outer, by in ends.items())
        # Nothing is added to elements between that no thread means, not even 0: devices flush them.
        if any(b - a > WIDE for by in ends.values() for a, b in pairwise(sorted(by))):
            continue
        numbers = sum(WIDE + high - low for _, low, high in places)
        if numbers <= _MOST and math.prod(WIDE + high - low for _, low, high in box) <= _BOX:
            found.append((name, Around(box, places)))
    return tuple(found)
