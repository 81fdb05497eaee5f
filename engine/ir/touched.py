"""Finds the arrays that a function or block reads and writes, through its calls."""

from __future__ import annotations

from engine.ir import nodes as n

# Names of arrays that are read, and of those that are written.
Touched = tuple[frozenset[str], frozenset[str]]


def read_params(fn: n.Function) -> frozenset[str]:
    """Array parameters with an element read by the function or what it calls."""
    return _of_function(fn, {})[0]


def written_params(fn: n.Function) -> frozenset[str]:
    """Array parameters with an element stored or atomically changed."""
    return _of_function(fn, {})[1]


def touched(block: n.Block, known: dict[int, Touched] | None = None) -> Touched:
    """Arrays that the statements of a block read, and that they write. known: of functions."""
    known = {} if known is None else known
    read: set[str] = set()
    written: set[str] = set()
    for s in n.walk(block):
        if isinstance(s, n.Load):
            read.add(s.array.name)
        elif isinstance(s, n.Store):
            written.add(s.array.name)
        elif isinstance(s, n.Atomic):
            written.add(s.array.name)
            if s.dst is not None:
                read.add(s.array.name)
        elif isinstance(s, n.Call):
            inner_read, inner_written = _of_function(s.func, known)
            for p, a in zip(s.func.params, s.args, strict=True):
                if isinstance(a, n.Var) and p.name in inner_read:
                    read.add(a.name)
                if isinstance(a, n.Var) and p.name in inner_written:
                    written.add(a.name)
    return frozenset(read), frozenset(written)


def _of_function(fn: n.Function, known: dict[int, Touched]) -> Touched:
    if fn.native is not None:
        native = fn.native
        return native.reads | native.updates, native.writes | native.updates
    if id(fn) not in known:
        known[id(fn)] = touched(fn.body, known)
    return known[id(fn)]
