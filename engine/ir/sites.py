"""The places of a kernel whose accesses can be watched at run time.

A kernel is watched for accesses outside of arrays, views, vectors and matrices (`bounds`), and
for what its threads do to each other's elements as well (`races`); or nothing is told, and no
memory is damaged all the same (`silent`). Its IR is that of the kernel as it is, so that all
that is known of the one holds for the other: what differs is the text that is generated, in
which each place has a number.
"""

from __future__ import annotations

from typing import Literal

from engine.classes import dataclass
from engine.diagnostics import Span
from engine.ir import nodes as n
from engine.lang.types import ArrayType, Type, shape_of

Access = Literal["load", "store", "atomic", "component", "view"]


@dataclass(frozen=True, slots=True)
class Place:
    """Code that accesses something.

    name: of the array or variable, empty where it has none. loaded: for each index, whether it
    is an element of an array of indices, in which a negative one does not count from the end.
    constant: of a store, whether it stores the same value in every thread. monotone: of an
    atomic, whether threads may well look at the element before, to see whether it is needed.
    """

    access: Access
    name: str
    span: Span
    loaded: tuple[bool, ...] = ()
    constant: bool = False
    monotone: bool = False


def indexes_unseen(f: n.Function) -> bool:
    """Whether native text gets arrays: what it accesses outside of them, nobody is told of."""
    return f.native is not None and any(isinstance(p.type, ArrayType) for p in f.params)


def indices(s: n.Let) -> tuple[n.Atom, ...]:
    """The indices of an operation that reads or replaces components; empty for all others."""
    if s.op in ("extract", "extract_row"):
        return s.args[1:]
    if s.op in ("insert", "insert_row"):
        return s.args[1:-1]
    return ()


def computed(index: tuple[n.Atom, ...]) -> bool:
    """Whether one of some indices is known only when the kernel runs."""
    return any(isinstance(a, n.Var) for a in index)


def placed(s: n.Let) -> bool:
    """Whether the components that an operation names are known, and there."""
    index = indices(s)
    return not index or all(
        isinstance(a, n.Const) and isinstance(a.value, int) and 0 <= a.value < size
        for a, size in zip(index, lengths(s.args[0].type, index), strict=True)
    )


def lengths(t: Type, index: tuple[n.Atom, ...]) -> tuple[int, ...]:
    """What indices into a vector or matrix have to keep below."""
    assert not isinstance(t, ArrayType)
    return shape_of(t)[: len(index)]


def places(fn: n.Function) -> tuple[dict[int, int], tuple[Place, ...]]:
    """The places of a kernel and all that it calls, and by the identity of statements the
    number of the first one of each.

    A load, store or atomic with a computed component has a further place for that.
    """
    numbers: dict[int, int] = {}
    found: list[Place] = []
    for f in (*n.callees(fn), fn):
        tables = {s.dst for s in n.walk(f.body) if isinstance(s, n.Load)}
        varying = _varying(f)
        for s in n.walk(f.body):
            new = _of(s, f, tables, varying)
            if new and id(s) not in numbers:
                numbers[id(s)] = len(found)
                found += new
    return numbers, tuple(found)


def _varying(f: n.Function) -> set[n.Atom]:
    """Variables that may have another value in another thread. Of called functions: all that
    follow from their parameters.
    """
    found: set[n.Atom] = set() if f.is_kernel else set(f.params)
    written = {s.array for s in n.walk(f.body) if isinstance(s, (n.Store, n.Atomic))}

    def visit(block: n.Block, apart: bool) -> None:
        for s in block:
            inner = apart
            if isinstance(s, (n.If, n.For, n.While)):
                inner = apart or not found.isdisjoint(n.uses_of(s))
            elif isinstance(s, n.Load) and s.array in written:
                found.add(s.dst)
            elif isinstance(s, (n.Call, n.Atomic)) or (
                isinstance(s, n.Let) and s.op in ("tid", "thread")
            ):
                found.update(n.defs_of(s))
            for d in n.defs_of(s):
                if (apart and d.mutable) or not found.isdisjoint(n.uses_of(s)):
                    found.add(d)
            for b in n.blocks_of(s):
                visit(b, inner)

    while True:
        before = len(found)
        visit(f.body, False)
        if len(found) == before:
            return found


def _of(s: n.Stmt, f: n.Function, tables: set[n.Var], varying: set[n.Atom]) -> list[Place]:
    if isinstance(s, (n.Load, n.Store, n.Atomic)):
        kind: Access = "load"
        if not isinstance(s, n.Load):
            kind = "store" if isinstance(s, n.Store) else "atomic"
        constant = isinstance(s, n.Store) and s.value not in varying
        loaded = tuple(a in tables for a in s.index)
        monotone = isinstance(s, n.Atomic) and s.kind in ("min", "max", "and", "or", "cas")
        out = [Place(kind, s.array.name, s.span, loaded, constant, monotone)]
        if computed(s.path):
            out.append(Place("component", s.array.name, s.span))
        return out
    if isinstance(s, n.Let):
        if s.op == "within":
            return [Place("view", _viewed(f, s.dst), s.span)]
        if computed(indices(s)):
            whole = s.args[0]
            named = isinstance(whole, n.Var) and (whole.mutable or whole in f.params)
            return [Place("component", _name(whole) if named else "", s.span)]
    return []


def _viewed(f: n.Function, index: n.Var) -> str:
    """The name of what a place along a dimension of a view is used to access."""
    made: set[n.Atom] = {index}
    for s in n.walk(f.body):
        if isinstance(s, (n.Load, n.Store, n.Atomic)) and made.intersection(s.index):
            return s.array.name
        if isinstance(s, n.Let) and made.intersection(s.args):
            if made.intersection(indices(s)):
                return _name(s.args[0])
            made.add(s.dst)
    return ""


def _name(a: n.Atom) -> str:
    return a.name if isinstance(a, n.Var) else ""
