"""Cuts large functions into pieces, so that compile time stays linear in their length.

Compilers are fast with functions of some hundred operations; with thousands in one they take
minutes. A large function becomes a frame, a struct with its variables, and functions that run
parts of its statements on the frame. What is used in one piece alone stays a local variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from engine.classes import dataclass
from engine.codegen.facts import SAVES
from engine.ir import nodes as n
from engine.lang.types import ArrayType, shape_of

# Scalar operations: of a function that is cut, and of a piece.
LARGE = 1500
PIECE = 150


def weight_of(fn: n.Function) -> int:
    """The weight of a kernel and of what it calls."""
    return sum(weight(f.body) for f in (*n.callees(fn), fn))


def expanded_of(fn: n.Function) -> int:
    """The weight of a kernel where each call is what it calls."""
    weights: dict[int, int] = {}
    for f in (*n.callees(fn), fn):
        calls = sum(weights[id(s.func)] for s in n.walk(f.body) if isinstance(s, n.Call))
        weights[id(f)] = weight(f.body) + calls
    return weights[id(fn)]


def is_large(fn: n.Function) -> bool:
    """Whether a kernel, with what it calls, is so long that compile time is what counts."""
    return weight_of(fn) > LARGE


def weight(block: n.Block) -> int:
    """About how many scalar operations a block has, nested blocks included."""
    return sum(_own_weight(s) for s in n.walk(block))


def _own_weight(s: n.Stmt) -> int:
    out = 1
    if isinstance(s, n.Let) and s.op == "extract":
        return out
    for a in (*n.defs_of(s), *n.uses_of(s)):
        if not isinstance(a.type, ArrayType) and (shape := shape_of(a.type)):
            size = 1
            for extent in shape:
                size *= extent
            out = max(out, size)
    return out


@dataclass(frozen=True, eq=False)
class Piece:
    """Statements that become a function. leaves: it may end the code around it."""

    number: int
    stmts: n.Block
    leaves: bool


Part = n.Stmt | Piece


@dataclass
class Outline:
    """How a function is cut.

    parts: by the identity of a block, what it becomes; blocks that stay as they are, are not
    there. frame: variables (parameters, too) that more than one piece knows. locals: those of
    one piece, by its number; 0 is the function itself.
    """

    parts: dict[int, tuple[Part, ...]] = field(default_factory=dict)
    frame: dict[n.Var, None] = field(default_factory=dict)
    locals: dict[int, dict[n.Var, None]] = field(default_factory=dict)


def outline(fn: n.Function) -> Outline | None:
    """How to cut a function; None where it is small enough."""
    if weight(fn.body) <= LARGE:
        return None
    return _Cutter(fn).made


class _Cutter:
    def __init__(self, fn: n.Function) -> None:
        self.made = Outline()
        self.count = 0
        self.weights: dict[int, int] = {}
        self.homes: dict[n.Var, int] = dict.fromkeys(fn.params, 0)
        self.measure(fn.body)
        self.block(fn.body, 0)
        for v, home in self.homes.items():
            if v not in self.made.frame and v not in fn.params:
                self.made.locals.setdefault(home, {})[v] = None

    def measure(self, block: n.Block) -> int:
        total = 0
        for s in block:
            inner = sum(self.measure(b) for b in n.blocks_of(s))
            self.weights[id(s)] = _own_weight(s) + inner
            total += self.weights[id(s)]
        return total

    def block(self, block: n.Block, home: int) -> None:
        """Cuts a block of piece `home`, and notes which variables its statements name."""
        if sum(self.weights[id(s)] for s in block) <= PIECE:
            self.note(block, home)
            return
        parts: list[Part] = []
        for group in self.groups(block):
            if len(group) == 1 and group[0].NESTED and self.weights[id(group[0])] > PIECE:
                parts.append(group[0])
                self.see(group[0], home)
                for inner in n.blocks_of(group[0]):
                    self.block(inner, home)
            else:
                self.count += 1
                piece = Piece(self.count, group, _may_leave(group))
                parts.append(piece)
                self.note(group, piece.number)
        self.made.parts[id(block)] = tuple(parts)

    def groups(self, block: n.Block) -> Iterator[n.Block]:
        """Runs of statements of some length; heavy statements alone."""
        run: list[n.Stmt] = []
        size = 0
        for s in block:
            more = self.weights[id(s)]
            if run and size + more > PIECE:
                yield tuple(run)
                run, size = [], 0
            run.append(s)
            size += more
        if run:
            yield tuple(run)

    def note(self, block: n.Block, home: int) -> None:
        for s in n.walk(block):
            self.see(s, home)

    def see(self, s: n.Stmt, home: int) -> None:
        for a in (*n.defs_of(s), *n.uses_of(s)):
            if isinstance(a, n.Var):
                # What is mutable keeps its value where a piece runs again.
                if self.homes.setdefault(a, home) != home or a.mutable:
                    self.made.frame[a] = None


def _may_leave(block: n.Block, loops: bool = False) -> bool:
    """Whether a block may end otherwise than by its end: by a jump or an error."""
    for s in block:
        if isinstance(s, (n.Return, n.Call, *SAVES)) or (s.LEAVES and not loops):
            return True
        inside = loops or isinstance(s, (n.For, n.While))
        if any(_may_leave(b, inside) for b in n.blocks_of(s)):
            return True
    return False
