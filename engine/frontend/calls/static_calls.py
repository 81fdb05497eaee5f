"""Calls of `static(expr)`, whose value Python computes."""

from __future__ import annotations

import ast
from typing import Any

from engine.frontend.context.context import Context
from engine.frontend.expressions.sequences import count_of
from engine.frontend.operands.captured import describe, static_operand
from engine.frontend.operands.operand import Known, Operand, Value
from engine.frontend.parsing.scope import MISSING
from engine.frontend.parsing.static_expressions import StaticExpression
from engine.ir.nodes import Const
from engine.lang.types import ScalarType
from engine.lang.values import value_class


def lower_static(cx: Context, node: ast.Call) -> Operand:
    """The value of a call of `static`."""
    found = cx.function.statics.get(id(node))
    if found is None:
        return cx.error(
            "E109", node, "`static` takes one expression", f"write `{cx.api}.static(expression)`"
        )
    own: dict[str, Any] = {}
    if found.declared is not MISSING:
        return _operand(cx, found, found.declared)
    for name in sorted(found.names & cx.plan.assigned):
        value = _known(cx, name)
        if value is MISSING:
            length = _length(cx, name)
            if length is not None:
                own[name] = _Sized(length)
                continue
            return cx.error(
                "E107",
                found.node,
                f"`{name}` has no value yet when `static(...)` is computed",
                "static expressions read captured names, constants, and variables of loops over "
                "a constant `range`",
            )
        own[name] = value

    scope = cx.scope
    try:
        key = ("static", found.code, tuple((name, repr(v)) for name, v in own.items()))
        value = scope.captures.read(key, lambda: found.compute(scope, own))
    except Exception as error:
        return cx.error(
            "E107",
            found.node,
            f"the static expression fails ({type(error).__name__}: {error})",
            "it is plain Python: make it work outside the kernel first",
        )
    if isinstance(value, _Sized):
        return cx.error(
            "E107",
            found.node,
            "the static expression gives a value that is known only at run time",
            "static expressions only know the length of such values: `len(v)`",
        )
    return _operand(cx, found, value)


def _operand(cx: Context, found: StaticExpression, value: object) -> Operand:
    got = static_operand(value)
    if got is None:
        what, help_text = describe(value)
        return cx.error("E107", found.node, f"the static expression gives {what}", help_text)
    return got


class _Sized:
    """A value of the kernel, as far as it is known while compiling: its length."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"a value of length {self._length}"


def _length(cx: Context, name: str) -> int | None:
    """How many items the value of a local name has, where it has some."""
    if name in cx.bound or name in cx.types:
        got = cx.expr(ast.copy_location(ast.Name(name, ast.Load()), cx.source.tree))
        return count_of(got)
    return None


def _known(cx: Context, name: str) -> Any:
    """The Python value of a local name that is a constant; MISSING where it is not."""
    if name in cx.unrolled:
        return cx.unrolled[name]
    got = cx.bound.get(name)
    if isinstance(got, Known):
        return got.obj
    if not isinstance(got, Value) or not isinstance(got.atom, Const):
        return MISSING
    t = got.atom.type
    if got.weak or (isinstance(t, ScalarType) and t.kind == "b"):
        return got.atom.value
    return value_class(t)(got.atom.value)
