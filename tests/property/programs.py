"""Random well-typed programs, made from IR: nested control flow over variables and memory."""

from __future__ import annotations

import random

import engine.builtins  # noqa: F401 (fills the operation table)
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.lang.types import BOOL, FLOAT64, INT32, ArrayType

SIZE = 4  # elements of each array; indices are taken modulo this
ARRAYS = ("a", "b", "c")


class Generator:
    """Makes one program from a seed. Values stay bounded, so that differences are accurate."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.names = Names([*ARRAYS, "m"])
        self.arrays = [n.Var(a, ArrayType(FLOAT64, 1)) for a in ARRAYS]
        self.count = n.Var("m", INT32)
        self.floats = [n.Var(f"v{i}", FLOAT64, mutable=True) for i in range(3)]
        self.budget = 24

    def program(self) -> n.Function:
        b = Builder(self.names)
        for v in self.floats:
            b.set(v, self.load(b))
        self.block(b, depth=0, in_loop=False)
        for i, v in enumerate(self.floats):
            b.add(n.Store(self.arrays[2], (const(i, INT32),), v))
        return n.Function("program", (*self.arrays, self.count), (), b.block(), is_kernel=True)

    def index(self, b: Builder) -> n.Atom:
        return const(self.r.randrange(SIZE), INT32)

    def load(self, b: Builder) -> n.Atom:
        return b.load(self.r.choice(self.arrays), [self.index(b)], [], FLOAT64)

    def atom(self, b: Builder) -> n.Atom:
        kind = self.r.random()
        if kind < 0.6:
            return self.r.choice(self.floats)
        if kind < 0.85:
            return self.load(b)
        return const(self.r.choice([0.5, -1.0, 1.5, 2.0]), FLOAT64)

    def value(self, b: Builder) -> n.Atom:
        """A smooth, bounded expression of one or two atoms."""
        op = self.r.choice(["sin", "cos", "add", "mul", "mul", "sub", "bounded", "tanh"])
        x, y = self.atom(b), self.atom(b)
        if op in ("sin", "cos", "tanh"):
            return b.op(op, x)
        if op == "bounded":
            square = b.op("mul", y, y)
            return b.op("div", x, b.op("add", square, const(1.0, FLOAT64)))
        return b.op("sin", b.op(op, x, y))

    def cond(self, b: Builder) -> n.Atom:
        level = const(self.r.uniform(-0.9, 0.9), FLOAT64)
        return b.op(self.r.choice(["lt", "gt"]), self.atom(b), level)

    def block(self, b: Builder, depth: int, in_loop: bool) -> None:
        for _ in range(self.r.randint(1, 4)):
            if self.budget <= 0:
                return
            self.budget -= 1
            self.stmt(b, depth, in_loop)

    def stmt(self, b: Builder, depth: int, in_loop: bool) -> None:
        kind = self.r.random()
        if depth < 3 and kind < 0.15:
            self.branch(b, depth, in_loop)
        elif depth < 3 and kind < 0.30:
            self.counted(b, depth)
        elif depth < 3 and kind < 0.38:
            self.whiled(b, depth)
        elif kind < 0.46 and depth > 0:
            exits: list[n.Stmt] = [n.Return()]
            if in_loop:
                exits += [n.Break(), n.Continue()] * 3
            inner = b.child()
            inner.set(self.r.choice(self.floats), self.value(inner))
            inner.add(self.r.choice(exits))
            b.add(n.If(self.cond(b), inner.block()))
        elif kind < 0.66:
            v = self.value(b)
            b.add(n.Store(self.r.choice(self.arrays), (self.index(b),), v))
        elif kind < 0.74:
            dst = b.temp(FLOAT64, "old") if self.r.random() < 0.5 else None
            v = self.value(b)
            kind_: n.AtomicKind = self.r.choice(["add", "sub"])
            b.add(n.Atomic(dst, kind_, self.r.choice(self.arrays), (self.index(b),), v))
            if dst is not None:
                b.set(self.r.choice(self.floats), b.op("sin", dst))
        else:
            b.set(self.r.choice(self.floats), self.value(b))

    def branch(self, b: Builder, depth: int, in_loop: bool) -> None:
        cond = self.cond(b)
        then, orelse = b.child(), b.child()
        self.block(then, depth + 1, in_loop)
        if self.r.random() < 0.6:
            self.block(orelse, depth + 1, in_loop)
        b.add(n.If(cond, then.block(), orelse.block()))

    def counted(self, b: Builder, depth: int) -> None:
        body = b.child()
        i = b.temp(INT32, "i")
        slot = body.op("mod", body.op("add", i, const(SIZE, INT32)), const(SIZE, INT32))
        x = body.load(self.r.choice(self.arrays), [slot], [], FLOAT64)
        body.set(self.r.choice(self.floats), body.op("sin", x))
        self.block(body, depth + 1, in_loop=True)
        start, stop, step = self.r.choice([(0, None, 1), (0, 3, 1), (3, -1, -2), (2, 2, 1)])
        end: n.Atom = self.count if stop is None else const(stop, INT32)
        b.add(n.For(i, const(start, INT32), end, const(step, INT32), body.block()))

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


def program(seed: int) -> n.Function:
    """The program of a seed: a kernel over arrays a, b, c of SIZE float64 and an int m."""
    return Generator(seed).program()
