"""Collects the accesses of each thread of a kernel, with indices as affine sums.

Works on any kernel, calls and jumps included: a kernel as lowered, its adjoint, its tangent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, fields, is_dataclass
from itertools import pairwise
from typing import Literal

from engine.ad.threads.affine import (
    Axis,
    Fact,
    Form,
    Given,
    Poly,
    Turn,
    Value,
)
from engine.ad.threads.bounds import Bounds
from engine.ad.threads.conditions import ALWAYS, LOGIC, NEVER, Condition, compared, joined
from engine.ad.threads.integers import result
from engine.ad.threads.light import LIGHT, is_light
from engine.cached import cached_property
from engine.classes import dataclass
from engine.diagnostics import UNKNOWN, Span
from engine.ir import nodes as n
from engine.lang.types import ArrayType, ScalarType, is_integer

Touch = Literal[
    "read", "store", "take", "add", "min", "max", "and", "or", "xor", "ordered", "native"
]
# Statements looked at, calls followed: a kernel with more is not worth the time.
LIMIT = 40_000
_TURNS = 8  # iterations of a loop of which nothing is known,
_INNER = 2  # and of another such loop in it
# What is done under a condition is done half of the time, as a guess; never counted less than this.
_SELDOM = 0.25
_SLOW = frozenset(
    ["acos", "asin", "atan", "atan2", "cbrt", "cos", "cosh", "div", "eig3", "erf", "exp", "inverse",
     "length", "log", "log10", "log2", "mod", "normalize", "pow", "qr3", "sin", "sinh", "sqrt",
     "svd2", "svd3", "tan", "tanh"]
)  # fmt: skip


@dataclass(frozen=True)
class Access:
    """One statement that touches an array.

    kind: `ordered` is an atomic whose result is used, or that takes the place of a value; what
    atomic minima and maxima keep for the journal is no use of theirs. `take` is the adjoint of
    what replaces a value: the gradient is read, and is zero then. `native` is text that may do
    anything. index: for each dimension, None where nothing is
    known. facts: hold where it runs.
    """

    array: str
    kind: Touch
    index: tuple[Value | None, ...]
    facts: tuple[Fact, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Collected:
    """Everything that a kernel touches.

    known: False where there is more than could be looked at. stops: a thread can end the launch,
    or runs native text that may keep a state of its own.
    costs: operations of a thread, each group with the loops around it; None is a loop of which
    the number of iterations is not known. What is under conditions counts in part.
    """

    accesses: tuple[Access, ...]
    known: bool
    stops: bool
    costs: tuple[tuple[tuple[Turn | None, ...], float], ...]

    @cached_property
    def symbols(self) -> frozenset[Given]:
        """The arguments and extents that decide anything; others may be what they like."""
        found: set[Given] = set()
        seen: set[int] = set()
        for a in self.accesses:
            for v in (*a.index, *(f.value for f in a.facts)):
                if v is not None:
                    gather(v, found, seen)
        for turns, _ in self.costs:
            gather(turns, found, seen)
        return frozenset(found)

    def cost(self, bounds: Bounds) -> int:
        """Operations of one thread, in a launch; about."""
        total = 0.0
        for turns, count in self.costs:
            guess = _TURNS
            for turn in turns:
                reach = None if turn is None else bounds.range(turn)
                count *= guess if reach is None else reach[1] + 1
                guess = _INNER if reach is None else guess
            total += count
        return math.ceil(total)


def gather(x: object, found: set[Given], seen: set[int]) -> None:
    """Adds the symbols of a form, a value, a coordinate, or of several. seen: known already."""
    if isinstance(x, Given):
        found.add(x)
    elif isinstance(x, (tuple, frozenset)):
        for inner in x:
            gather(inner, found, seen)
    elif is_dataclass(x) and id(x) not in seen:
        seen.add(id(x))
        for f in fields(x):
            gather(getattr(x, f.name), found, seen)


class _TooMuch(Exception):
    pass


def collect(fn: n.Function) -> Collected:
    """Looks at a kernel. Its array parameters are told apart by name; see `classify`."""
    c = _Collector()
    arrays: dict[n.Var, str] = {}
    env: _Env = {}
    for p in fn.params:
        if isinstance(p.type, ArrayType):
            arrays[p] = p.name
        elif isinstance(p.type, ScalarType) and is_integer(p.type):
            env[p] = Value(Form(Poly.symbol(Given(p.name))))
    known = True
    c.takes = _takes(fn)
    try:
        _Frame(c, fn, env, arrays, ()).block(fn.body)
    except _TooMuch:
        known = False
    if known and is_light(fn, (a.index for a in c.accesses), _SLOW):
        c.costs = {turns: cost * LIGHT for turns, cost in c.costs.items()}
    return Collected(tuple(c.accesses), known, c.stops, tuple(c.costs.items()))


_Known = Value | Condition | None
_Env = dict[n.Var, _Known]


class _Collector:
    def __init__(self) -> None:
        self.accesses: dict[Access, None] = {}
        self.costs: dict[tuple[Turn | None, ...], float] = {}
        self.stops = False
        self.left = LIMIT
        self.numbers = 0
        # Statements, by identity: see `_takes` and, for each function, `_idle`.
        self.takes: frozenset[int] = frozenset()
        self._idle: dict[int, frozenset[int]] = {}

    def idle(self, fn: n.Function) -> frozenset[int]:
        if id(fn) not in self._idle:
            self._idle[id(fn)] = _idle(fn)
        return self._idle[id(fn)]

    def fresh(self) -> int:
        self.numbers += 1
        return self.numbers


class _Frame:
    """One call of a function: what its variables are."""

    def __init__(
        self, c: _Collector, fn: n.Function, env: _Env, arrays: dict[n.Var, str],
        turns: tuple[Turn | None, ...],
    ) -> None:  # fmt: skip
        self.c, self.env, self.arrays, self.turns = c, env, arrays, turns
        self.idle = c.idle(fn)
        self.facts: tuple[Fact, ...] = ()
        self.often = 1.0  # how often a statement runs, of each time that what is around it does
        self.results: tuple[_Known, ...] | None = None

    # ---- atoms

    def known(self, a: n.Atom) -> _Known:
        if isinstance(a, n.Var):
            return self.env.get(a)
        if isinstance(a.value, bool):
            return ALWAYS if a.value else NEVER
        if isinstance(a.value, int) and isinstance(a.type, ScalarType) and is_integer(a.type):
            return Value(Form.of(a.value))
        return None

    def value(self, a: n.Atom) -> Value | None:
        found = self.known(a)
        return found if isinstance(found, Value) else None

    def condition(self, a: n.Atom) -> Condition:
        found = self.known(a)
        return found if isinstance(found, Condition) else Condition()

    # ---- blocks

    def block(self, block: n.Block) -> bool:
        """Looks at statements in order; says whether what follows them may run."""
        outer = self.facts
        try:
            for s in block:
                self.c.left -= 1
                if self.c.left < 0:
                    raise _TooMuch
                if s.LEAVES:
                    if isinstance(s, n.Return):
                        self.leave(s)
                    return False
                if not self.statement(s):
                    return False
            return True
        finally:
            self.facts = outer

    def leave(self, s: n.Return) -> None:
        values = tuple(self.known(v) for v in s.values)
        if self.results is None:
            self.results = values
        else:
            both = zip(self.results, values, strict=True)
            self.results = tuple(a if a == b else None for a, b in both)

    def spend(self, cost: int) -> None:
        self.c.costs[self.turns] = self.c.costs.get(self.turns, 0) + cost * self.often

    def statement(self, s: n.Stmt) -> bool:
        if isinstance(s, n.If):
            return self.branch(s)
        self.spend(8 if isinstance(s, n.Let) and s.op in _SLOW else 1)
        if isinstance(s, n.Let):
            self.env[s.dst] = self.operation(s)
        elif isinstance(s, n.Set):
            self.env[s.dst] = self.known(s.value)
        elif isinstance(s, n.Load):
            self.touch(s, "take" if id(s) in self.c.takes else "read")
        elif isinstance(s, n.Store):
            self.touch(s, "take" if id(s) in self.c.takes else "store")
        elif isinstance(s, n.Atomic):
            self.atomic(s)
        elif isinstance(s, n.Call):
            self.call(s)
        elif isinstance(s, n.For):
            self.counted(s)
        elif isinstance(s, n.While):
            self.loop(s)
        else:
            if isinstance(s, n.Message) and s.kind == "assert":
                self.c.stops = True
            for v in n.defs_of(s):
                self.env[v] = None
        return True

    def branch(self, s: n.If) -> bool:
        self.spend(1)
        cond = self.condition(s.cond)
        changed = list(n.set_in((s,)))
        before = {v: self.env.get(v) for v in changed}
        outer, often = self.facts, self.often
        self.often = max(often / 2, _SELDOM)
        self.facts = (*outer, *cond.true)
        on_then = self.block(s.then)
        taken = {v: self.env.get(v) for v in changed}
        self.env.update(before)
        self.facts = (*outer, *cond.false)
        on_else = self.block(s.orelse)
        self.facts, self.often = outer, often
        if on_then and on_else:
            for v in changed:
                self.env[v] = _joined(cond, taken[v], self.env.get(v))
        elif on_then:
            self.env.update(taken)
            self.facts = (*outer, *cond.true)
        elif on_else:
            self.facts = (*outer, *cond.false)
        return on_then or on_else

    def counted(self, s: n.For) -> None:
        start, stop, step = (self.value(a) for a in (s.start, s.stop, s.step))
        turn, facts = None, self.facts
        self.env[s.var] = None
        if start is not None and stop is not None and step is not None and step.form.uniform:
            by = step.form.constant
            turn = Turn(self.c.fresh(), start.form, stop.form, by)
            needs = start.needs | stop.needs | step.needs
            var = Value(start.form + Form.along(turn).times(by), needs)
            self.env[s.var] = var
            if by.number:
                sign = Poly.of(1 if by.number > 0 else -1)
                since = Value((var.form - start.form).times(sign), needs)
                until = Value((stop.form - var.form).times(sign) + Form.of(-1), needs)
                facts = (*facts, Fact(since), Fact(until))
        self.iterate(s, turn, facts, (s.body,))

    def loop(self, s: n.While) -> None:
        self.iterate(s, None, self.facts, (s.test, s.body), s.cond)

    def iterate(
        self, s: n.Stmt, turn: Turn | None, facts: tuple[Fact, ...],
        blocks: Sequence[n.Block], cond: n.Atom | None = None,
    ) -> None:  # fmt: skip
        """A loop: what changes in it is not known at its begin, nor after it."""
        changed = [v for v in n.set_in((s,)) if v in self.env]
        for v in changed:
            self.env[v] = None
        outer, around = self.facts, self.turns
        self.facts, self.turns = facts, (*around, turn)
        for k, block in enumerate(blocks):
            if k and cond is not None:
                self.facts = (*facts, *self.condition(cond).true)
            self.block(block)
        self.facts, self.turns = outer, around
        for inner in n.walk((s,)):
            for v in n.defs_of(inner):
                self.env[v] = None

    # ---- calls

    def call(self, s: n.Call) -> None:
        fn = s.func
        names = {p: self.arrays[a] for p, a in zip(fn.params, s.args, strict=True)
                 if isinstance(a, n.Var) and a in self.arrays}  # fmt: skip
        for d in s.dsts:
            self.env[d] = None
        if fn.native is not None:
            self.native(fn.native, names, s)
            return
        given = {p: self.known(a) for p, a in zip(fn.params, s.args, strict=True) if p not in names}
        inner = _Frame(self.c, fn, given, names, self.turns)
        inner.facts, inner.often = self.facts, self.often
        inner.block(fn.body)
        if inner.results is not None and s.dsts:
            self.env.update(zip(s.dsts, inner.results, strict=True))

    def native(self, native: n.Native, names: dict[n.Var, str], s: n.Call) -> None:
        self.spend(20)
        self.c.stops = self.c.stops or not native.pure
        for p, name in names.items():
            unknown = (None,) * (p.type.ndim if isinstance(p.type, ArrayType) else 1)
            # The text of an adjoint may write any array.
            if p.name in native.writes | native.updates or native.inputs is not None:
                self.add(Access(name, "native", unknown, self.facts, s.span))
            elif p.name in native.reads:
                self.add(Access(name, "read", unknown, self.facts, s.span))

    # ---- memory

    def atomic(self, s: n.Atomic) -> None:
        kind: Touch = "ordered"
        idle = id(s) in self.idle
        if idle and s.kind in ("add", "sub"):
            kind = "add"
        elif idle and s.kind not in ("exch", "cas"):
            kind = s.kind  # type: ignore[assignment]
        self.touch(s, kind)

    def touch(self, s: n.Load | n.Store | n.Atomic, kind: Touch) -> None:
        if not isinstance(s, n.Store) and s.dst is not None:
            self.env[s.dst] = None
        index = tuple(self.value(a) for a in s.index)
        self.add(Access(self.arrays[s.array], kind, index, self.facts, s.span))

    def add(self, a: Access) -> None:
        self.c.accesses.setdefault(a)

    # ---- operations

    def operation(self, s: n.Let) -> _Known:
        if s.op == "tid":
            axis = s.args[0]
            assert isinstance(axis, n.Const) and isinstance(axis.value, int)
            return Value(Form.along(Axis(axis.value)))
        if s.op in ("copy", "within"):
            return self.known(s.args[0])
        if s.op == "shape":
            array, d = s.args
            assert isinstance(array, n.Var)
            if isinstance(d, n.Const) and isinstance(d.value, int):
                return Value(Form(Poly.symbol(Given(self.arrays[array], d.value))))
            return None
        if s.op in LOGIC:
            return LOGIC[s.op](*map(self.condition, s.args))
        args = [self.value(a) for a in s.args]
        if s.op in ("lt", "le", "gt", "ge", "eq") and args[0] is not None and args[1] is not None:
            return compared(s.op, args[0], args[1])
        t = s.dst.type
        if not isinstance(t, ScalarType) or not is_integer(t):
            return None
        return result(s.op, t, args, self.c.fresh)


def _joined(cond: Condition, then: _Known, orelse: _Known) -> _Known:
    """What a variable is after a branch."""
    if isinstance(then, Condition) and isinstance(orelse, Condition):
        return joined(cond, then, orelse)
    return then if then == orelse else None


def _takes(fn: n.Function) -> frozenset[int]:
    """What takes gradients, by identity: a store of zero, and the load that it follows."""
    gradients = {name for _, name in fn.adjoints}
    out: set[int] = set()
    for a, b in pairwise((None, *n.walk(fn.body))):
        zero = isinstance(b, n.Store) and isinstance(b.value, n.Const) and not b.value.value
        if isinstance(b, n.Store) and zero and b.array.name in gradients:
            out.add(id(b))
            if isinstance(a, n.Load) and (a.array, a.index, a.path) == (b.array, b.index, b.path):
                out.add(id(a))
    return frozenset(out)


def _idle(fn: n.Function) -> frozenset[int]:
    """The atomics whose results nothing uses, by identity."""
    used: set[n.Atom] = set()
    journaled: set[n.Atom] = set()
    atomics = []
    for s in n.walk(fn.body):
        (journaled if isinstance(s, n.JournalWrite) else used).update(n.uses_of(s))
        if isinstance(s, n.Atomic):
            atomics.append(s)
    return frozenset(
        id(s) for s in atomics
        if s.dst is None
        or (s.dst not in used and (s.kind in ("min", "max") or s.dst not in journaled))
    )  # fmt: skip
