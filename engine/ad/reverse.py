"""The reverse pass: from a prepared kernel to its adjoint kernel (IR to IR).

The adjoint kernel runs, for each thread, a forward sweep that recomputes the
primal values and a reverse sweep that mirrors it statement by statement. One
invariant carries the whole pass: when the reverse of a statement begins, every
primal variable holds the value that it had after the statement, and when it
ends, the value from before it. Only `Set` destroys values, so only `Set` saves
and restores. A loop saves the variables that its body changes at the start of
each iteration; its reverse takes them back, runs the body's forward sweep again
and then the body's reverse. Memory is one set of carried variables for each
iteration of one level, whatever the body computes; where that is too much, see
`engine.ad.checkpoints`.

What the forward sweep may not do again (stores, atomics), it leaves out; what it
cannot read again, because the launch itself changed it, comes from the journal
that the recorded launch wrote. Everything emitted in excess is removed by
`engine.ad.cleanup`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.ad import checkpoints as cp
from engine.ad.activity import active
from engine.ad.adjoint_rules import AdjointRules
from engine.ad.checkpoints import pop, push, slots_of
from engine.ad.cleanup import propagate, remove_dead
from engine.ad.gathered import gathered
from engine.ad.in_place import in_place
from engine.ad.kept import KeptAdjoints
from engine.ad.prepare import has_native_replay
from engine.ad.structure import offset_at, trip_count
from engine.classes import dataclass
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.rewrite import fresh_copy, names_in
from engine.ir.touched import read_params
from engine.lang.types import INT64, UINT64

NO_ARRAYS: Mapping[str, n.Var] = {}


@dataclass(frozen=True)
class Adjoint:
    """The adjoint kernel, and the sites that the recorded forward launch has to journal.

    fn's parameters are the primal ones, then `adj_<name>` for each array of `wrt`
    in parameter order.
    """

    fn: n.Function
    sites: frozenset[int]


class _Forward:
    """Emits primal statements without their effects.

    measured: nested loops (by identity) whose iterations the forward sweep counts, to
    know beforehand what the reverse sweep saves. checkpoint: save segments of loops. again: save
    nothing in loops, whose iterations run once more from the first for each that is reversed.
    """

    def __init__(
        self, names: Names, journal: n.Var, sites: frozenset[int], measured: Mapping[int, int],
        checkpoint: bool, again: bool = False,
    ) -> None:  # fmt: skip
        self.names = names
        self.journal = journal
        self.sites = sites
        self.measured = measured
        self.checkpoint = checkpoint
        self.again = again
        self.repeated: dict[int, tuple[n.Block, n.Block]] = {}  # tests and bodies of such loops
        self.most: dict[int, n.Var] = {}  # by measured loop: the most iterations that it had
        self.nested: dict[int, tuple[cp.Stacks, ...]] = {}
        self.counted: set[int] = set()  # measured loops of which the segments have been saved
        self.next_stack = 0
        # What the forward sweep kept for the reverse sweep, by the statement's identity.
        self.kept: dict[int, tuple[n.Var, ...]] = {}
        self.conds: dict[int, n.Atom] = {}
        self.trips: dict[int, n.Atom] = {}
        self.bounds: dict[int, tuple[n.Atom, n.Atom]] = {}
        self.stacks: dict[int, tuple[tuple[n.Var, int], ...]] = {}
        self.segments: dict[int, tuple[cp.Stacks, n.Block, n.Block]] = {}

    def plain(self, block: n.Block, measure: bool = False) -> n.Block:
        """The block as it ran, with no effect on memory; nothing is saved."""
        out: list[n.Stmt] = []
        for s in block:
            b = Builder(self.names, s.span)
            if not self.effect_free(s, b):
                if isinstance(s, n.If):
                    then, orelse = self.plain(s.then, measure), self.plain(s.orelse, measure)
                    b.add(n.If(s.cond, then, orelse, s.span))
                elif isinstance(s, (n.For, n.While)):
                    loop: n.For | n.While = replace(s, body=self.plain(s.body, measure))
                    if isinstance(loop, n.While):
                        loop = replace(loop, test=self.plain(loop.test))
                    if measure and id(s) in self.measured:
                        self.most[id(s)] = b.variable(UINT64, "most")
                        cp.counted(b, loop, self.most[id(s)])
                    else:
                        b.add(loop)
                else:
                    b.add(s)
            out += b.stmts
        return tuple(out)

    def effect_free(self, s: n.Stmt, b: Builder) -> bool:
        """Handles what touches memory. True if the statement is done with."""
        if isinstance(s, (n.Store, n.Message)):
            return True
        if isinstance(s, n.Atomic):
            if s.dst is not None:
                self.read_journal(b, (s.dst,), s.site)
            return True
        if isinstance(s, n.Load) and s.site in self.sites:
            self.read_journal(b, (s.dst,), s.site)
            return True
        replay = s.func.replay if isinstance(s, n.Call) else None
        if isinstance(s, n.Call) and replay is not None and replay.native is not None:
            b.add(replace(s, func=replay))
            return True
        if isinstance(s, n.Call) and (s.site in self.sites or n.writes_memory(s.func)):
            self.read_journal(b, s.dsts, s.site)
            return True
        if isinstance(s, n.Call) and replay is not None:
            b.add(replace(s, func=replay))
            return True
        if isinstance(s, n.Let) and s.op == "replayed":
            b.add(n.Let(s.dst, "copy", s.args[1:], s.span))
            return True
        return False

    def read_journal(self, b: Builder, dsts: Sequence[n.Var], site: int) -> None:
        for dst in dsts:
            b.add(n.JournalRead(dst, self.journal, site, b.span))
            if site in self.sites:
                step = const(slots_of(dst.type), INT64)
                b.set(self.journal, b.op("add", self.journal, step))

    def saving(self, block: n.Block, outermost: bool = False) -> n.Block:
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
                then, orelse = self.saving(s.then, outermost), self.saving(s.orelse, outermost)
                b.add(n.If(cond, then, orelse, s.span))
            elif isinstance(s, (n.For, n.While)):
                self.loop(b, s, outermost)
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

    def stacks_for(self, variables: Sequence[n.Var]) -> tuple[tuple[n.Var, int], ...]:
        first = self.next_stack
        self.next_stack += len(variables)
        return tuple((v, first + i) for i, v in enumerate(variables))

    def loop(self, b: Builder, s: n.For | n.While, outermost: bool) -> None:
        body = self.plain(s.body, measure=outermost)
        test = self.plain(s.test) if isinstance(s, n.While) else ()
        carried = tuple(n.set_in((*test, *body)))
        self.save(b, s, carried)
        stacks = self.stacks[id(s)] = self.stacks_for(carried)
        if (not outermost or self.checkpoint) and cp.may_be_long(s):
            self.nested[id(s)] = (stacks,)
        pushes = push(stacks, s)
        if self.again:
            self.repeated[id(s)] = (test, body)
            pushes = []
        if self.checkpoint and cp.may_be_long(s):
            segments = self.stacks_for(carried)
            self.segments[id(s)] = (segments, test, body)
            self.nested[id(s)] = (stacks, segments)
            left, pushes = cp.checkpointed(b, segments, s)
            b.set(left, const(0, INT64))
        if isinstance(s, n.For):
            start, stop, step = (held(b, a) for a in (s.start, s.stop, s.step))
            self.bounds[id(s)] = (start, step)
            self.trips[id(s)] = trip_count(b, replace(s, start=start, stop=stop, step=step))
            # This copy has a loop variable of its own; the reverse sweep defines s.var.
            k = n.Var(self.names.fresh(s.var.name), s.var.type)
            copied, _ = fresh_copy(body, self.names, {s.var: k})
            b.add(n.For(k, start, stop, step, (*pushes, *copied), s.span))
            self.measure(b, s, outermost)
            return
        trips = b.variable(UINT64, "trips")
        b.set(trips, const(0, UINT64))
        tested, table = fresh_copy(test, self.names)
        cond = table.get(s.cond, s.cond) if isinstance(s.cond, n.Var) else s.cond
        copied, _ = fresh_copy(body, self.names)
        inner = b.child()
        inner.stmts += [*pushes, *copied]
        inner.set(trips, inner.op("add", trips, const(1, UINT64)))
        b.add(n.While(tested, cond, inner.block(), s.span))
        self.trips[id(s)] = b.op("copy", trips)
        self.measure(b, s, outermost)

    def measure(self, b: Builder, s: n.Stmt, outermost: bool) -> None:
        """Notes the iterations of a loop in segments, which are saved after effects."""
        if outermost and self.checkpoint and id(s) in self.measured:
            self.most[id(s)] = b.variable(UINT64, "most")
            b.set(self.most[id(s)], self.trips[id(s)])
            self.counted.add(id(s))

    def slots(self, b: Builder, k: int) -> n.Atom:
        """How often the reverse sweep saves what one iteration of a measured loop saves."""
        most = self.most[k]
        if not self.checkpoint:
            return most
        size = const(cp.SEGMENT, UINT64)
        once = b.op("min", most, size)
        if k in self.counted:
            return once
        segments = b.op("add", b.op("floordiv", most, size), const(1, UINT64))
        return b.op("add", once, segments)


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
        if id(s) in self.f.segments:
            segments, test, again = self.f.segments[id(s)]
            bounds = self.f.bounds.get(id(s))
            loop = cp.Loop(s, segments, stacks, trips, bounds, test, again)
            cp.reversed_in_segments(b, loop, lambda body, k: self.iteration(body, s, k))
        else:

            def back(body: Builder, k: n.Atom) -> None:
                if self.f.again:
                    self.repeat(body, s, k)
                else:
                    body.stmts += pop(stacks, s)
                self.iteration(body, s, k)

            cp.count_down(b, trips, back)
        for (v, _), was in zip(stacks, kept, strict=True):
            b.set(v, was)

    def repeat(self, b: Builder, s: n.For | n.While, k: n.Atom) -> None:
        """The loop from its start up to iteration k, without effects."""
        for (v, _), was in zip(self.f.stacks[id(s)], self.f.kept[id(s)], strict=True):
            b.set(v, was)
        test, body = self.f.repeated[id(s)]
        inner = b.child()
        j = b.temp(UINT64, "again")
        given: dict[n.Var, n.Atom] = {}
        inner.stmts += fresh_copy(test, self.names)[0]
        if isinstance(s, n.For):
            start, step = self.f.bounds[id(s)]
            given[s.var] = inner.op("add", start, offset_at(inner, step, j))
        inner.stmts += fresh_copy(body, self.names, given)[0]
        b.add(n.For(j, const(0, UINT64), k, const(1, UINT64), inner.block(), s.span))
        b.stmts += fresh_copy(test, self.names)[0]

    def iteration(self, body: Builder, s: n.For | n.While, k: n.Atom) -> None:
        """The reverse of iteration k, whose variables have been taken back."""
        if isinstance(s, n.For):
            start, step = self.f.bounds[id(s)]
            body.add(n.Let(s.var, "add", (start, offset_at(body, step, k)), s.span))
        forward = self.f.saving(s.body)
        backward = self.block(s.body)
        # Zero already, by the invariant of the rules: said here so that it is known.
        for x in n.walk(s.body):
            for d in n.defs_of(x):
                if not d.mutable and d in self.rules.vars:
                    body.set(self.rules.vars[d], const(0, d.type))  # type: ignore[arg-type]
        body.stmts += [*forward, *backward]


def _unsafe_calls(fn: n.Function, journaled: frozenset[str]) -> frozenset[int]:
    """Calls (of functions with a user's adjoint) that the backward pass cannot repeat."""
    out = set()
    for s in n.walk(fn.body):
        if isinstance(s, n.Call) and has_native_replay(s.func):
            continue  # its replay runs instead
        if isinstance(s, n.Call):
            # A replay runs in the recorded launch, and what it reads is what it read there.
            read = read_params(s.func.replay or s.func)
            touched = {
                a.name
                for p, a in zip(s.func.params, s.args, strict=True)
                if isinstance(a, n.Var) and p.name in read
            }
            if n.writes_memory(s.func) or touched & journaled:
                out.add(s.site)
    return frozenset(out)


def _journal_sites(fn: n.Function, journaled: frozenset[str]) -> frozenset[int]:
    loads = {s.site for s in n.walk(fn.body) if isinstance(s, n.Load) and s.array.name in journaled}
    atomics = {s.site for s in n.walk(fn.body) if isinstance(s, n.Atomic) and s.dst is not None}
    return frozenset(loads | atomics | _unsafe_calls(fn, journaled))


def _read_sites(fn: n.Function) -> frozenset[int]:
    return frozenset(s.site for s in n.walk(fn.body) if isinstance(s, n.JournalRead))


def reverse(
    fn: n.Function, wrt: frozenset[str], journaled: frozenset[str], checkpoint: bool = False
) -> Adjoint:
    """The adjoint of a prepared kernel.

    wrt: array parameters that have a gradient. journaled: array parameters whose
    elements the launch changes (or may change through another name), so that their
    reads cannot be repeated. Only reads whose values the reverse sweep needs end up
    in `sites`. checkpoint: save less in loops and run them once more; the sites are the
    same.
    """
    sites = _journal_sites(fn, journaled)
    measured: Mapping[int, int] = {}
    kept = _kept()
    while True:
        out, nested = _build(fn, wrt, sites, measured, checkpoint, kept)
        needed = _read_sites(out) & sites
        if needed == sites and nested == measured:
            return Adjoint(out, sites)
        sites, measured = needed, nested


def _build(
    fn: n.Function, wrt: frozenset[str], sites: frozenset[int], measured: Mapping[int, int],
    checkpoint: bool, kept: KeptAdjoints,
) -> tuple[n.Function, Mapping[int, int]]:  # fmt: skip
    """The adjoint, and what nested loops save in each iteration (in bytes, by identity)."""
    names = Names(names_in(fn))
    adjoints = {
        p.name: n.Var(names.fresh(f"adj_{p.name}"), p.type) for p in fn.params if p.name in wrt
    }
    journal = n.Var(names.fresh("journal"), INT64, mutable=True)
    forward = _Forward(names, journal, sites, measured, checkpoint)
    rules = AdjointRules(names, adjoints, active(fn, wrt), kept)
    sweep = forward.saving(fn.body, outermost=True)
    b = Builder(names, fn.span)
    b.stmts += sweep
    if forward.most:
        cp.reserve(b, [(forward.slots(b, k), measured[k]) for k in forward.most])
    b.stmts += _Reverse(forward, rules).block(fn.body)
    out = n.Function(
        name=f"{fn.name}_adjoint",
        params=(*fn.params, *adjoints.values()),
        results=(),
        body=b.block(),
        is_kernel=True,
        span=fn.span,
        adjoints=tuple((name, a.name) for name, a in adjoints.items()),
        mirrored=True,
    )
    out = remove_dead(gathered(in_place(remove_dead(propagate(out)))))
    live = {s.stack for s in n.walk(out.body) if isinstance(s, n.Push)}
    nested = {k: max(cp.saved_bytes(x, live) for x in stacks)
              for k, stacks in forward.nested.items()}  # fmt: skip
    return out, {k: size for k, size in nested.items() if size}


def backward_code(
    fn: n.Function, names: Names, moving: frozenset[n.Var],
    seeds: Sequence[tuple[n.Var, n.Atom]], kept: KeptAdjoints | None = None,
    arrays: Mapping[str, n.Var] = NO_ARRAYS,
) -> tuple[n.Block, Mapping[n.Var, n.Var]]:  # fmt: skip
    """Forward and reverse sweep of a body, and the adjoints of its variables.

    It saves nothing, so that it is code like any other, and writes no memory but the gradients of
    `arrays`. seeds: results and their cotangents. moving: the active variables.
    """
    journal = n.Var(names.fresh("journal"), INT64, mutable=True)
    forward = _Forward(names, journal, frozenset(), {}, False, again=True)
    rules = AdjointRules(names, arrays, moving, kept or _kept())
    b = Builder(names, fn.span)
    b.stmts += forward.saving(fn.body)
    for r, ct in seeds:
        rules.add(b, r, ct)
    b.stmts += _Reverse(forward, rules).block(fn.body)
    return b.block(), rules.vars


def _kept() -> KeptAdjoints:
    """Makes adjoints of functions that are kept, and of those that these call."""
    out = KeptAdjoints(lambda fn, names, moving, cts: backward_code(fn, names, moving, cts, out))
    return out
