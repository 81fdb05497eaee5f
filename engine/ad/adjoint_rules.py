"""The adjoint of each single statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.ad.components import places
from engine.ad.extremum import replaced
from engine.ad.kept import KeptAdjoints
from engine.ad.mute import Muted
from engine.ir import nodes as n
from engine.ir.builder import Builder, E, Names, const
from engine.ir.ops import OPS, Elementwise, NoDerivative
from engine.lang.types import ArrayType, is_float, scalar_of


class AdjointRules:
    """Holds the adjoint variables of one function and emits what changes them.

    An adjoint variable is zero outside of the life of its primal: the statement
    that defines the primal takes the adjoint and resets it.
    """

    def __init__(
        self, names: Names, arrays: Mapping[str, n.Var], active: frozenset[n.Var],
        kept: KeptAdjoints | None = None,
    ) -> None:  # fmt: skip
        self.names = names
        self.arrays = arrays
        self.active = active
        self.vars: dict[n.Var, n.Var] = {}
        self.kept = kept
        self.muted = Muted()

    def adjoint(self, v: n.Var) -> n.Var:
        if v not in self.vars:
            self.vars[v] = n.Var(self.names.fresh(f"adj_{v.name}"), v.type, mutable=True)
        return self.vars[v]

    def take(self, b: Builder, v: n.Var) -> n.Var:
        """The adjoint of v, which is zero afterwards."""
        adj = self.adjoint(v)
        ct = b.op("copy", adj, base="ct")
        b.set(adj, const(0, v.type))  # type: ignore[arg-type]
        return ct

    def add(self, b: Builder, a: n.Atom, value: n.Atom) -> None:
        if isinstance(a, n.Var) and a in self.active:
            adj = self.adjoint(a)
            b.set(adj, b.op("add", adj, value))

    def assigned(self, b: Builder, s: n.Set) -> None:
        """`x = a`: the adjoint moves from x to a."""
        if s.dst in self.active:
            self.add(b, s.value, self.take(b, s.dst))

    def statement(self, b: Builder, s: n.Stmt) -> None:
        if isinstance(s, n.Let):
            self.operation(b, s)
        elif isinstance(s, n.Load):
            if s.dst in self.active and s.array.name in self.arrays:
                ct = self.take(b, s.dst)
                self.scatter(b, s, ct)
        elif isinstance(s, n.Store):
            self.stored(b, s)
        elif isinstance(s, n.Atomic):
            self.atomic(b, s)
        elif isinstance(s, n.Call):
            self.called(b, s)

    def operation(self, b: Builder, s: n.Let) -> None:
        rule = OPS[s.op].derivative
        if s.dst not in self.active or isinstance(rule, NoDerivative):
            return
        if s.op == "extract":
            self.component(b, s)
            return
        ct = b.e(self.take(b, s.dst))
        args = [b.e(a) for a in s.args]
        out = b.e(s.dst)
        parts: Sequence[E | None]
        if isinstance(rule, Elementwise):
            parts = [None if p is None else ct * p for p in rule.partials(args, out)]
        else:
            parts = rule.rule(ct, args, out)
        for a, part in zip(s.args, parts, strict=True):
            if part is not None:
                self.add(b, a, part.atom)

    def component(self, b: Builder, s: n.Let) -> None:
        """`y = x[i]`: only that component of the adjoint changes, which saves adding zeros."""
        ct = self.take(b, s.dst)
        x, *index = s.args
        if isinstance(x, n.Var) and x in self.active:
            adj = self.adjoint(x)
            moved = b.op("add", b.op("extract", adj, *index), ct)
            b.set(adj, b.op("insert", adj, *index, moved))

    def gradient_at(self, b: Builder, s: n.Store | n.Atomic) -> n.Var:
        return b.load(self.arrays[s.array.name], s.index, s.path, s.value.type, "ct")

    def scatter(self, b: Builder, s: n.Load | n.Atomic, ct: n.Atom) -> None:
        """Adds to the gradient of the element that was read."""
        adj = self.arrays[s.array.name]
        b.add(n.Atomic(None, "add", adj, s.index, ct, s.path, b.span))

    def stored(self, b: Builder, s: n.Store | n.Atomic) -> None:
        """`y[i] = v`: the old value of y[i] is gone, so its gradient is zero."""
        if s.array.name not in self.arrays:
            return
        ct = self.gradient_at(b, s)
        zero = const(0, s.value.type)  # type: ignore[arg-type]
        b.add(n.Store(self.arrays[s.array.name], s.index, zero, s.path, b.span))
        self.add(b, s.value, ct)

    def atomic(self, b: Builder, s: n.Atomic) -> None:
        if s.array.name not in self.arrays:
            return
        before = None
        if s.dst is not None and s.dst in self.active:
            before = self.take(b, s.dst)
        if s.kind in ("add", "sub"):
            ct = self.gradient_at(b, s)
            self.add(b, s.value, ct if s.kind == "add" else b.op("neg", ct))
        elif s.kind == "exch":
            self.stored(b, s)
        elif s.kind == "cas":
            self.exchanged(b, s)
        else:
            self.extremum(b, s)
        if before is not None:
            self.scatter(b, s, before)

    def exchanged(self, b: Builder, s: n.Atomic) -> None:
        """Compare and swap: a store, where the element had the value that it was compared with."""
        assert s.dst is not None and s.compare is not None
        inner = b.child()
        self.stored(inner, s)
        b.add(n.If(b.op("eq", s.dst, s.compare), inner.block(), (), b.span))

    def extremum(self, b: Builder, s: n.Atomic) -> None:
        """Atomic min and max: the value replaced the element, or nothing happened.

        Threads are reversed last to first, so the update that came last takes the
        gradient and leaves zero to those before it. Vectors count by component.
        """
        assert s.dst is not None
        zero = const(0, scalar_of(s.value.type))
        for at in places(s.value.type):
            path = (*s.path, *at)
            value = b.op("extract", s.value, *at) if at else s.value
            before = b.op("extract", s.dst, *at) if at else s.dst
            took = replaced(b, s, value, before)
            inner = b.child()
            grad = self.arrays[s.array.name]
            ct: n.Atom = inner.load(grad, s.index, path, zero.type, "ct")
            inner.add(n.Store(grad, s.index, zero, path, b.span))
            if at:
                blank = const(0, s.value.type)  # type: ignore[arg-type]
                ct = inner.op("insert", blank, *at, ct)
            self.add(inner, s.value, ct)
            b.add(n.If(took, inner.block(), (), b.span))

    def called(self, b: Builder, s: n.Call) -> None:
        """A function with a user's own adjoint: call it with the cotangents.

        It may also read and add to the gradients of arrays. Without an adjoint (a native
        function) the gradient ends here.
        """
        if s.func.kept is not None:
            self.kept_call(b, s)
            return
        grad = s.func.grad
        cts: list[n.Atom] = [
            self.take(b, d) if d in self.active else const(0, d.type)  # type: ignore[arg-type]
            for d in s.dsts
        ]
        if grad is None:
            return
        given = dict(zip((p.name for p in s.func.params), s.args, strict=True))
        arrays = {k: a for k in grad.gradients if isinstance(a := given[k], n.Var)}
        there = {k: self.arrays[a.name] for k, a in arrays.items() if a.name in self.arrays}
        if not there and not any(d in self.active for d in s.dsts):
            return
        if len(s.dsts) < len(s.func.results):  # a call whose results nothing uses
            cts = [const(0, t) for t in s.func.results]
        own = grad.params[len(grad.params) - len(grad.gradients) :]
        absent = frozenset(
            p.name for p, k in zip(own, grad.gradients, strict=True) if k not in there
        )
        grad = self.muted.function(grad, absent)
        dsts = tuple(b.temp(t, "adj") for t in grad.results)
        # In place of a gradient that is not there stands the array itself, for its shape.
        last = [there.get(k, arrays[k]) for k in grad.gradients]
        b.add(n.Call(dsts, grad, (*s.args, *cts, *last), b.span))
        inputs = [
            a
            for p, a in zip(s.func.params, s.args, strict=True)
            if not isinstance(p.type, ArrayType) and is_float(p.type)
        ]
        for a, d in zip(inputs, dsts, strict=True):
            self.add(b, a, d)

    def kept_call(self, b: Builder, s: n.Call) -> None:
        """A kept function: its adjoint is called with the cotangents that are not zero."""
        useful = tuple(d in self.active for d in s.dsts)
        assert s.func.kept is not None
        reached = frozenset[int]().union(
            *(origins for origins, u in zip(s.func.kept, useful, strict=False) if u)
        )
        varied = tuple(
            k in reached and isinstance(a, n.Var) and a in self.active for k, a in enumerate(s.args)
        )
        cts = [self.take(b, d) for d, u in zip(s.dsts, useful, strict=True) if u]
        if not cts or not any(varied):
            return
        assert self.kept is not None
        adjoint = self.kept.function(s.func, varied, useful)
        dsts = tuple(b.temp(t, "adj") for t in adjoint.results)
        b.add(n.Call(dsts, adjoint, (*s.args, *cts), b.span))
        moved = iter(dsts)
        for a, v in zip(s.args, varied, strict=True):
            if v:
                self.add(b, a, next(moved))
