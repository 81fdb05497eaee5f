"""Random kernels whose threads ask where they are before they do anything, from IR.

Conditions compare the thread's coordinate with constants and an argument, the other way round too,
are joined, negated, kept in variables that are assigned on some ways only, and asked again in
branches, in loops and after early returns. Numbers are small integers: all sums are exact.
"""

from __future__ import annotations

import random

import engine.builtins  # noqa: F401 (fills the operation table)
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.lang.types import BOOL, FLOAT32, INT32, INT64, ArrayType

THREADS = 23
ENDS = (-(2**31), -2, 0, 1, 7, 22, 23, 30, 2**31 - 1)  # of the argument
_FLAT = ArrayType(FLOAT32, 1)
_COMPARE = ("lt", "le", "gt", "ge", "lt", "ge", "eq", "ne")


class _Writer:
    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.x, self.y, self.z = (n.Var(name, _FLAT) for name in "xyz")
        self.m = n.Var("m", INT32)
        self.names = Names(("x", "y", "z", "m", "f0", "f1", "f2"))
        self.flags = [n.Var(f"f{k}", BOOL, mutable=True) for k in range(3)]
        self.budget = 14
        self.place: n.Atom = const(0, INT32)

    def bound(self, b: Builder) -> n.Atom:
        kind = self.r.random()
        if kind < 0.5:
            return self.m
        if kind < 0.8:
            return const(self.r.randint(-1, THREADS + 1), INT32)
        if kind < 0.9:
            return b.op("sub", self.m, const(self.r.randint(1, 9), INT32))
        return b.op("sub", b.op("shape", self.y, const(0, INT32)), const(2, INT32))

    def beside(self, b: Builder) -> n.Atom:
        """The thread's place, or one near it."""
        if self.r.random() < 0.7:
            return self.place
        by = const(self.r.randint(-5, 5), INT32)
        pair = [self.place, by]
        if self.r.random() < 0.5:
            return b.op("sub", *pair)
        self.r.shuffle(pair)
        return b.op("add", *pair)

    def cond(self, b: Builder, depth: int = 0) -> n.Atom:
        kind = self.r.random()
        if depth < 2 and kind < 0.2:
            both = self.cond(b, depth + 1), self.cond(b, depth + 1)
            return b.op(self.r.choice(["land", "lor"]), *both)
        if depth < 2 and kind < 0.3:
            return b.op("lnot", self.cond(b, depth + 1))
        if kind < 0.45:
            return self.r.choice(self.flags)
        if kind < 0.5:
            return b.op("gt", b.load(self.x, [self.place], [], FLOAT32), const(0.0, FLOAT32))
        if kind < 0.55:
            return b.op("lt", self.m, const(5, INT32))
        pair = [self.beside(b), self.bound(b)]
        if self.r.random() < 0.15:
            pair = [b.op("cast", a, result=INT64) for a in pair]
        self.r.shuffle(pair)
        return b.op(self.r.choice(_COMPARE), *pair)

    def effect(self, b: Builder) -> None:
        number = const(float(self.r.randint(1, 5)), FLOAT32)
        if self.r.random() < 0.25:
            at = const(self.r.randrange(4), INT32)
            b.add(n.Atomic(None, "add", self.z, (at,), number))
            return
        value = b.load(self.y, [self.place], [], FLOAT32)
        seen = b.load(self.x, [self.place], [], FLOAT32)
        b.add(n.Store(self.y, (self.place,), b.op("add", value, b.op("mul", seen, number))))

    def block(self, b: Builder, depth: int, loop: bool) -> None:
        for _ in range(self.r.randint(1, 3)):
            if self.budget > 0:
                self.budget -= 1
                self.stmt(b, depth, loop)

    def stmt(self, b: Builder, depth: int, loop: bool) -> None:
        kind = self.r.random()
        if depth and kind < 0.3:
            self.effect(b)
        elif kind < 0.5:
            flag = self.r.choice(self.flags)
            constant = const(self.r.random() < 0.5, BOOL)
            b.set(flag, constant if self.r.random() < 0.3 else self.cond(b))
        elif kind < 0.6:
            inner = b.child()
            ways = [n.Return(), *([n.Break(), n.Continue()] if loop else [])]
            inner.add(self.r.choice(ways))
            b.add(n.If(self.cond(b), inner.block()))
        elif depth < 3 and kind < 0.7:
            body, k = b.child(), b.temp(INT32, "k")
            self.block(body, depth + 1, loop=True)
            end = self.r.choice([const(2, INT32), b.op("mod", self.m, const(3, INT32))])
            b.add(n.For(k, const(0, INT32), end, const(1, INT32), body.block()))
        elif depth < 3:
            cond, then, other = self.cond(b), b.child(), b.child()
            self.block(then, depth + 1, loop)
            if self.r.random() < 0.3:
                self.block(other, depth + 1, loop)
            b.add(n.If(cond, then.block(), other.block()))
        else:
            self.effect(b)

    def guard(self, b: Builder, depth: int) -> None:
        """What most kernels are: tests, and then all the rest."""
        if self.r.random() < 0.3:
            b.set(self.r.choice(self.flags), self.cond(b))
        cond, inner = self.cond(b), b.child()
        if self.r.random() < 0.4:
            inner.add(n.Return())
            b.add(n.If(cond, inner.block()))
            inner = b
        if depth:
            self.guard(inner, depth - 1)
        self.block(inner, 1, False)
        self.effect(inner)
        if inner is not b:
            b.add(n.If(cond, inner.block()))

    def kernel(self) -> n.Function:
        b = Builder(self.names)
        if self.r.random() < 0.7:  # else they are read before they were assigned
            for f in self.flags:
                b.set(f, const(self.r.random() < 0.5, BOOL))
        self.place = b.op("tid", const(0, INT32), const(1, INT32))
        if self.r.random() < 0.5:
            self.block(b, 0, False)
        self.guard(b, self.r.randint(0, 2))
        params = (self.x, self.y, self.z, self.m)
        return n.Function("guarded", params, (), b.block(), is_kernel=True)


def guarded(seed: int) -> n.Function:
    """The kernel of a seed: arrays x, y, z and an int m, for THREADS threads."""
    return _Writer(seed).kernel()
