"""Turns break, continue and return into flags, so that only if, for and while remain.

A statement that may leave its block is followed by `if go { the rest }`. A loop
that may be left early tests its flag; a `for` of that kind becomes a `while` with
a counter. What runs, and in which order, stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.classes import dataclass
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.ops import OPS
from engine.lang.types import BOOL, UINT64

TRUE = n.Const(True, BOOL)
FALSE = n.Const(False, BOOL)


@dataclass
class _Scope:
    """One loop body, or the function body: the flag that says whether it still runs."""

    go: n.Var
    brk: n.Var | None  # None for the function body
    parent: _Scope | None


def _exits(block: n.Block, depth: int = 0) -> bool:
    """True where a statement may leave this block early (loops keep their own breaks)."""
    for s in block:
        if isinstance(s, n.Return):
            return True
        if isinstance(s, (n.Break, n.Continue)) and depth == 0:
            return True
        inner = depth + isinstance(s, (n.For, n.While))
        if any(_exits(b, inner) for b in n.blocks_of(s)):
            return True
    return False


def _has(block: n.Block, kind: type, loops: bool) -> bool:
    """Is there a `kind` in the block, looking into nested loops or not?"""
    for s in block:
        if isinstance(s, kind):
            return True
        if isinstance(s, (n.For, n.While)) and not loops:
            continue
        if any(_has(b, kind, loops) for b in n.blocks_of(s)):
            return True
    return False


def trip_count(b: Builder, s: n.For) -> n.Atom:
    """Iterations of a `for`, as unsigned 64 bits: its own type need not hold their number."""
    known = known_trips(s)
    if known is not None:
        return const(known, UINT64)
    return b.op("trips", s.start, s.stop, s.step, base="trips")


def known_trips(s: n.For) -> int | None:
    """The number of iterations where the bounds are constants."""
    if not all(isinstance(a, n.Const) for a in (s.start, s.stop, s.step)):
        return None
    bounds = (a.value for a in (s.start, s.stop, s.step) if isinstance(a, n.Const))
    return int(OPS["trips"].numpy(*bounds))


def offset_at(b: Builder, step: n.Atom, k: n.Atom) -> n.Atom:
    """How far from its start the variable of a `for` is in iteration `k` (unsigned 64 bits).

    In the variable's own type: what wraps there on the way comes back in the sum.
    """
    return b.op("mul", k if k.type == step.type else b.op("cast", k, result=step.type), step)


class _Structurer:
    def __init__(self, fn: n.Function, names: Names) -> None:
        self.fn = fn
        self.names = names
        self.results = tuple(n.Var(names.fresh("result"), t, mutable=True) for t in fn.results)
        self.ret = n.Var(names.fresh("returned"), BOOL, mutable=True)

    def builder(self, s: n.Stmt) -> Builder:
        return Builder(self.names, s.span)

    def flag(self, base: str) -> n.Var:
        return n.Var(self.names.fresh(base), BOOL, mutable=True)

    def body(self) -> n.Block:
        body = self.fn.body
        # The common case, one return at the end, needs no flags at all.
        if body and isinstance(body[-1], n.Return) and not _exits(body[:-1]):
            last = body[-1]
            sets = tuple(
                n.Set(r, v, last.span) for r, v in zip(self.results, last.values, strict=True)
            )
            return self.block(body[:-1], None) + sets
        if not _exits(body):
            return self.block(body, None)
        scope = _Scope(self.flag("go"), None, None)
        return (n.Set(scope.go, TRUE, self.fn.span), *self.block(body, scope))

    def block(self, block: n.Block, scope: _Scope | None) -> n.Block:
        out: list[n.Stmt] = []
        for i, s in enumerate(block):
            out.extend(self.stmt(s, scope))
            if isinstance(s, (n.Break, n.Continue, n.Return)):
                return tuple(out)
            if scope is not None and i + 1 < len(block) and _exits((s,)):
                rest = self.block(block[i + 1 :], scope)
                out.append(n.If(scope.go, rest, (), s.span))
                return tuple(out)
        return tuple(out)

    def stmt(self, s: n.Stmt, scope: _Scope | None) -> list[n.Stmt]:
        if isinstance(s, n.If):
            then, orelse = self.block(s.then, scope), self.block(s.orelse, scope)
            return [n.If(s.cond, then, orelse, s.span)]
        if isinstance(s, (n.Break, n.Continue, n.Return)):
            assert scope is not None
            out: list[n.Stmt] = []
            if isinstance(s, n.Return):
                out += [n.Set(r, v, s.span) for r, v in zip(self.results, s.values, strict=True)]
                out.append(n.Set(self.ret, TRUE, s.span))
            if scope.brk is not None and not isinstance(s, n.Continue):
                out.append(n.Set(scope.brk, TRUE, s.span))
            out.append(n.Set(scope.go, FALSE, s.span))
            return out
        if isinstance(s, (n.For, n.While)):
            return self.loop(s, scope)
        return [s]

    def loop(self, s: n.For | n.While, scope: _Scope | None) -> list[n.Stmt]:
        leaves = _has(s.body, n.Return, loops=True)
        early = leaves or _has(s.body, n.Break, loops=False)
        if not early and not _has(s.body, n.Continue, loops=False):
            if isinstance(s, n.For):
                return [n.For(s.var, s.start, s.stop, s.step, self.block(s.body, None), s.span)]
            return [n.While(s.test, s.cond, self.block(s.body, None), s.span)]
        inner = _Scope(self.flag("go"), self.flag("left") if early else None, scope)
        body = (n.Set(inner.go, TRUE, s.span), *self.block(s.body, inner))
        out: list[n.Stmt] = []
        if not early:
            if isinstance(s, n.For):
                return [n.For(s.var, s.start, s.stop, s.step, body, s.span)]
            return [n.While(s.test, s.cond, body, s.span)]
        assert inner.brk is not None
        out.append(n.Set(inner.brk, FALSE, s.span))
        if isinstance(s, n.For):
            out += self.counted(s, inner.brk, body)
        else:
            out.append(self.guarded(s, inner.brk, body))
        if leaves:
            assert scope is not None
            sets: list[n.Stmt] = [n.Set(scope.go, FALSE, s.span)]
            if scope.brk is not None:
                sets.append(n.Set(scope.brk, TRUE, s.span))
            out.append(n.If(self.ret, tuple(sets), (), s.span))
        return out

    def counted(self, s: n.For, brk: n.Var, body: n.Block) -> list[n.Stmt]:
        """`for` with a break: a while over a hidden counter."""
        b = self.builder(s)
        trips = trip_count(b, s)
        k = b.variable(UINT64, "count")
        b.set(k, const(0, UINT64))
        test = b.child()
        cond = test.op("land", test.op("lt", k, trips), test.op("lnot", brk))
        inner = b.child()
        inner.add(n.Let(s.var, "add", (s.start, offset_at(inner, s.step, k)), s.span))
        inner.stmts.extend(body)
        inner.set(k, inner.op("add", k, const(1, UINT64)))
        b.add(n.While(test.block(), cond, inner.block(), s.span))
        return b.stmts

    def guarded(self, s: n.While, brk: n.Var, body: n.Block) -> n.Stmt:
        """`while` with a break: the test does not run again once the loop is left."""
        test = self.builder(s)
        again = test.variable(BOOL, "again")
        test.set(again, FALSE)
        stays = test.op("lnot", brk)
        test.add(n.If(stays, (*s.test, n.Set(again, s.cond, s.span)), (), s.span))
        return n.While(test.block(), again, body, s.span)


def structure(fn: n.Function, names: Names) -> tuple[n.Block, tuple[n.Var, ...]]:
    """The body without break, continue and return, and the variables that hold the results."""
    s = _Structurer(fn, names)
    return s.body(), s.results


def by_every_thread(fn: n.Function) -> Iterator[n.Stmt]:
    """Statements that every thread of a kernel runs, up to the first that may end it."""
    for s in fn.body:
        yield s
        if any(isinstance(inner, n.Return) for inner in n.walk((s,))):
            return
