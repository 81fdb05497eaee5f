"""Adjoints that are wrong on purpose: a check that cannot see them is none.

A spoiled adjoint is the right one with a table as a further parameter, which says at run time
what is wrong with it. So one compilation serves every mutant of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine import ad
from engine.autograd import problem
from engine.autograd.results import LaunchResult
from engine.autograd.tape_check import Options, arguments, run_checks
from engine.autograd.tolerance import AUTO_FLOOR, AUTO_RTOL
from engine.compile.pipeline import Form, Request, Variants, prefetch
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.rewrite import names_in
from engine.lang.types import FLOAT64, INT32, ArrayType, is_float, scalar_of, shape_of
from engine.runtime.device import HOST
from engine.runtime.pack import pack_arguments
from engine.runtime.plan import Plan
from engine.tape.records import LaunchRecord
from engine.tape.tape import Tape

TABLE = ArrayType(FLOAT64, 1)


@dataclass(frozen=True, slots=True)
class Mutation:
    """What is wrong with an adjoint: what it adds to gradients is multiplied by `factor`.

    thread: only by threads with this first index. component: only in this component of
    vectors, or column of a matrix's first row. iteration: only in this iteration (of all that
    the thread runs) of a loop of the reverse sweep, where factors also fall on adjoints that
    the loop carries. shift: elements are added to the neighbour this far on. -1 (0 for the
    shift) stands for no such limit.
    """

    kind: str
    factor: float = 1.0
    thread: int = -1
    component: int = -1
    iteration: int = -1
    shift: int = 0

    def row(self) -> list[float]:
        """The table's contents."""
        return [self.factor, self.thread, self.component, self.iteration, self.shift]


NONE = Mutation("none")
MUTATIONS = (
    Mutation("factor 1.0001", 1.0001),
    Mutation("factor 1.001", 1.001),
    Mutation("factor 1.01", 1.01),
    Mutation("factor 1.5", 1.5),
    Mutation("sign", -1.0),
    Mutation("zero", 0.0),
    Mutation("one component", 1.01, component=1),
    Mutation("one thread", 1.01, thread=1),
    Mutation("one iteration", 1.01, iteration=1),
    Mutation("swapped index", shift=1),
)


class Spoiled(Variants):
    """The variants of a kernel with a spoiled adjoint, wrong as `mutate` says."""

    def __init__(self, ir: n.Function, table: Any = None) -> None:
        super().__init__(ir)
        self._table = np.array(NONE.row()) if table is None else table

    def mutate(self, mutation: Mutation) -> None:
        """Makes it wrong in this way from now on."""
        self._table[:] = mutation.row()

    def function(self, form: Form, wrt: frozenset[str], journaled: frozenset[str]) -> n.Function:
        fn = super().function(form, wrt, journaled)
        if form != "adjoint":
            return fn
        count = len(self.ir.params)
        return spoiled(fn, frozenset(p.name for p in fn.params[count:]))

    def bound(self, form: Form) -> bytes:
        return pack_arguments([TABLE], [self._table]) if form == "adjoint" else b""


@contextmanager
def spoiling(plan: Plan) -> Iterator[Spoiled]:
    """While active, the kernel's checks use an adjoint that can be made wrong."""
    right = plan.variants
    own = Spoiled(right.ir)
    exact = Spoiled(ad.guard(ad.lift(right.ir)), own._table)
    problem._lifted[id(own)] = (own, exact)
    plan.variants = own
    try:
        yield own
    finally:
        plan.variants = right
        del problem._lifted[id(own)]


class Trial:
    """A tape with one launch, whose adjoint can be made wrong. Use it in a `with` block.

    Raises ValueError for a tape with another number of launches.
    """

    def __init__(self, tape: Tape, seed: int = 0) -> None:
        found = [r for r in tape.records if isinstance(r, LaunchRecord)]
        if len(found) != 1:
            raise ValueError(f"expected a tape with one launch, found {len(found)}")
        self.tape = tape
        self.record = found[0]
        self.options = Options(seed=seed, whole=False)
        self._spoiling = spoiling(self.record.plan)

    def __enter__(self) -> Trial:
        self.spoiled = self._spoiling.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._spoiling.__exit__(*exc)  # type: ignore[arg-type]

    def requests(self) -> list[Request]:
        """What its checks compile, to be compiled together with others'."""
        own = self.spoiled
        out: list[Request] = []
        wrt, journaled = self.record.wrt, self.record.selection.journaled
        none: frozenset[str] = frozenset()
        for v in (own, problem.lifted(own)):
            host = HOST.backend
            out += [(host, v, "forward", none, none), (host, v, "adjoint", wrt, journaled)]
            if v.needs_journal(wrt, journaled):
                out.append((host, v, "recorded", wrt, journaled))
        return out

    def check(self, mutation: Mutation = NONE) -> LaunchResult:
        """The check of the launch with an adjoint that is wrong in this way."""
        self.spoiled.mutate(mutation)
        try:
            return run_checks(self.tape, self.options).launches[0]
        finally:
            self.spoiled.mutate(NONE)

    def changes(self, mutation: Mutation) -> bool:
        """Whether the mutation changes the gradient of this launch by more than is tolerated."""
        args, _ = arguments(self.record)
        both = problem.Problem(self.spoiled, problem.lifted(self.spoiled), args, self.record.dim)
        exact = both.exact
        try:
            rng = np.random.default_rng(7)
            w = {b: rng.standard_normal(exact.initial[b].shape) for b in both.outputs}
            right = {a: exact.vjp(w)[a].copy() for a in both.inputs}
            self.spoiled.mutate(mutation)
            wrong = exact.vjp(w)
            with np.errstate(all="ignore"):
                return any(
                    bool(
                        np.any(
                            np.abs(wrong[a] - g)
                            > AUTO_RTOL * np.abs(g) + AUTO_FLOOR * np.abs(g).max(initial=0.0)
                        )
                    )
                    for a, g in right.items()
                )
        finally:
            self.spoiled.mutate(NONE)
            both.close()


# ---- the pass


def spoiled(fn: n.Function, adjoints: frozenset[str]) -> n.Function:
    """An adjoint kernel that takes a table (see `Mutation.row`) after its own parameters.

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


__all__ = ["MUTATIONS", "NONE", "Mutation", "Spoiled", "Trial", "prefetch", "spoiling"]
