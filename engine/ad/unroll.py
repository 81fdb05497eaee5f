"""Unrolls short loops over the components of local vectors and matrices.

A loop that goes through components by number keeps the whole value in memory: compilers know
neither which component an iteration reads nor which it changes, and the reverse sweep saves all
of them for each iteration. Where the turns are known, the loop is written out, so that every
component has a constant place and `engine.ad.scalars` makes a variable of it.

What is computed, and in which order, stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from engine.ad.cleanup import forget, propagate, remove_dead
from engine.ad.prepare import inline, inlined_size, numbered
from engine.ad.scalars import heavy, scalars
from engine.ad.structure import known_trips
from engine.classes import dataclass
from engine.ir import nodes as n
from engine.ir.builder import Names
from engine.ir.ops import OPS
from engine.ir.rewrite import Rewriter, map_stmt, names_in
from engine.ir.sites import computed, indices, placed
from engine.lang.types import ScalarType, ValueType

# Turns of a loop, and statements of all loops of a function, that are written out at most.
TURNS, MOST = 64, 10_000
LONG = 64  # bytes of a value that is long
# Operations on whole numbers whose value is found here where their operands are constants.
_FOLDED = frozenset((
    "add", "sub", "mul", "neg", "min", "max", "mod", "floordiv", "cast", "copy", "wrap_index",
    "within", "eq", "ne", "lt", "le", "gt", "ge", "land", "lor", "lnot",
))  # fmt: skip


def unroll(fn: n.Function) -> n.Function:
    """A prepared kernel with such loops written out; itself where there are none."""
    out = _unrolled(fn)
    return out if out is fn else numbered(out)


def write_out(fn: n.Function, most: int = MOST) -> n.Function:
    """A kernel as lowered, and the functions that it calls, with such loops written out.

    most: statements that are written out, at most, in each.
    """
    return _WriteOut(most).function(fn)


class _WriteOut(Rewriter):
    """Functions that change become a part of what calls them, where that is not much: compilers
    leave long ones calls, and run no threads together then.
    """

    custom = False

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.changed: set[int] = set()  # functions, by identity
        self.within: list[_Room] = []

    def change(self, fn: n.Function) -> n.Function:
        self.within.append(_Room(Names(names_in(fn))))
        out = super().change(fn)
        self.within.pop()
        out = _unrolled(out, self.most)
        if out is not fn:
            self.changed.add(id(out))
        return out

    def stmt(self, s: n.Stmt) -> n.Stmt | Iterable[n.Stmt]:
        if not isinstance(s, n.Call) or id(s.func) not in self.changed or not _is_plain(s.func):
            return s
        room = self.within[-1]
        size = inlined_size(s.func)
        if size > room.left:
            return s
        room.left -= size
        return inline((s,), room.names)


@dataclass
class _Room:
    """What may still become a part of a function, in statements."""

    names: Names
    left: int = 1_000


def _is_plain(fn: n.Function) -> bool:
    """Whether a function and what it calls end with a return, and are all that is run."""
    return all(
        f.grad is None and f.replay is None and f.native is None and f.kept is None
        and not any(s.LEAVES or isinstance(s, n.Message) for s in n.walk(f.body[:-1]))
        for f in (fn, *n.callees(fn))
    )  # fmt: skip


def _unrolled(fn: n.Function, most: int = MOST) -> n.Function:
    if not any(isinstance(s, n.For) and _wanted(s) for s in n.walk(fn.body)):
        return fn
    banned: set[int] = set()
    while True:
        unroller = _Unroller(Names(names_in(fn)), most, banned)
        body = unroller.block(fn.body, {})
        fixed = _in_memory(body) | heavy(body)
        vain = {loop for loop, values in unroller.done.items() if _in_vain(values, fixed)}
        if not vain:
            break
        banned |= vain
    if not unroller.done:
        return fn
    wanted = {v for values in unroller.done.values() for v in values if v.mutable}
    out = scalars(replace(fn, body=body), [v for v in n.set_in(body) if v in wanted])
    if any(isinstance(s, (n.Break, n.Continue)) for s in n.walk(body)):
        return out  # which those passes do not know
    return remove_dead(propagate(out))


def _wanted(s: n.For) -> bool:
    """Whether a loop has known turns, and goes through components by number."""
    turns = known_trips(s)
    return (
        turns is not None and 0 < turns <= TURNS and _goes_through(s.body) and not _leaves(s.body)
    )


def _goes_through(block: n.Block) -> bool:
    return any(isinstance(s, n.Let) and computed(indices(s)) for s in n.walk(block))


def _leaves(block: n.Block) -> bool:
    """Whether a loop with this body may end a turn early, or says something."""
    for s in block:
        if isinstance(s, (n.Break, n.Continue, n.Message)):
            return True
        if any(_leaves(b) for b in n.blocks_of(s)):
            return True
    return False


def _in_vain(values: set[n.Var], fixed: set[n.Atom]) -> bool:
    """Whether a loop is written out for nothing, as its values are in memory all the same.

    Of long ones, the reverse sweep would keep a copy for each turn.
    """
    left = values & fixed
    return bool(left) and (left == values or any(v.type.size > LONG for v in left))  # type: ignore[union-attr]


def _in_memory(block: n.Block) -> set[n.Atom]:
    return {s.args[0] for s in n.walk(block) if isinstance(s, n.Let) and computed(indices(s))}


class _Kept(Exception):
    """A loop cannot be written out, or is too long."""


# What variables are known to be: temporaries of the turns that are written out, and mutable ones
# that hold a constant.
_Env = dict[n.Var, n.Atom]


@dataclass
class _Nest:
    """Loops that are being written out. values: those whose components they go through."""

    left: int
    values: set[n.Var]


class _Unroller:
    """done: the outermost loops (by identity) that were written out, and their values.

    banned: loops (by identity) that stay.
    """

    def __init__(self, names: Names, most: int, banned: set[int]) -> None:
        self.names = names
        self.left = most
        self.banned = banned
        self.nest: _Nest | None = None
        self.done: dict[int, set[n.Var]] = {}

    def block(self, block: n.Block, env: _Env) -> n.Block:
        return tuple(made for s in block for made in self.stmt(s, env))

    def stmt(self, s: n.Stmt, env: _Env) -> Iterable[n.Stmt]:
        if isinstance(s, n.For):
            return self.loop(s, env)
        if isinstance(s, n.If):
            return self.branch(s, env)
        if isinstance(s, n.While):
            self.count()
            forget(env, (*s.test, *s.body))
            inner = dict(env)
            test = self.block(s.test, inner)
            return [n.While(test, _at(s.cond, inner), self.block(s.body, dict(env)), s.span)]
        return self.plain(s, env)

    def count(self) -> None:
        if self.nest is not None:
            self.nest.left -= 1
            if self.nest.left < 0:
                raise _Kept

    def plain(self, s: n.Stmt, env: _Env) -> Iterable[n.Stmt]:
        """A statement without blocks, with what is known put in its place."""
        if self.nest is not None:
            self.count()
            if isinstance(s, n.Let):
                args = tuple(_at(a, env) for a in s.args)
                found = _folded(s, args)
                if found is not None:
                    env[s.dst] = found
                    return ()
                self.look(self.nest, s, args)
            s = self.copied(s, env)
        for v in n.defs_of(s):
            if v.mutable:
                env.pop(v, None)
                if isinstance(s, n.Set) and isinstance(s.value, n.Const) and _is_whole(v):
                    env[v] = s.value
        return (s,)

    def copied(self, s: n.Stmt, env: _Env) -> n.Stmt:
        """The statement with names of its own for what it defines."""
        known = {a: _at(a, env) for a in n.uses_of(s)}
        for v in n.defs_of(s):
            if not v.mutable:
                env[v] = n.Var(self.names.fresh(v.name), v.type)
            known[v] = v if v.mutable else env[v]
        return map_stmt(s, lambda a: known.get(a, a), lambda b: b)

    def look(self, nest: _Nest, s: n.Let, args: tuple[n.Atom, ...]) -> None:
        """Looks at an operation whose operands are known: components have to have a place."""
        if not placed(replace(s, args=args)):
            raise _Kept
        value = s.args[0] if computed(indices(s)) else None
        if isinstance(value, n.Var) and args[0] == value:  # it comes from outside of the loops
            nest.values.add(value)

    def branch(self, s: n.If, env: _Env) -> Iterable[n.Stmt]:
        cond = _at(s.cond, env)
        if self.nest is not None and isinstance(cond, n.Const):
            return self.block(s.then if cond.value else s.orelse, env)
        self.count()
        then, orelse = self.block(s.then, dict(env)), self.block(s.orelse, dict(env))
        forget(env, (*s.then, *s.orelse))
        return [n.If(cond, then, orelse, s.span)]

    def loop(self, s: n.For, env: _Env) -> Iterable[n.Stmt]:
        now = replace(s, start=_at(s.start, env), stop=_at(s.stop, env), step=_at(s.step, env))
        if self.nest is not None:
            return self.inner(now, env)
        if id(s) not in self.banned and _wanted(now):
            self.nest, inner = _Nest(self.left, set()), dict(env)
            try:
                out = self.written_out(now, inner)
            except _Kept:
                pass
            else:
                self.left, self.done[id(s)] = self.nest.left, self.nest.values
                forget(env, s.body)
                env.update((v, a) for v, a in inner.items() if v.mutable)
                return out
            finally:
                self.nest = None
        return [self.as_it_is(now, env)]

    def inner(self, s: n.For, env: _Env) -> Iterable[n.Stmt]:
        """A loop in one that is being written out."""
        if known_trips(s) == 0:
            return ()
        if not _goes_through(s.body):
            return [self.as_it_is(s, env)]
        if not _wanted(s):
            raise _Kept
        return self.written_out(s, env)

    def written_out(self, s: n.For, env: _Env) -> list[n.Stmt]:
        """The turns of a loop, one after the other."""
        turns = known_trips(s)
        start, step = (a.value for a in (s.start, s.step) if isinstance(a, n.Const))
        assert turns is not None and isinstance(start, int) and isinstance(step, int)
        assert isinstance(s.var.type, ScalarType)
        out: list[n.Stmt] = []
        for k in range(turns):
            env[s.var] = n.Const(start + k * step, s.var.type)
            out += self.block(s.body, env)
        return out

    def as_it_is(self, s: n.For, env: _Env) -> n.Stmt:
        self.count()
        forget(env, s.body)
        inner = dict(env)
        if self.nest is not None:
            inner[s.var] = n.Var(self.names.fresh(s.var.name), s.var.type)
        body = self.block(s.body, inner)
        var = inner.get(s.var, s.var)
        assert isinstance(var, n.Var)
        return n.For(var, s.start, s.stop, s.step, body, s.span)


def _at(a: n.Atom, env: _Env) -> n.Atom:
    return env.get(a, a) if isinstance(a, n.Var) else a


def _is_whole(a: n.Atom) -> bool:
    return isinstance(a.type, ScalarType) and a.type.kind != "f"


def _folded(s: n.Let, args: tuple[n.Atom, ...]) -> n.Const | None:
    """The constant that an operation on whole numbers is equal to."""
    known = [a for a in args if isinstance(a, n.Const) and _is_whole(a)]
    if s.op not in _FOLDED or len(known) < len(args) or not _is_whole(s.dst):
        return None
    if s.op in ("mod", "floordiv") and not known[1].value:
        return None
    op = OPS[s.op]
    values = [_number(a.value, a.type) for a in known]
    with np.errstate(all="ignore"):
        found = op.numpy(s.dst.type, *values) if op.explicit else op.numpy(*values)
    t = s.dst.type
    assert isinstance(t, ScalarType)
    return n.Const(_number(found, t).item(), t)


def _number(value: object, t: ValueType) -> np.generic:
    assert isinstance(t, ScalarType)
    out: np.generic = t.numpy.type(value)
    return out
