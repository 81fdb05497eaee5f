"""Finds elements that threads of a scatter can prefetch.

Threads that add to elements at indices from an array wait for memory most of their time, and
compilers make no vector code of them. The indices of threads to come are known, so what stands
there is asked for some threads before it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.classes import dataclass
from engine.ir import nodes as n
from engine.lang.types import is_integer

AHEAD = 32  # threads
_SAME = ("copy", "wrap_index", "cast")  # operations that leave an index what it is, mostly


@dataclass(frozen=True, eq=False)
class Ahead:
    """What depends on an index that is loaded. axis: of the loaded array, that the thread counts.

    arrays: those with an element at that index.
    """

    axis: int
    arrays: tuple[n.Var, ...]


def ahead(fn: n.Function) -> Mapping[int, Ahead]:
    """For loads of indices by a kernel (by identity), what may be asked for."""
    thread, origin = None, dict[n.Var, n.Load]()
    found: dict[int, dict[n.Var, None]] = {}
    loads: dict[int, n.Load] = {}
    scatters: set[int] = set()
    for s in fn.body if fn.is_kernel else ():
        if isinstance(s, n.Let) and s.op == "tid" and _is_only(s):
            thread = s.dst
        elif isinstance(s, n.Let) and s.op in _SAME and s.args[0] in origin:
            origin[s.dst] = origin[s.args[0]]  # type: ignore[index]
        elif isinstance(s, n.Load) and is_integer(s.dst.type) and not s.path and thread in s.index:
            if all(isinstance(a, n.Const) or a == thread for a in s.index):
                origin[s.dst] = loads[id(s)] = s
        if isinstance(s, (n.Load, n.Store, n.Atomic)) and s.index[0] in origin:
            load = origin[s.index[0]]  # type: ignore[index]
            found.setdefault(id(load), {})[s.array] = None
            if isinstance(s, n.Atomic):
                scatters.add(id(load))
    return {
        k: Ahead(loads[k].index.index(thread), tuple(arrays))
        for k, arrays in found.items() if k in scatters
    }  # fmt: skip


def _is_only(s: n.Let) -> bool:
    """Whether a coordinate is that of a grid of one axis."""
    return all(isinstance(a, n.Const) and a.value == k for k, a in enumerate(s.args))
