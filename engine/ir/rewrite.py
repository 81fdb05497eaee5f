"""Rebuilds statements, blocks and call graphs, for passes that change code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from engine.diagnostics import Span
from engine.ir import nodes as n
from engine.ir.builder import Names

AtomMap = Callable[[n.Atom], n.Atom]
S = TypeVar("S", bound=n.Stmt)


@cache
def _roles(kind: type[n.Stmt]) -> tuple[tuple[str, int], ...]:
    """The fields of a kind of statement in order: 1 for those with atoms, 2 for blocks, else 0."""
    atoms = (*kind.DEFINES, *kind.READS)
    names = (f.name for f in fields(kind))  # type: ignore[arg-type]
    return tuple((name, 1 if name in atoms else 2 if name in kind.NESTED else 0) for name in names)


def map_stmt(s: S, f: AtomMap | None, blocks: Callable[[n.Block], n.Block]) -> S:
    """A statement with f applied to each atom (defined ones too), blocks to nested blocks.

    Always a new one: passes know statements by their identity.
    """
    out: list[Any] = []
    for name, role in _roles(s.__class__):  # type: ignore[arg-type]
        value = getattr(s, name)
        if role == 1 and f is not None and value is not None:
            value = tuple([f(a) for a in value]) if value.__class__ is tuple else f(value)
        elif role == 2:
            value = blocks(value)
        out.append(value)
    return s.__class__(*out)


def map_block(block: n.Block, f: AtomMap) -> n.Block:
    """The block with f applied to each atom, defined ones too."""
    return tuple([map_stmt(s, f, lambda b: map_block(b, f)) for s in block])


def with_span(s: S, span: Span) -> S:
    """The statement with another place."""
    return replace(s, span=span)  # type: ignore[type-var]


def rewrite(block: n.Block, step: Callable[[n.Stmt], n.Stmt | Iterable[n.Stmt]]) -> n.Block:
    """The block with each statement replaced by what `step` makes of it, inner ones first.

    A statement without nested blocks comes as it is in the block, so that it can be known by
    its identity.
    """
    out: list[n.Stmt] = []
    for s in block:
        if s.NESTED:
            s = map_stmt(s, None, lambda b: rewrite(b, step))
        made = step(s)
        if isinstance(made, n.Stmt):
            out.append(made)
        else:
            out += made
    return tuple(out)


class Rewriter:
    """Changes a function and all that it calls, each function once.

    Subclasses say what becomes of a function (`change`, which may call `body`), or of a
    statement (`stmt`). Custom gradients and replays are changed where `custom` is true.
    """

    custom = True

    def __init__(self) -> None:
        # The function is kept, so that its id stays its own.
        self._made: dict[int, tuple[n.Function, n.Function]] = {}

    def function(self, fn: n.Function) -> n.Function:
        """What becomes of a function; the same each time."""
        if id(fn) not in self._made:
            self._made[id(fn)] = (fn, self.change(fn))
        return self._made[id(fn)][1]

    def change(self, fn: n.Function) -> n.Function:
        """What becomes of a function, which is asked once; itself where nothing changes."""
        parts: dict[str, Any] = {"body": self.body(fn)}
        if self.custom:
            parts["grad"] = fn.grad and self.function(fn.grad)
            parts["replay"] = fn.replay and self.function(fn.replay)
        same = all(getattr(fn, name) is part for name, part in parts.items())
        return fn if same else replace(fn, **parts)

    def body(self, fn: n.Function) -> n.Block:
        """The body of a function with `stmt` applied; itself where nothing changes."""
        return self.block(fn.body)

    def block(self, block: n.Block) -> n.Block:
        out: list[n.Stmt] = []
        for s in block:
            if s.NESTED:
                inner = {name: self.block(getattr(s, name)) for name in s.NESTED}
                if any(getattr(s, name) is not b for name, b in inner.items()):
                    s = replace(s, **inner)  # type: ignore[type-var]
            elif isinstance(s, n.Call):
                s = self.call(s)
            made = self.stmt(s)
            if isinstance(made, n.Stmt):
                out.append(made)
            else:
                out += made
        same = len(out) == len(block) and all(a is b for a, b in zip(out, block, strict=True))
        return block if same else tuple(out)

    def call(self, s: n.Call) -> n.Call:
        """A call of the function that has come of the one called."""
        func = self.function(s.func)
        return s if func is s.func else replace(s, func=func)

    def stmt(self, s: n.Stmt) -> n.Stmt | Iterable[n.Stmt]:
        """What becomes of a statement whose nested blocks and callee are changed already."""
        return s


def names_in(fn: n.Function) -> list[str]:
    """Every variable name that a function uses."""
    out = {p.name for p in fn.params}
    for s in n.walk(fn.body):
        out.update([d.name for d in n.defs_of(s)])
        # A variable that is read and never set is zero; its name is taken all the same.
        out.update([a.name for a in n.uses_of(s) if isinstance(a, n.Var) and a.mutable])
    return sorted(out)


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
