"""Decides where each variable is declared: in the narrowest block that sees all its uses.

A temporary is normally declared by the statement that defines it. Adjoint code may
use it in a block that does not enclose the definition (the reverse sweep of a loop
uses what the forward sweep computed); such a variable is declared at the head of the
innermost block that holds the definition and all uses.

Blocks are numbered in the order in which a walk enters them: the function's own is 0,
then each statement's nested blocks, in source order.
"""

from __future__ import annotations

from engine.classes import dataclass
from engine.ir import nodes as n


@dataclass(frozen=True)
class Declarations:
    """`at_head[number]`: temporaries declared at the head of that block, in order.

    Temporaries of no list are declared where they are defined. `mutable` variables
    live in block 0 and start as zero.
    """

    mutable: tuple[n.Var, ...]
    at_head: dict[int, tuple[n.Var, ...]]
    hoisted: frozenset[n.Var]


class _Scan:
    """Walks a function once, noting in which blocks each variable occurs."""

    def __init__(self, fn: n.Function) -> None:
        self.params = set(fn.params)
        self.parent: list[int] = []
        self.depth: list[int] = []
        self.home: dict[n.Var, int] = {}  # block of the first occurrence
        self.common: dict[n.Var, int] = {}  # innermost block around all occurrences
        # Not simply "defined once, then used", as far as the text's order tells.
        self.irregular: set[n.Var] = set()
        self.mutable: dict[n.Var, None] = {}
        self.block(fn.body, self.enter(0))

    def enter(self, parent: int) -> int:
        self.depth.append(self.depth[parent] + 1 if self.parent else 0)
        self.parent.append(parent)
        return len(self.parent) - 1

    def block(self, block: n.Block, me: int) -> None:
        for s in block:
            if isinstance(s, n.While):
                # The condition is computed by the test, and the body sees what it made.
                test = self.enter(me)
                self.block(s.test, test)
                self.see(s.cond, test)
                self.block(s.body, self.enter(test))
                continue
            for a in n.uses_of(s):
                self.see(a, me)
            if isinstance(s, n.For):
                body = self.enter(me)
                self.see(s.var, body, defines=True)
                self.block(s.body, body)
                continue
            for b in n.blocks_of(s):
                self.block(b, self.enter(me))
            for d in n.defs_of(s):
                self.see(d, me, defines=True)

    def see(self, a: n.Atom, block: int, defines: bool = False) -> None:
        if not isinstance(a, n.Var) or a in self.params:
            return
        if a.mutable:
            self.mutable[a] = None
            return
        if defines == (a in self.home):
            self.irregular.add(a)
        self.home.setdefault(a, block)
        self.common[a] = self.meet(self.common.get(a, block), block)

    def meet(self, a: int, b: int) -> int:
        """The innermost block that encloses both."""
        while a != b:
            if self.depth[a] >= self.depth[b]:
                a = self.parent[a]
            else:
                b = self.parent[b]
        return a


def declarations(fn: n.Function) -> Declarations:
    """Where the variables of a function are declared (parameters left out)."""
    scan = _Scan(fn)
    heads: dict[int, list[n.Var]] = {}
    for v, block in scan.common.items():
        if v in scan.irregular:
            heads.setdefault(0, []).append(v)
        elif block != scan.home[v]:
            heads.setdefault(block, []).append(v)
    return Declarations(
        mutable=tuple(scan.mutable),
        at_head={k: tuple(v) for k, v in heads.items()},
        hoisted=frozenset(v for group in heads.values() for v in group),
    )
