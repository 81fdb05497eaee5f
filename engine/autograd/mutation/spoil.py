"""The pass that spoils an adjoint: it scales, moves or drops contributions to gradients.

A spoiled adjoint is the right one with a table as a further parameter, which says at run time
what is wrong with it. So one compilation serves every mutant of a kernel.
"""

from __future__ import annotations

from dataclasses import replace

from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.rewrite import names_in
from engine.lang.types import FLOAT64, INT32, ArrayType, is_float, scalar_of, shape_of

# Of the further parameter: factor, thread, component, iteration, shift (see `Mutation`).
TABLE = ArrayType(FLOAT64, 1)


def spoil(fn: n.Function, adjoints: frozenset[str]) -> n.Function:
    """An adjoint kernel that takes a table (see TABLE) after its own parameters.

    adjoints: its parameters that are gradient arrays.
    """
    return _Spoil(fn, adjoints).function()


class _Spoil:
    def __init__(self, fn: n.Function, adjoints: frozenset[str]) -> None:
        self.fn = fn
        self.adjoints = adjoints
        self.names = Names(names_in(fn))
        self.table = n.Var(self.names.fresh("mutation"), TABLE)
        self.run = n.Var(self.names.fresh("iterations"), INT32, mutable=True)

    def function(self) -> n.Function:
        b = Builder(self.names, self.fn.span)
        b.set(self.run, const(-1, INT32))
        row = [b.load(self.table, (n.Const(k, INT32),), (), FLOAT64) for k in range(5)]
        self.factor = row[0]
        thread, self.component, self.iteration, self.shift = (
            b.op("cast", x, result=INT32) for x in row[1:]
        )
        here = b.op("tid", n.Const(0, INT32), n.Const(self._axes(), INT32), result=INT32)
        anywhere = b.op("lt", thread, n.Const(0, INT32))
        self.chosen = b.op("lor", anywhere, b.op("eq", thread, here))
        self.anytime = b.op("lt", self.iteration, n.Const(0, INT32))
        self.whole = b.op("lt", self.component, n.Const(0, INT32))
        body = (*b.stmts, *self.block(self.fn.body, False))
        return replace(
            self.fn, name=f"{self.fn.name}_spoiled", params=(*self.fn.params, self.table),
            body=body,
        )  # fmt: skip

    def _axes(self) -> int:
        for s in n.walk(self.fn.body):
            if isinstance(s, n.Let) and s.op == "tid":
                axes = s.args[1]
                assert isinstance(axes, n.Const) and isinstance(axes.value, int)
                return axes.value
        return 1

    def block(self, block: n.Block, inside: bool) -> n.Block:
        out: list[n.Stmt] = []
        for s in block:
            if isinstance(s, n.If):
                then, orelse = self.block(s.then, inside), self.block(s.orelse, inside)
                out.append(replace(s, then=then, orelse=orelse))
            elif isinstance(s, (n.For, n.While)):
                out.append(self.loop(s))
            elif isinstance(s, n.Atomic) and s.kind == "add" and s.array.name in self.adjoints:
                out += self.added(s, inside)
            else:
                out.append(s)
        return tuple(out)

    def loop(self, s: n.For | n.While) -> n.Stmt:
        inner = [x for x in n.walk(s.body) if isinstance(x, (n.Atomic, n.Set))]
        carried = {
            x.dst: None for x in inner
            if isinstance(x, n.Set) and x.dst.name.startswith("adj") and is_float(x.dst.type)
        }  # fmt: skip
        adds = any(isinstance(x, n.Atomic) and x.array.name in self.adjoints for x in inner)
        if not carried and not adds:
            return s
        first = Builder(self.names, s.span)
        first.set(self.run, first.op("add", self.run, n.Const(1, INT32)))
        last = Builder(self.names, s.span)
        if carried:
            now = last.op("land", self.chosen, self._now(last))
            then = last.child()
            for v in carried:
                then.set(v, self._scaled(then, v))
            last.add(n.If(now, then.block(), (), s.span))
        body = (*first.stmts, *self.block(s.body, True), *last.stmts)
        return replace(s, body=body)

    def _now(self, b: Builder) -> n.Var:
        return b.op("eq", self.run, self.iteration)

    def _scaled(self, b: Builder, value: n.Atom) -> n.Var:
        """A value times the factor, in all its components or in one."""
        part = scalar_of(value.type)
        factor: n.Atom = self.factor
        if part != FLOAT64:
            factor = b.op("cast", factor, result=part)
        shape = shape_of(value.type)  # type: ignore[arg-type]
        whole = b.op("scale" if shape else "mul", value, factor)
        if not shape:
            return b.op("select", self.whole, whole, value)
        at = (n.Const(0, INT32),) * (len(shape) - 1) + (n.Const(min(1, shape[-1] - 1), INT32),)
        one = b.op("insert", value, *at, b.op("extract", whole, *at))
        out = b.variable(value.type, "spoilt")
        b.add(n.If(self.whole, (n.Set(out, whole, b.span),), (n.Set(out, one, b.span),), b.span))
        return b.op("copy", out)

    def added(self, s: n.Atomic, inside: bool) -> list[n.Stmt]:
        b = Builder(self.names, s.span)
        active = self.chosen
        when = b.op("lor", self.anytime, self._now(b)) if inside else self.anytime
        active = b.op("land", active, when)
        then = b.child()
        value = self._scaled(then, s.value)
        index = self._shifted(then, s)
        then.add(replace(s, value=value, index=index))
        b.add(n.If(active, then.block(), (s,), s.span))
        return b.stmts

    def _shifted(self, b: Builder, s: n.Atomic) -> tuple[n.Atom, ...]:
        if not s.index:
            return s.index
        first = s.index[0]
        t = first.type
        step: n.Atom = self.shift
        size: n.Atom = b.op("shape", s.array, n.Const(0, INT32))
        if t != INT32:
            step, size = b.op("cast", step, result=t), b.op("cast", size, result=t)
        moved = b.op("mod", b.op("add", first, step), size)
        return (moved, *s.index[1:])
