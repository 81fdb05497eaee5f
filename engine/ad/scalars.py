"""Components of local vectors and matrices as variables of their own.

For variables that are put together and taken apart component by component at constant places.
Reverse mode then saves the components that change, where it would save the whole, and compilers
keep them in registers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.ad.cleanup import forget
from engine.ad.components import places
from engine.diagnostics import UNKNOWN
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names
from engine.ir.rewrite import map_stmt, names_in
from engine.ir.sites import indices, placed
from engine.lang.types import scalar_of, shape_of

# Components that are taken of a variable, and put together again, as a whole, at most.
MOST = 2_000


def heavy(block: n.Block) -> set[n.Atom]:
    """Variables that are used and set as a whole too often to be taken apart."""
    root: dict[n.Atom, n.Var] = {v: v for v in n.set_in(block) if shape_of(v.type)}  # type: ignore[arg-type]
    whole: Counter[n.Var] = Counter()
    for s in n.walk(block):
        if isinstance(s, n.Let) and s.op in ("copy", "insert") and s.args[0] in root:
            root[s.dst] = root[s.args[0]]
        elif isinstance(s, n.Set) and s.dst in root:
            if root.get(s.value) != s.dst:
                whole[s.dst] += 1
                whole.update(root[a] for a in (s.value,) if a in root)
        elif not (isinstance(s, n.Let) and s.op == "extract"):
            whole.update(root[a] for a in n.uses_of(s) if a in root)
    return {v for v, times in whole.items() if times * len(places(v.type)) > MOST}


def scalars(fn: n.Function, wanted: Iterable[n.Var]) -> n.Function:
    """The function with those of some variables taken apart whose components have known places."""
    whole: set[n.Atom] = set()
    for s in n.walk(fn.body):
        if isinstance(s, n.Let) and (s.op.endswith("_row") or not placed(s)):
            whole.update(s.args)
        elif not isinstance(s, n.Set):
            whole.update(n.defs_of(s))
    names = Names(names_in(fn))
    parts = {v: _variables(v, names) for v in wanted if v not in whole}
    return replace(fn, body=_Apart(names, parts).block(fn.body, {})) if parts else fn


def _variables(v: n.Var, names: Names) -> tuple[n.Var, ...]:
    t = scalar_of(v.type)
    return tuple(
        n.Var(names.fresh("_".join([v.name, *map(str, at)])), t, mutable=True)
        for at in np.ndindex(*shape_of(v.type))  # type: ignore[arg-type]
    )


# What variables hold now, and components that were taken of values: constants and temporaries.
_Env = dict[Hashable, n.Atom]
_Parts = tuple[n.Atom, ...]


class _Apart:
    def __init__(self, names: Names, variables: Mapping[n.Var, tuple[n.Var, ...]]) -> None:
        self.names = names
        self.variables = variables
        self.parts: dict[n.Var, _Parts] = {}  # of temporaries
        self.together: set[n.Var] = set()  # temporaries with parts that are there all the same
        self.same: dict[n.Var, n.Atom] = {}  # temporaries that are a component

    def block(self, block: n.Block, env: _Env) -> n.Block:
        b = Builder(self.names, block[0].span if block else UNKNOWN)
        for s in block:
            b.span = s.span
            self.stmt(b, s, env)
        return b.block()

    def stmt(self, b: Builder, s: n.Stmt, env: _Env) -> None:
        if isinstance(s, n.If):
            then, orelse = self.block(s.then, dict(env)), self.block(s.orelse, dict(env))
            forget(env, (*then, *orelse))
            b.add(n.If(self.atom(b, s.cond, env), then, orelse, s.span))
        elif isinstance(s, n.For):
            self.forget(env, s.body)
            start, stop, step = (self.atom(b, a, env) for a in (s.start, s.stop, s.step))
            b.add(n.For(s.var, start, stop, step, self.block(s.body, dict(env)), s.span))
        elif isinstance(s, n.While):
            self.forget(env, (*s.test, *s.body))
            body = self.block(s.body, dict(env))  # it may not use what the test computes
            test = Builder(self.names, s.span)
            inner = dict(env)
            for x in s.test:
                test.span = x.span
                self.stmt(test, x, inner)
            cond = self.atom(test, s.cond, inner)
            b.add(n.While(test.block(), cond, body, s.span))
        elif isinstance(s, n.Set) and s.dst in self.variables:
            self.set(b, self.variables[s.dst], s.value, env)
        elif not (isinstance(s, n.Let) and self.let(b, s, env)):
            defined = n.defs_of(s)
            b.add(map_stmt(s, lambda a: a if a in defined else self.atom(b, a, env), lambda x: x))

    def forget(self, env: _Env, block: n.Block) -> None:
        """Forgets all that a loop may change."""
        for v in n.set_in(block):
            for part in self.variables.get(v, ()):
                env.pop(part, None)

    def let(self, b: Builder, s: n.Let, env: _Env) -> bool:
        """Takes an operation apart. True if it is done with."""
        if s.op in ("construct", "fill"):
            given = tuple(self.steady(b, self.atom(b, a, env)) for a in s.args)
            count = len(places(s.dst.type))
            self.parts[s.dst] = given if s.op == "construct" else given * count
            self.together.add(s.dst)
            b.add(replace(s, args=given))
            return True
        if s.op not in ("extract", "insert", "copy") or not placed(s):
            return False
        if not self.is_apart(s.args[0]):
            return s.op == "extract" and self.taken(s, env)
        parts = self.components(b, s.args[0], env)
        if s.op == "copy":
            self.parts[s.dst] = parts
            return True
        at = _flat(s)
        if s.op == "extract":
            self.same[s.dst] = parts[at]
        else:
            value = self.steady(b, self.atom(b, s.args[-1], env))
            self.parts[s.dst] = (*parts[:at], value, *parts[at + 1 :])
        return True

    def taken(self, s: n.Let, env: _Env) -> bool:
        """A component of a value that stays whole. True if it was taken before."""
        if _may_change(s.args[0]):
            return False
        key = s.args[0], _flat(s)
        if key in env:
            self.same[s.dst] = env[key]
            return True
        env[key] = s.dst
        return False

    def set(self, b: Builder, variables: Sequence[n.Var], value: n.Atom, env: _Env) -> None:
        for v, part in zip(variables, self.components(b, value, env), strict=True):
            if env.get(v) != part:
                b.set(v, part)
                env[v] = part

    def is_apart(self, a: n.Atom) -> bool:
        return isinstance(a, n.Var) and (a in self.variables or a in self.parts)

    def components(self, b: Builder, a: n.Atom, env: _Env) -> _Parts:
        """The present components of a value, as temporaries and constants."""
        if isinstance(a, n.Const):
            flat = np.array(a.value, object).reshape(-1)
            return tuple(n.Const(x, scalar_of(a.type)) for x in flat)
        if a in self.parts:
            return self.parts[a]
        if a in self.variables:
            return tuple(self.present(b, v, env) for v in self.variables[a])
        return tuple(b.op("extract", a, *at) for at in places(a.type))

    def present(self, b: Builder, v: n.Var, env: _Env) -> n.Atom:
        """What one of the variables holds now."""
        if v not in env:
            env[v] = b.op("copy", v, base=v.name)
        return env[v]

    def steady(self, b: Builder, a: n.Atom) -> n.Atom:
        return b.op("copy", a) if _may_change(a) else a

    def atom(self, b: Builder, a: n.Atom, env: _Env) -> n.Atom:
        """The atom, put together again if it was taken apart."""
        if not isinstance(a, n.Var):
            return a
        if a in self.same:
            return self.same[a]
        if (a in self.parts and a not in self.together) or a in self.variables:
            return b.op("construct", *self.components(b, a, env), result=a.type, base=a.name)
        return a


def _may_change(a: n.Atom) -> bool:
    return isinstance(a, n.Var) and a.mutable


def _flat(s: n.Let) -> int:
    """Which component an `extract` or `insert` is of, counted row by row."""
    shape = shape_of(s.args[0].type)  # type: ignore[arg-type]
    return int(np.ravel_multi_index([a.value for a in indices(s)], shape))  # type: ignore
