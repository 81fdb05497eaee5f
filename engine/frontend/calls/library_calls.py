"""Calls of builtins that are written in the kernel language."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.builtins.composite import choose, with_defaults
from engine.frontend.assignment.targets import assign
from engine.frontend.calls.user_calls import call_with
from engine.frontend.context.context import Context
from engine.frontend.expressions.conversions import refuse_quotient
from engine.frontend.functions.library_function import library_func
from engine.frontend.operands.operand import BAD, Operand, Several, Value, View, adapt, literal
from engine.lang.structs import StructType
from engine.lang.types import INT32, ArrayType, Type


def call_library(
    cx: Context, name: str, args: Sequence[Value | View], nodes: Sequence[ast.expr] = ()
) -> Operand | None:
    """The call of such a builtin or operator; None where no overload takes the types.

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
                fitted = operand if t is None else adapt(cx.b, operand, t)
                if fitted is None:
                    at = nodes[len(filled)] if len(filled) < len(nodes) else None
                    return _refused(cx, at, operand)
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


def _refused(cx: Context, node: ast.expr | None, value: Value) -> Operand | None:
    """Says that a quotient of integers stands for a float; None for any other value."""
    if value.truncated and node is not None:
        refuse_quotient(cx, node, [value])
        return BAD
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
    if isinstance(node, ast.Name) or (only and isinstance(node, (ast.Attribute, ast.Subscript))):
        assign(cx, node, value, node)
    elif only and node is not None:
        cx.error(
            "E106",
            node,
            f"`{name}` assigns to this argument, but it is not a variable",
            f"write `... = {cx.api}.{name}(...)` and use the results",
        )
