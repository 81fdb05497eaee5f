"""Finds which arrays of a kernel depend on which, and where a derivative ends on the way.

Conditions do not count as a way: what a branch decides is decided, and has no slope.
"""

from __future__ import annotations

from engine.classes import dataclass
from engine.diagnostics import Span
from engine.ir import nodes as n
from engine.ir.ops import OPS, NoDerivative
from engine.lang.types import BOOL, ArrayType, is_float, scalar_of


@dataclass(frozen=True, slots=True)
class Cut:
    """An operation of floats that has no derivative, and its place."""

    operation: str
    span: Span


@dataclass(frozen=True, slots=True)
class Flow:
    """One array depends on another. smooth: by a way that a derivative takes.

    cuts: where it is not, the operations at which derivatives end.
    """

    smooth: bool
    cuts: tuple[Cut, ...] = ()


# A variable, or an array by its name (what it holds before or after the kernel).
_Node = n.Var | str


class _Graph:
    def __init__(self, fn: n.Function) -> None:
        self.smooth: dict[_Node, set[_Node]] = {}
        self.all: dict[_Node, set[_Node]] = {}
        self.cuts: list[tuple[n.Var, n.Var, Cut]] = []
        for s in n.walk(fn.body):
            self._add(s)

    def _add(self, s: n.Stmt) -> None:
        if isinstance(s, n.Let):
            smooth = not isinstance(OPS[s.op].derivative, NoDerivative)
            for a in s.args:
                self._link(a, s.dst, smooth)
                flat = not (smooth and _float(s.dst)) and not _bool(s.dst)
                if flat and isinstance(a, n.Var) and _float(a):
                    self.cuts.append((a, s.dst, Cut(s.op, s.span)))
        elif isinstance(s, n.Set):
            self._link(s.value, s.dst, True)
        elif isinstance(s, n.Load):
            self._link(s.array.name, s.dst, True)
            for a in s.index:
                self._link(a, s.dst, False)
        elif isinstance(s, (n.Store, n.Atomic)):
            self._link(s.value, s.array.name, True)
            for a in s.index:
                self._link(a, s.array.name, False)
            if isinstance(s, n.Atomic) and s.dst is not None:
                self._link(s.array.name, s.dst, True)
        elif isinstance(s, n.Call):
            # Of the user's own adjoint, or C++: every way may be smooth.
            ends: list[n.Atom | str] = [
                a.name if isinstance(a, n.Var) and isinstance(a.type, ArrayType) else a
                for a in s.args
            ]
            into: list[_Node] = [*s.dsts, *(e for e in ends if isinstance(e, str))]
            for end in ends:
                for to in into:
                    self._link(end, to, True)

    def _link(self, a: n.Atom | str, b: _Node, smooth: bool) -> None:
        if isinstance(a, n.Const) or _bool(a) or _bool(b):
            return
        self.all.setdefault(a, set()).add(b)
        if smooth and _float(a) and _float(b):
            self.smooth.setdefault(a, set()).add(b)


def flows(fn: n.Function) -> dict[tuple[str, str], Flow]:
    """Of a prepared kernel: for each array (by name) and each that it writes, what flows.

    Pairs between which nothing flows are left out.
    """
    graph = _Graph(fn)
    written = {s.array.name for s in n.walk(fn.body) if isinstance(s, (n.Store, n.Atomic))}
    written |= {
        a.name for s in n.walk(fn.body) if isinstance(s, n.Call) for a in s.args
        if isinstance(a, n.Var) and isinstance(a.type, ArrayType)
    }  # fmt: skip
    back = _reversed(graph.all)
    ends = {name: _reach(name, back) for name in written}
    out = {}
    for p in fn.params:
        if not isinstance(p.type, ArrayType):
            continue
        smooth, reached = _reach(p.name, graph.smooth), _reach(p.name, graph.all)
        for name in written & reached:
            if name in smooth:
                out[p.name, name] = Flow(True)
                continue
            cuts = {c for a, b, c in graph.cuts if a in smooth and b in ends[name]}
            ordered = sorted(cuts, key=lambda c: (c.span.line, c.span.col, c.operation))
            out[p.name, name] = Flow(False, tuple(ordered))
    return out


def _reach(start: _Node, edges: dict[_Node, set[_Node]]) -> set[_Node]:
    """What follows a node; itself only where a way leads back."""
    seen: set[_Node] = set()
    todo = [start]
    while todo:
        for b in edges.get(todo.pop(), ()):
            if b not in seen:
                seen.add(b)
                todo.append(b)
    return seen


def _reversed(edges: dict[_Node, set[_Node]]) -> dict[_Node, set[_Node]]:
    out: dict[_Node, set[_Node]] = {}
    for a, some in edges.items():
        for b in some:
            out.setdefault(b, set()).add(a)
    return out


def _float(a: n.Atom | str) -> bool:
    """Arrays may hold anything: what they hold is told by what is loaded and stored."""
    return isinstance(a, str) or is_float(a.type)


def _bool(a: n.Atom | str) -> bool:
    return not isinstance(a, str) and _scalar(a) == BOOL


def _scalar(a: n.Atom) -> object:
    return None if isinstance(a.type, ArrayType) else scalar_of(a.type)
