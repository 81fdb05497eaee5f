"""Copy and constant propagation, and removal of dead code, on structured IR.

Both work on functions without break and continue. They are what lets the other passes
emit code without caring about its economy.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any

from engine.ad.components import component
from engine.ir import nodes as n
from engine.ir.builder import const
from engine.ir.rewrite import map_stmt
from engine.lang.types import ArrayType, is_float

Env = dict[n.Var, n.Atom]


def _number(a: n.Atom) -> object:
    return a.value if isinstance(a, n.Const) else None


def is_zero(a: n.Atom) -> bool:
    return isinstance(a, n.Const) and a == const(0, a.type)


def _is(a: n.Atom, value: float) -> bool:
    return isinstance(a, n.Const) and not isinstance(a.value, tuple) and a == const(value, a.type)


def _fold(op: str, args: tuple[n.Atom, ...]) -> n.Atom | None:
    """The atom that an operation is equal to, where that is known without computing.

    x * 0 is not folded: it is not 0 for NaN and Inf.
    """
    if op == "copy":
        return args[0]
    if op == "add":
        if is_zero(args[0]):
            return args[1]
        if is_zero(args[1]):
            return args[0]
    elif (op == "sub" and is_zero(args[1])) or (
        op in ("mul", "scale", "div", "unscale") and _is(args[1], 1)
    ):
        return args[0]
    elif op == "mul" and _is(args[0], 1):
        return args[1]
    elif op == "select" and isinstance(args[0], n.Const):
        return args[1] if args[0].value else args[2]
    elif op in ("land", "lor"):
        absorbing = op == "lor"
        for one, other in (args, args[::-1]):
            if isinstance(one, n.Const):
                return one if bool(one.value) is absorbing else other
    elif op == "lnot" and isinstance(args[0], n.Const):
        return n.Const(not args[0].value, args[0].type)
    return None


def forget(env: MutableMapping[Any, n.Atom], block: n.Block) -> None:
    """Forgets what is known of the variables that a block changes."""
    for v in n.set_in(block):
        env.pop(v, None)


class _Propagate:
    def __init__(self) -> None:
        # Temporaries never change, so what one is equal to holds everywhere.
        self.alias: Env = {}
        # How values were put together from components.
        self.made: dict[n.Var, n.Let] = {}
        # Mutable variables that the present block, as it was, has changed so far.
        self.changed: dict[n.Var, None] = {}

    def atom(self, a: n.Atom, env: Env) -> n.Atom:
        if not isinstance(a, n.Var):
            return a
        if a.mutable:
            return env.get(a, a)
        return self.alias.get(a, a)

    def block(self, block: n.Block, env: Env) -> n.Block:
        out: list[n.Stmt] = []
        for s in block:
            self.stmt(s, env, out)
        return tuple(out)

    def stmt(self, s: n.Stmt, env: Env, out: list[n.Stmt]) -> None:
        self.changed.update([(v, None) for v in n.defs_of(s) if v.mutable])
        if isinstance(s, n.If):
            self.branch(s, env, out)
        elif isinstance(s, (n.For, n.While)):
            self.loop(s, env, out)
        elif isinstance(s, n.Let):
            args = tuple(self.atom(a, env) for a in s.args)
            same = component(args, self.made) if s.op == "extract" else _fold(s.op, args)
            if same is not None and not (isinstance(same, n.Var) and same.mutable):
                self.alias[s.dst] = same
            else:
                kept = n.Let(s.dst, s.op, args, s.span)
                if s.op in ("construct", "fill", "insert"):
                    self.made[s.dst] = kept
                out.append(kept)
        elif isinstance(s, n.Set):
            value = self.atom(s.value, env)
            if value == s.dst:
                return
            if isinstance(value, n.Var) and value.mutable:
                env.pop(s.dst, None)
            else:
                env[s.dst] = value
            out.append(n.Set(s.dst, value, s.span))
        else:
            defined = set(n.defs_of(s))
            out.append(map_stmt(s, lambda a: a if a in defined else self.atom(a, env), lambda b: b))
            for d in defined:
                env.pop(d, None)

    def branch(self, s: n.If, env: Env, out: list[n.Stmt]) -> None:
        cond = self.atom(s.cond, env)
        if isinstance(cond, n.Const):
            out.extend(self.block(s.then if cond.value else s.orelse, env))
            return
        yes, no = dict(env), dict(env)
        outer, self.changed = self.changed, {}
        then, orelse = self.block(s.then, yes), self.block(s.orelse, no)
        inner, self.changed = self.changed, outer
        self.changed |= inner
        for v in inner:
            if v in yes and yes[v] == no.get(v):
                env[v] = yes[v]
            else:
                env.pop(v, None)
        out.append(n.If(cond, then, orelse, s.span))

    def loop(self, s: n.For | n.While, env: Env, out: list[n.Stmt]) -> None:
        if isinstance(s, n.For):
            start, stop, step = (self.atom(a, env) for a in (s.start, s.stop, s.step))
            forget(env, s.body)
            out.append(n.For(s.var, start, stop, step, self.block(s.body, dict(env)), s.span))
            return
        forget(env, (*s.test, *s.body))
        # Facts from the test stay in the test: a body may not use its temporaries, since
        # the reverse sweep runs the body again without it.
        inner = dict(env)
        test = self.block(s.test, inner)
        cond = self.atom(s.cond, inner)
        out.append(n.While(test, cond, self.block(s.body, dict(env)), s.span))


def propagate(fn: n.Function) -> n.Function:
    """Replaces variables by the temporaries and constants that they are known to equal."""
    zero: Env = {
        v: const(0, v.type) for v in n.set_in(fn.body) if not isinstance(v.type, ArrayType)
    }
    return replace(fn, body=_Propagate().block(fn.body, zero))


class _Dead:
    """Backward liveness. A variable is live only if a live statement or an effect reads it."""

    def __init__(self) -> None:
        self.stacks: set[int] = set()  # stacks with a live Pop

    def has_effect(self, block: n.Block) -> bool:
        for s in n.walk(block):
            if s.EFFECT or s.LEAVES:
                return True
            if isinstance(s, n.Push) and s.stack in self.stacks:
                return True
            if isinstance(s, n.Call) and n.writes_memory(s.func):
                return True
        return False

    def block(self, block: n.Block, live: set[n.Var]) -> n.Block:
        """The block without dead statements; `live` goes from after it to before it."""
        out: list[n.Stmt] = []
        for s in reversed(block):
            kept = self.stmt(s, live)
            if kept is not None:
                out.append(kept)
        return tuple(reversed(out))

    def use(self, s: n.Stmt, live: set[n.Var]) -> None:
        live.difference_update(n.defs_of(s))
        live.update(a for a in n.uses_of(s) if isinstance(a, n.Var))

    def stmt(self, s: n.Stmt, live: set[n.Var]) -> n.Stmt | None:
        if isinstance(s, (n.Let, n.Set, n.Load, n.JournalRead)):
            if s.dst not in live:
                return None
            self.use(s, live)
            return s
        if isinstance(s, n.Call):
            if not (live & set(s.dsts)) and not n.writes_memory(s.func):
                return None
            self.use(s, live)
            return s
        if isinstance(s, n.Pop):
            if s.dst in live:
                self.stacks.add(s.stack)
                live.discard(s.dst)
            return s if s.stack in self.stacks else None
        if isinstance(s, n.Push):
            if s.stack not in self.stacks:
                return None
            self.use(s, live)
            return s
        if isinstance(s, n.If):
            other = set(live)
            then, orelse = self.block(s.then, live), self.block(s.orelse, other)
            live |= other
            if not then and not orelse:
                return None
            self.use(s, live)
            return n.If(s.cond, then, orelse, s.span)
        if isinstance(s, n.For):
            return self.counted(s, live)
        if isinstance(s, n.While):
            return self.whiled(s, live)
        self.use(s, live)
        return s

    def needed(self, blocks: n.Block, live: set[n.Var]) -> bool:
        defined = {d for s in n.walk(blocks) for d in n.defs_of(s)}
        return bool(defined & live) or self.has_effect(blocks)

    def counted(self, s: n.For, live: set[n.Var]) -> n.Stmt | None:
        if not self.needed(s.body, live):
            return None
        while True:
            inside = set(live)
            body = self.block(s.body, inside)
            if inside <= live:
                break
            live |= inside
        if not body:
            return None
        out = n.For(s.var, s.start, s.stop, s.step, body, s.span)
        self.use(out, live)
        return out

    def whiled(self, s: n.While, live: set[n.Var]) -> n.Stmt | None:
        if not self.needed((*s.test, *s.body), live):
            return None
        if isinstance(s.cond, n.Var):
            live.add(s.cond)
        while True:
            inside = set(live)  # what is live before the next test
            body = self.block(s.body, inside)
            inside |= live
            test = self.block(s.test, inside)
            if inside <= live:
                break
            live |= inside
        return n.While(test, s.cond, body, s.span)


def remove_dead(fn: n.Function) -> n.Function:
    """The function without statements whose results nothing uses."""
    pass_ = _Dead()
    while True:
        before = set(pass_.stacks)
        body = pass_.block(fn.body, set())
        if pass_.stacks == before:
            return replace(fn, body=body)


def float_params(fn: n.Function) -> tuple[n.Var, ...]:
    """Array parameters whose elements can carry a derivative."""
    return tuple(p for p in fn.params if isinstance(p.type, ArrayType) and is_float(p.type))
