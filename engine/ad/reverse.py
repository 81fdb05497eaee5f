"""The reverse pass: from a prepared kernel to its adjoint kernel (IR to IR).

The adjoint kernel runs, for each thread, a forward sweep that recomputes the
primal values and a reverse sweep that mirrors it statement by statement. One
invariant carries the whole pass: when the reverse of a statement begins, every
primal variable holds the value that it had after the statement, and when it
ends, the value from before it. Only `Set` destroys values, so only `Set` saves
and restores. A loop saves the variables that its body changes at the start of
each iteration; its reverse takes them back, runs the body's forward sweep again
and then the body's reverse. Memory is one set of carried variables for each
iteration of one level, whatever the body computes.

What the forward sweep may not do again (stores, atomics), it leaves out; what it
cannot read again, because the launch itself changed it, comes from the journal
that the recorded launch wrote. Everything emitted in excess is removed by
`engine.ad.cleanup`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.ad.activity import active
from engine.ad.adjoint_rules import AdjointRules
from engine.ad.cleanup import propagate, remove_dead
from engine.ad.rename import fresh_copy, names_in
from engine.ad.structure import trip_count
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.lang.types import INT64, ArrayType, Type

SLOT = 8  # bytes of one journal slot


def slots_of(t: Type) -> int:
    """Journal slots that a value takes."""
    assert not isinstance(t, ArrayType)
    return -(-t.size // SLOT)


@dataclass(frozen=True)
class Adjoint:
    """The adjoint kernel, and the sites that the recorded forward launch has to journal.

    fn's parameters are the primal ones, then `adj_<name>` for each array of `wrt`
    in parameter order.
    """

    fn: n.Function
    sites: frozenset[int]


class _Forward:
    """Emits primal statements without their effects."""

    def __init__(self, names: Names, journal: n.Var, sites: frozenset[int]) -> None:
        self.names = names
        self.journal = journal
        self.sites = sites
        self.next_stack = 0
        # What the forward sweep kept for the reverse sweep, by the statement's identity.
        self.kept: dict[int, tuple[n.Var, ...]] = {}
        self.conds: dict[int, n.Atom] = {}
        self.trips: dict[int, n.Atom] = {}
        self.bounds: dict[int, tuple[n.Atom, n.Atom]] = {}
        self.stacks: dict[int, tuple[tuple[n.Var, int], ...]] = {}

    def plain(self, block: n.Block) -> n.Block:
        """The block as it ran, with no effect on memory; nothing is saved."""
        out: list[n.Stmt] = []
        for s in block:
            b = Builder(self.names, s.span)
            if not self.effect_free(s, b):
                if isinstance(s, n.If):
                    b.add(n.If(s.cond, self.plain(s.then), self.plain(s.orelse), s.span))
                elif isinstance(s, n.For):
                    b.add(replace(s, body=self.plain(s.body)))
                elif isinstance(s, n.While):
                    b.add(replace(s, test=self.plain(s.test), body=self.plain(s.body)))
                else:
                    b.add(s)
            out += b.stmts
        return tuple(out)

    def effect_free(self, s: n.Stmt, b: Builder) -> bool:
        """Handles what touches memory. True if the statement is done with."""
        if isinstance(s, n.Store):
            return True
        if isinstance(s, n.Atomic):
            if s.dst is not None:
                self.read_journal(b, (s.dst,), s.site)
            return True
        if isinstance(s, n.Load) and s.site in self.sites:
            self.read_journal(b, (s.dst,), s.site)
            return True
        if isinstance(s, n.Call) and s.site in self.sites:
            self.read_journal(b, s.dsts, s.site)
            return True
        return False

    def read_journal(self, b: Builder, dsts: Sequence[n.Var], site: int) -> None:
        for dst in dsts:
            b.add(n.JournalRead(dst, self.journal, site, b.span))
            if site in self.sites:
                step = const(slots_of(dst.type), INT64)
                b.set(self.journal, b.op("add", self.journal, step))

    def saving(self, block: n.Block) -> n.Block:
        """The forward sweep of a block whose reverse sweep follows later."""
        out: list[n.Stmt] = []
        for s in block:
            b = Builder(self.names, s.span)
            if isinstance(s, n.Set):
                self.save(b, s, (s.dst,))
                b.add(s)
            elif isinstance(s, n.If):
                cond = held(b, s.cond)
                self.conds[id(s)] = cond
                b.add(n.If(cond, self.saving(s.then), self.saving(s.orelse), s.span))
            elif isinstance(s, (n.For, n.While)):
                self.loop(b, s)
            elif isinstance(s, (n.Load, n.Atomic, n.Call)):
                # The read itself may move the journal; its reverse moves it back.
                if s.site in self.sites:
                    self.save(b, s, (self.journal,))
                if not self.effect_free(s, b):
                    b.add(s)
            elif not self.effect_free(s, b):
                b.add(s)
            out += b.stmts
        return tuple(out)

    def save(self, b: Builder, s: n.Stmt, variables: Sequence[n.Var]) -> None:
        self.kept[id(s)] = tuple(b.op("copy", v, base=f"{v.name}_was") for v in variables)

    def loop(self, b: Builder, s: n.For | n.While) -> None:
        body = self.plain(s.body)
        test = self.plain(s.test) if isinstance(s, n.While) else ()
        carried = tuple(n.set_in((*test, *body)))
        self.save(b, s, carried)
        stacks = tuple((v, self.next_stack + i) for i, v in enumerate(carried))
        self.next_stack += len(stacks)
        self.stacks[id(s)] = stacks
        pushes = tuple(n.Push(k, v, s.span) for v, k in stacks)
        if isinstance(s, n.For):
            start, stop, step = (held(b, a) for a in (s.start, s.stop, s.step))
            self.bounds[id(s)] = (start, step)
            self.trips[id(s)] = trip_count(b, replace(s, start=start, stop=stop, step=step))
            # This copy has a loop variable of its own; the reverse sweep defines s.var.
            k = n.Var(self.names.fresh(s.var.name), s.var.type)
            copied, _ = fresh_copy(body, self.names, {s.var: k})
            b.add(n.For(k, start, stop, step, pushes + copied, s.span))
            return
        trips = b.variable(INT64, "trips")
        b.set(trips, const(0, INT64))
        tested, table = fresh_copy(test, self.names)
        cond = table.get(s.cond, s.cond) if isinstance(s.cond, n.Var) else s.cond
        copied, _ = fresh_copy(body, self.names)
        inner = b.child()
        inner.stmts += [*pushes, *copied]
        inner.set(trips, inner.op("add", trips, const(1, INT64)))
        b.add(n.While(tested, cond, inner.block(), s.span))
        self.trips[id(s)] = b.op("copy", trips)


def held(b: Builder, a: n.Atom) -> n.Atom:
    """The atom's present value, as something that does not change."""
    return b.op("copy", a) if isinstance(a, n.Var) and a.mutable else a


class _Reverse:
    """Emits the reverse sweep."""

    def __init__(self, forward: _Forward, rules: AdjointRules) -> None:
        self.f = forward
        self.rules = rules
        self.names = forward.names

    def block(self, block: n.Block) -> n.Block:
        out: list[n.Stmt] = []
        for s in reversed(block):
            b = Builder(self.names, s.span)
            self.stmt(b, s)
            out += b.stmts
        return tuple(out)

    def stmt(self, b: Builder, s: n.Stmt) -> None:
        if isinstance(s, n.If):
            cond = self.f.conds[id(s)]
            b.add(n.If(cond, self.block(s.then), self.block(s.orelse), s.span))
        elif isinstance(s, (n.For, n.While)):
            self.loop(b, s)
        elif isinstance(s, n.Set):
            (was,) = self.f.kept[id(s)]
            b.set(s.dst, was)
            self.rules.assigned(b, s)
        else:
            if isinstance(s, (n.Load, n.Atomic, n.Call)) and id(s) in self.f.kept:
                b.set(self.f.journal, self.f.kept[id(s)][0])
            self.rules.statement(b, s)

    def loop(self, b: Builder, s: n.For | n.While) -> None:
        stacks = self.f.stacks[id(s)]
        kept = self.f.kept[id(s)]
        trips = self.f.trips[id(s)]
        t = s.var.type if isinstance(s, n.For) else INT64
        body = b.child()
        k = b.temp(t, "k")
        for v, stack in reversed(stacks):
            body.add(n.Pop(v, stack, s.span))
        if isinstance(s, n.For):
            start, step = self.f.bounds[id(s)]
            offset = body.op("mul", k, step)
            body.add(n.Let(s.var, "add", (start, offset), s.span))
        forward = self.f.saving(s.body)
        backward = self.block(s.body)
        # Zero already, by the invariant of the rules: said here so that it is known.
        for x in n.walk(s.body):
            for d in n.defs_of(x):
                if not d.mutable and d in self.rules.vars:
                    body.set(self.rules.vars[d], const(0, d.type))  # type: ignore[arg-type]
        body.stmts += [*forward, *backward]
        one = const(1, t)  # type: ignore[arg-type]
        last = b.op("sub", trips, one)
        minus = const(-1, t)  # type: ignore[arg-type]
        b.add(n.For(k, last, minus, minus, body.block(), s.span))
        for (v, _), was in zip(stacks, kept, strict=True):
            b.set(v, was)


def _unsafe_calls(fn: n.Function, journaled: frozenset[str]) -> frozenset[int]:
    """Calls (of functions with a user's adjoint) that the backward pass cannot repeat."""
    from engine.ad.prepare import read_params, written_params

    out = set()
    for s in n.walk(fn.body):
        if isinstance(s, n.Call):
            read = read_params(s.func)
            touched = {
                a.name
                for p, a in zip(s.func.params, s.args, strict=True)
                if isinstance(a, n.Var) and p.name in read
            }
            if written_params(s.func) or touched & journaled:
                out.add(s.site)
    return frozenset(out)


def _journal_sites(fn: n.Function, journaled: frozenset[str]) -> frozenset[int]:
    loads = {s.site for s in n.walk(fn.body) if isinstance(s, n.Load) and s.array.name in journaled}
    atomics = {s.site for s in n.walk(fn.body) if isinstance(s, n.Atomic) and s.dst is not None}
    return frozenset(loads | atomics | _unsafe_calls(fn, journaled))


def _read_sites(fn: n.Function) -> frozenset[int]:
    return frozenset(s.site for s in n.walk(fn.body) if isinstance(s, n.JournalRead))


def reverse(fn: n.Function, wrt: frozenset[str], journaled: frozenset[str]) -> Adjoint:
    """The adjoint of a prepared kernel.

    wrt: array parameters that have a gradient. journaled: array parameters whose
    elements the launch changes (or may change through another name), so that their
    reads cannot be repeated. Only reads whose values the reverse sweep needs end up
    in `sites`.
    """
    sites = _journal_sites(fn, journaled)
    while True:
        out = _build(fn, wrt, sites)
        needed = _read_sites(out) & sites
        if needed == sites:
            return Adjoint(out, sites)
        sites = needed


def _build(fn: n.Function, wrt: frozenset[str], sites: frozenset[int]) -> n.Function:
    names = Names(names_in(fn))
    adjoints = {
        p.name: n.Var(names.fresh(f"adj_{p.name}"), p.type) for p in fn.params if p.name in wrt
    }
    journal = n.Var(names.fresh("journal"), INT64, mutable=True)
    forward = _Forward(names, journal, sites)
    rules = AdjointRules(names, adjoints, active(fn, wrt))
    sweep = forward.saving(fn.body)
    b = Builder(names, fn.span)
    b.stmts += sweep
    b.stmts += _Reverse(forward, rules).block(fn.body)
    out = n.Function(
        name=f"{fn.name}_adjoint",
        params=(*fn.params, *adjoints.values()),
        results=(),
        body=b.block(),
        is_kernel=True,
        span=fn.span,
        adjoints=frozenset(a.name for a in adjoints.values()),
    )
    return remove_dead(propagate(out))
