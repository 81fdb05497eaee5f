"""Random well-typed programs, made from IR: nested control flow over variables and memory.

A program is a kernel of DIM threads over three arrays that every thread reads and
writes. It uses every operation of the table, calls functions that loop and return
early, and picks components and elements by indices that it computes.
"""

from __future__ import annotations

import random

import engine.builtins  # noqa: F401 (fills the operation table)
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.lang.types import (
    BOOL,
    INT32,
    UINT64,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    VectorType,
)
from tests.property.integers import INTEGERS, drawn_range
from tests.property.operations import HELD, M22, V3, F, apply, choices, squash

SIZE = 4  # elements of each array; indices are taken modulo this
DIM = 2  # threads
ARRAYS = ("a", "b", "c")


class Body:
    """Writes one function or kernel. Values stay bounded, so that differences are accurate."""

    def __init__(self, r: random.Random, names: Names, budget: int) -> None:
        self.r = r
        self.names = names
        self.budget = budget
        self.arrays = [n.Var(a, ArrayType(F, 1)) for a in ARRAYS]
        self.count = n.Var("m", INT32)
        kinds: list[Type] = [F, F, F, V3, V3, M22]
        self.values = [n.Var(f"v{i}", t, mutable=True) for i, t in enumerate(kinds)]
        self.whole = n.Var("q", INT32, mutable=True)
        self.functions: list[n.Function] = []
        self.returns: list[n.Atom] | None = None  # a kernel returns nothing

    # ---- atoms

    def of(self, t: Type) -> n.Var:
        return self.r.choice([v for v in self.values if v.type == t])

    def index(self, b: Builder, size: int = SIZE) -> n.Atom:
        """An index below `size`: a constant, a variable, or the thread's."""
        if self.r.random() < 0.6:
            return const(self.r.randrange(size), INT32)
        start: n.Atom = self.whole
        if self.r.random() < 0.5:
            start = b.op("tid", const(0, INT32), const(1, INT32))
        moved = b.op("add", start, const(self.r.randrange(3), INT32))
        return b.op("mod", moved, const(size, INT32))

    def load(self, b: Builder) -> n.Atom:
        return b.load(self.r.choice(self.arrays), [self.index(b)], [], F)

    def atom(self, b: Builder, t: Type = F) -> n.Atom:
        kind = self.r.random()
        if t not in HELD:
            assert isinstance(t, (VectorType, MatrixType))
            size = t.length if isinstance(t, VectorType) else t.rows * t.cols
            return b.op("construct", *(self.of(F) for _ in range(size)), result=t)
        if t != F or kind < 0.6:
            return self.of(t)
        if kind < 0.85:
            return b.op("sin", self.load(b))
        return const(self.r.choice([0.5, -1.0, 0.25, 1.0]), F)

    def value(self, b: Builder, t: Type = F) -> n.Atom:
        """A bounded expression of one operation."""
        kind = self.r.random()
        if t == F and kind < 0.3:  # cheap and common
            op = self.r.choice(["add", "mul", "mul", "sub"])
            return b.op("sin", b.op(op, self.atom(b), self.atom(b)))
        if t == F and kind < 0.4:
            return b.op("extract", self.of(V3), self.index(b, 3))
        if t == V3 and kind < 0.3:
            return b.op("insert", self.of(V3), self.index(b, 3), self.value(b))
        if t == V3 and kind < 0.45:
            return b.op("construct", *(self.atom(b) for _ in range(3)), result=V3)
        if kind < 0.5:
            return b.op("select", self.cond(b), self.atom(b, t), self.atom(b, t))
        choice = self.r.choice(choices()[t])
        return apply(b, choice, [self.atom(b, s) for s in choice.types])

    def cond(self, b: Builder) -> n.Atom:
        level = const(self.r.uniform(-0.9, 0.9), F)
        return b.op(self.r.choice(["lt", "gt"]), self.atom(b), level)

    # ---- statements

    def start(self, b: Builder) -> None:
        for v in self.values:
            if v.type == F:
                b.set(v, b.op("sin", self.load(b)))
            else:
                size = 3 if v.type == V3 else 4
                parts = [b.op("sin", self.load(b)) for _ in range(size)]
                b.set(v, b.op("construct", *parts, result=v.type))

    def block(self, b: Builder, depth: int, in_loop: bool) -> None:
        for _ in range(self.r.randint(1, 4)):
            if self.budget <= 0:
                return
            self.budget -= 1
            self.stmt(b, depth, in_loop)

    def assign(self, b: Builder) -> None:
        v = self.r.choice(self.values)
        b.set(v, self.value(b, v.type))

    def stmt(self, b: Builder, depth: int, in_loop: bool) -> None:
        kind = self.r.random()
        if depth < 3 and kind < 0.14:
            self.branch(b, depth, in_loop)
        elif depth < 3 and kind < 0.28:
            self.counted(b, depth)
        elif depth < 3 and kind < 0.36:
            self.whiled(b, depth)
        elif kind < 0.44 and depth > 0:
            inner = b.child()
            self.assign(inner)
            self.leave(inner, in_loop)
            b.add(n.If(self.cond(b), inner.block()))
        elif kind < 0.60:
            v = self.value(b)
            b.add(n.Store(self.r.choice(self.arrays), (self.index(b),), v))
        elif kind < 0.70:
            self.atomic(b)
        elif kind < 0.75:
            op = self.r.choice(["mul", "floordiv", "mod"])
            moved = b.op(op, self.whole, const(self.r.randint(2, 3), INT32))
            b.set(self.whole, b.op("add", moved, const(self.r.randrange(3), INT32)))
            b.set(self.whole, b.op("mod", self.whole, const(7, INT32)))
        elif kind < 0.82 and self.functions:
            self.call(b)
        else:
            self.assign(b)

    def leave(self, b: Builder, in_loop: bool) -> None:
        exits: list[str] = ["return"]
        if in_loop:
            exits += ["break", "continue"] * 3
        way = self.r.choice(exits)
        if way == "return":
            self.finish(b)
        else:
            b.add(n.Break() if way == "break" else n.Continue())

    def finish(self, b: Builder) -> None:
        if self.returns is None:
            b.add(n.Return())
        else:
            b.add(n.Return(tuple(self.atom(b, a.type) for a in self.returns)))

    def atomic(self, b: Builder) -> None:
        dst = b.temp(F, "old") if self.r.random() < 0.5 else None
        v = self.value(b)
        kind: n.AtomicKind = self.r.choice(["add", "sub", "min", "max"])
        b.add(n.Atomic(dst, kind, self.r.choice(self.arrays), (self.index(b),), v))
        if dst is not None:
            b.set(self.of(F), b.op("sin", dst))

    def call(self, b: Builder) -> None:
        f = self.r.choice(self.functions)
        dsts = tuple(b.temp(t, "got") for t in f.results)
        args = [p if isinstance(p.type, ArrayType) else self.argument(b, p) for p in f.params]
        b.add(n.Call(dsts, f, tuple(args)))
        for d in dsts:
            b.set(self.of(d.type), squash(b, d))

    def argument(self, b: Builder, p: n.Var) -> n.Atom:
        return self.whole if p.type == INT32 else self.atom(b, p.type)

    def branch(self, b: Builder, depth: int, in_loop: bool) -> None:
        cond = self.cond(b)
        then, orelse = b.child(), b.child()
        self.block(then, depth + 1, in_loop)
        if self.r.random() < 0.6:
            self.block(orelse, depth + 1, in_loop)
        b.add(n.If(cond, then.block(), orelse.block()))

    def counted(self, b: Builder, depth: int) -> None:
        t = self.r.choice(INTEGERS) if self.r.random() < 0.6 else INT32
        body = b.child()
        i = b.temp(t, "i")
        wide = body.op("cast", i, result=UINT64)
        slot = body.op("cast", body.op("mod", wide, const(SIZE, UINT64)), result=INT32)
        x = body.load(self.r.choice(self.arrays), [slot], [], F)
        if self.r.random() < 0.3:
            x = body.op("mul", x, body.op("sin", body.op("cast", i, result=F)))
        body.set(self.of(F), body.op("sin", x))
        if self.r.random() < 0.3:
            body.set(self.whole, slot)
        self.block(body, depth + 1, in_loop=True)
        start, end, step = self.bounds(b, t)
        b.add(n.For(i, start, end, step, body.block()))

    def bounds(self, b: Builder, t: ScalarType) -> tuple[n.Atom, n.Atom, n.Atom]:
        """The bounds of a loop, known while compiling or not."""
        if t == INT32 and self.r.random() < 0.5:
            return const(0, t), self.count, const(1, t)
        found: list[n.Atom] = [const(k, t) for k in drawn_range(self.r, t)]
        for k in range(3):
            if self.r.random() < 0.3:
                nothing = b.op("cast", b.op("sub", self.count, self.count), result=t)
                found[k] = b.op("add", found[k], nothing)
        return found[0], found[1], found[2]

    def whiled(self, b: Builder, depth: int) -> None:
        k = b.variable(INT32, "k")
        b.set(k, const(0, INT32))
        test = b.child()
        again = test.variable(BOOL, "again")
        bound = test.op("lt", k, self.count)
        test.set(again, bound)
        inner = test.child()
        inner.set(again, self.cond(inner))
        test.add(n.If(bound, inner.block()))
        body = b.child()
        # The counter moves first, so that `continue` cannot loop for ever.
        body.set(k, body.op("add", k, const(1, INT32)))
        self.block(body, depth + 1, in_loop=True)
        b.add(n.While(test.block(), again, body.block()))


TAKEN = (*ARRAYS, "m", "q", "x", "u", *(f"v{i}" for i in range(6)))


def _function(r: random.Random, name: str, callees: list[n.Function]) -> n.Function:
    """A function of the arrays, a number, a vector and an integer; it may change the arrays."""
    body = Body(r, Names(TAKEN), 8)
    body.functions = callees
    x, u, k = n.Var("x", F), n.Var("u", V3), n.Var("m", INT32)
    b = Builder(body.names)
    body.start(b)
    b.set(body.values[0], x)
    b.set(body.values[3], u)
    body.returns = [x] if r.random() < 0.5 else [x, u]
    results = tuple(a.type for a in body.returns)
    # `m`, the bound of its loops, is small whatever is passed.
    b.set(body.whole, b.op("mod", k, const(3, INT32)))
    body.count = body.whole
    body.block(b, depth=0, in_loop=False)
    body.block(b, depth=1, in_loop=False)
    body.finish(b)
    return n.Function(name, (*body.arrays, x, u, k), results, b.block())  # type: ignore[arg-type]


def program(seed: int) -> n.Function:
    """The program of a seed: a kernel over arrays a, b, c of SIZE float64 and an int m."""
    r = random.Random(seed)
    functions: list[n.Function] = []
    for k in range(r.choice([0, 0, 1, 2])):
        functions.append(_function(r, f"f{k}", list(functions)))
    body = Body(r, Names(TAKEN), 20)
    body.functions = functions
    b = Builder(body.names)
    body.start(b)
    body.block(b, depth=0, in_loop=False)
    for i, v in enumerate(body.values[:3]):
        b.add(n.Store(body.arrays[2], (const(i, INT32),), v))
    for v in body.values[3:5]:
        total = b.op("dot", v, v)
        b.add(n.Atomic(None, "add", body.arrays[1], (const(3, INT32),), total))
    return n.Function("program", (*body.arrays, body.count), (), b.block(), is_kernel=True)
