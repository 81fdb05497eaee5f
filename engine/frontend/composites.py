"""Calls of composite builtins, and their instances."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from engine.builtins.argument_names import placed
from engine.builtins.composite import COMPOSITES, Composite, choose, with_defaults
from engine.diagnostics import UNKNOWN, Span
from engine.frontend.context import Context
from engine.frontend.kinds import Kind
from engine.frontend.operands import Operand, Several, Value, View, adapt, literal
from engine.frontend.scope import Scope
from engine.frontend.user_calls import call_with
from engine.frontend.userfunc import UserFunc
from engine.ir.nodes import Function
from engine.ir.rewrite import rewrite, with_span
from engine.lang.structs import StructType
from engine.lang.types import INT32, ArrayType, Type


class LibraryFunc(UserFunc):
    """A composite as a function. Its code has no place: problems belong to its caller."""

    library = True

    def instance(self, types: Sequence[Kind], at: Span | None = None) -> Function:
        key = tuple(types)
        if key not in self._instances:
            made = super().instance(types, at)
            self._instances[key] = replace(
                made, body=rewrite(made.body, lambda s: with_span(s, UNKNOWN)), span=UNKNOWN
            )
        found = self._instances[key]
        assert isinstance(found, Function)
        return found


@cache
def library_func(composite: Composite) -> LibraryFunc:
    """The one function of a composite."""
    return LibraryFunc(composite.func)


def call_composite(
    cx: Context, name: str, args: Sequence[Value | View], nodes: Sequence[ast.expr] = ()
) -> Operand | None:
    """The call of a composite builtin or operator; None where no overload takes the types.

    nodes: the expressions of the arguments, which a call may change.
    """
    weak = [isinstance(v, Value) and v.weak for v in args]
    every = with_defaults(name, list(args), [_type(v) for v in args], weak)
    for given, types, weak in every:
        choice = choose(name, types, weak)
        if choice is None:
            continue
        filled: list[Operand] = []
        for v, t in zip(given, choice.casts, strict=True):
            operand = v if isinstance(v, (Value, View)) else literal(v)
            if isinstance(operand, Value):
                fitted = operand if t is None else adapt(operand, t)
                if fitted is None:
                    return None
                operand = Value(fitted.atom)
            filled.append(operand)
        results = call_with(cx, library_func(choice.composite), filled)
        updates = choice.composite.updates
        changed = [nodes[k] if k < len(nodes) else None for k in updates]
        kept = results[: len(results) - len(updates)]
        for node, value in zip(changed, results[len(kept) :], strict=True):
            _write_back(cx, name, node, value, only=not kept)
        return kept[0] if len(kept) == 1 else Several(tuple(kept))
    return None


def _type(v: Value | View) -> Type:
    """The type that overloads are chosen by: a view counts as an array of its dimensions."""
    if isinstance(v, Value):
        return v.type
    element = v.root.element
    return ArrayType(INT32 if isinstance(element, StructType) else element, v.ndim)


def _write_back(cx: Context, name: str, node: ast.expr | None, value: Operand, only: bool) -> None:
    """Gives a changed argument its new value.

    only: changing its arguments is all that the call does. Elsewhere an element or component
    is passed by its value, as a random state is.
    """
    from engine.frontend.assign import assign

    if isinstance(node, ast.Name) or (only and isinstance(node, (ast.Attribute, ast.Subscript))):
        assign(cx, node, value, node)
    elif only and node is not None:
        cx.error(
            "E106",
            node,
            f"`{name}` gives this argument a value, but it is no variable",
            f"write `... = {cx.api}.{name}(...)` and use the results",
        )


def by_position(name: str, node: ast.Call) -> ast.Call | None:
    """A builtin's call with arguments by name as one by position; None for names it has not."""
    words = {w.arg or "**": w.value for w in node.keywords}
    found = placed(name, len(node.args), list(words))
    if found is None:
        return None
    args = [
        words[x] if isinstance(x, str) else ast.copy_location(ast.Constant(x), node) for x in found
    ]
    return ast.copy_location(ast.Call(node.func, [*node.args, *args], []), node)


def changed_arguments(scope: Scope, node: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call that a composite may change. By name: no types are known yet."""
    name = getattr(_known(scope, node.func), "__builtin_name__", "")
    positions = {k for c in COMPOSITES.get(name, ()) for k in c.updates}
    if positions and node.keywords:
        node = by_position(name, node) or node
    yield from (a for k, a in enumerate(node.args) if k in positions)


def _known(scope: Scope, node: ast.expr) -> object:
    """The object that `f` or `module.f` names; None for anything else."""
    if isinstance(node, ast.Name):
        return scope.lookup(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_known(scope, node.value), node.attr, None)
    return None
