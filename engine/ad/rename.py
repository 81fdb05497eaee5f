"""Rebuilds blocks with other variables: the base of inlining, copying and lifting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from engine.ir import nodes as n
from engine.ir.builder import Names

AtomMap = Callable[[n.Atom], n.Atom]
V = TypeVar("V", bound=n.Atom)


def names_in(fn: n.Function) -> list[str]:
    """Every variable name that a function uses."""
    out = {p.name for p in fn.params}
    for s in n.walk(fn.body):
        out.update(d.name for d in n.defs_of(s))
        # A variable that is read and never set is zero; its name is taken all the same.
        out.update(a.name for a in n.uses_of(s) if isinstance(a, n.Var) and a.mutable)
    return sorted(out)


def map_stmt(s: n.Stmt, f: AtomMap, blocks: Callable[[n.Block], n.Block]) -> n.Stmt:
    """The statement with f applied to each atom (defined ones too), blocks to nested blocks."""

    def var(v: n.Var) -> n.Var:
        out = f(v)
        assert isinstance(out, n.Var)
        return out

    def many(atoms: tuple[n.Atom, ...]) -> tuple[n.Atom, ...]:
        return tuple(f(a) for a in atoms)

    if isinstance(s, n.Let):
        return replace(s, dst=var(s.dst), args=many(s.args))
    if isinstance(s, n.Set):
        return replace(s, dst=var(s.dst), value=f(s.value))
    if isinstance(s, n.Load):
        return replace(
            s, dst=var(s.dst), array=var(s.array), index=many(s.index), path=many(s.path)
        )
    if isinstance(s, n.Store):
        return replace(
            s, array=var(s.array), index=many(s.index), path=many(s.path), value=f(s.value)
        )
    if isinstance(s, n.Atomic):
        return replace(
            s,
            dst=None if s.dst is None else var(s.dst),
            array=var(s.array),
            index=many(s.index),
            path=many(s.path),
            value=f(s.value),
            compare=None if s.compare is None else f(s.compare),
        )
    if isinstance(s, n.Message):
        return replace(s, args=many(s.args), thread=None if s.thread is None else f(s.thread))
    if isinstance(s, n.Call):
        return replace(s, dsts=tuple(var(d) for d in s.dsts), args=many(s.args))
    if isinstance(s, n.If):
        return replace(s, cond=f(s.cond), then=blocks(s.then), orelse=blocks(s.orelse))
    if isinstance(s, n.For):
        return replace(
            s,
            var=var(s.var),
            start=f(s.start),
            stop=f(s.stop),
            step=f(s.step),
            body=blocks(s.body),
        )
    if isinstance(s, n.While):
        return replace(s, test=blocks(s.test), cond=f(s.cond), body=blocks(s.body))
    if isinstance(s, n.Return):
        return replace(s, values=many(s.values))
    if isinstance(s, (n.Push, n.JournalWrite)):
        return replace(s, value=f(s.value))
    if isinstance(s, n.Reserve):
        return replace(s, size=f(s.size))
    if isinstance(s, n.Pop):
        return replace(s, dst=var(s.dst))
    if isinstance(s, n.JournalRead):
        return replace(s, dst=var(s.dst), pos=f(s.pos))
    return s


def map_block(block: n.Block, f: AtomMap) -> n.Block:
    return tuple(map_stmt(s, f, lambda b: map_block(b, f)) for s in block)


def fresh_copy(
    block: n.Block, names: Names, given: dict[n.Var, n.Atom] | None = None, mutable: bool = False
) -> tuple[n.Block, dict[n.Var, n.Atom]]:
    """A copy whose temporaries (and mutable variables, if asked) have new names.

    `given` replaces variables from outside. Returns the block and the whole map.
    """
    table: dict[n.Var, n.Atom] = dict(given or {})
    for s in n.walk(block):
        for d in n.defs_of(s):
            if d not in table and (mutable or not d.mutable):
                table[d] = n.Var(names.fresh(d.name), d.type, d.mutable)
    return map_block(block, lambda a: table.get(a, a) if isinstance(a, n.Var) else a), table
