"""Calls of composite builtins, and their instances."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from engine.builtins.composite import Composite, choose, with_defaults
from engine.diagnostics import UNKNOWN, Span
from engine.frontend.context import Context
from engine.frontend.operands import Operand, Several, Value, adapt, literal
from engine.frontend.userfunc import UserFunc
from engine.ir.nodes import Block, Call, For, Function, If, Stmt, While
from engine.lang.types import Type


class LibraryFunc(UserFunc):
    """A composite as a function. Its code has no place: problems belong to its caller."""

    library = True

    def instance(self, types: Sequence[Type], at: Span | None = None) -> Function:
        key = tuple(types)
        if key not in self._instances:
            made = super().instance(types, at)
            self._instances[key] = replace(made, body=_placeless(made.body), span=UNKNOWN)
        found = self._instances[key]
        assert isinstance(found, Function)
        return found


@cache
def library_func(composite: Composite) -> LibraryFunc:
    """The one function of a composite."""
    return LibraryFunc(composite.func)


def _placeless(block: Block) -> Block:
    return tuple(_without_place(s) for s in block)


def _without_place(s: Stmt) -> Stmt:
    if isinstance(s, If):
        return replace(s, then=_placeless(s.then), orelse=_placeless(s.orelse), span=UNKNOWN)
    if isinstance(s, For):
        return replace(s, body=_placeless(s.body), span=UNKNOWN)
    if isinstance(s, While):
        return replace(s, test=_placeless(s.test), body=_placeless(s.body), span=UNKNOWN)
    return replace(s, span=UNKNOWN)


def call_composite(
    cx: Context, name: str, args: Sequence[Value], nodes: Sequence[ast.expr] = ()
) -> Operand | None:
    """The call of a composite builtin or operator; None where no overload takes the types.

    nodes: the expressions of the arguments, which a call may change.
    """
    every = with_defaults(name, list(args), [v.type for v in args], [v.weak for v in args])
    for given, types, weak in every:
        choice = choose(name, types, weak)
        if choice is None:
            continue
        filled = [v if isinstance(v, Value) else literal(v) for v in given]
        atoms = []
        for v, t in zip(filled, choice.casts, strict=True):
            fitted = v if t is None else adapt(v, t)
            if fitted is None:
                return None
            atoms.append(fitted.atom)
        fn = library_func(choice.composite).instance([a.type for a in atoms], cx.b.span)
        dsts = tuple(cx.b.temp(t) for t in fn.results)
        cx.b.add(Call(dsts, fn, tuple(atoms), cx.b.span))
        results = [Value(d) for d in dsts]
        updates = choice.composite.updates
        _write_back(cx, [nodes[k] if k < len(nodes) else None for k in updates],
                    results[len(results) - len(updates) :])  # fmt: skip
        kept = results[: len(results) - len(updates)]
        return kept[0] if len(kept) == 1 else Several(tuple(kept))
    return None


def _write_back(cx: Context, nodes: Sequence[ast.expr | None], values: Sequence[Value]) -> None:
    """Gives changed arguments their new values; a temporary has none to keep."""
    from engine.frontend.assign import assign

    for node, value in zip(nodes, values, strict=True):
        if isinstance(node, (ast.Name, ast.Subscript, ast.Attribute)):
            assign(cx, node, value, node)
