"""Renames a variable that holds several values one after the other, one name for each.

What takes a variable as one thing through the whole function then keeps these apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.ir import nodes as n
from engine.ir.builder import Names
from engine.ir.rewrite import map_stmt
from engine.lang.types import is_float

# The present name of each variable that may have been set so far.
_Env = dict[n.Var, n.Var]


def versions(block: n.Block, names: Names, results: tuple[n.Var, ...]) -> n.Block:
    """A block without jumps that does the same; each `Set` of a float sets a variable of its own.

    Where paths meet, and in each round of a loop, what goes on is copied into one. results: what
    keeps its name, and is not read.
    """
    return _Versions(names, results).block(block, {})


class _Versions:
    def __init__(self, names: Names, results: tuple[n.Var, ...]) -> None:
        self.names = names
        self.results = results

    def block(self, block: n.Block, env: _Env) -> n.Block:
        """The block under the names that hold before it; `env` gets those after it."""
        return tuple([made for s in block for made in self.stmt(s, env)])

    def stmt(self, s: n.Stmt, env: _Env) -> Iterable[n.Stmt]:
        if isinstance(s, n.If):
            return (self.branch(s, env),)
        if isinstance(s, (n.For, n.While)):
            return self.loop(s, env)
        before = dict(env)
        env |= self.met((s,))
        if isinstance(s, n.Set):
            return (n.Set(env.get(s.dst, s.dst), _now(s.value, before), s.span),)
        return (map_stmt(s, lambda a: _now(a, before), tuple),)

    def branch(self, s: n.If, env: _Env) -> n.If:
        yes, no = dict(env), dict(env)
        then, orelse = self.block(s.then, yes), self.block(s.orelse, no)
        env |= (met := self.met(s.then, s.orelse))
        return replace(s, then=then + _copies(met, yes, s), orelse=orelse + _copies(met, no, s))

    def loop(self, s: n.For | n.While, env: _Env) -> Iterable[n.Stmt]:
        """What a round leaves is what the next one finds, and what is there after the last one."""
        test = s.test if isinstance(s, n.While) else ()
        met = self.met(test, s.body)
        first = _copies(met, env, s)
        env |= met
        test = self.block(test, env)
        inner = dict(env)
        body = self.block(s.body, inner)
        body += _copies(met, inner, s)
        if isinstance(s, n.While):
            return (*first, replace(s, test=test, body=body))
        return (*first, replace(s, body=body))

    def met(self, *blocks: n.Block) -> _Env:
        """New names for all that blocks set."""
        found = [v for b in blocks for v in n.set_in(b)]
        return {
            v: n.Var(self.names.fresh(v.name), v.type, mutable=True)
            for v in found
            if is_float(v.type) and v not in self.results
        }


def _now(a: n.Atom, env: _Env) -> n.Atom:
    return env.get(a, a) if isinstance(a, n.Var) else a


def _copies(to: _Env, of: _Env, s: n.Stmt) -> n.Block:
    return tuple([n.Set(v, of[k], s.span) for k, v in to.items() if k in of])
