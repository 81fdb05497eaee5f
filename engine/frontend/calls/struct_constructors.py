"""`S()`, `S(1.0, v)` and `S(x=1.0)`: a struct from its fields."""

from __future__ import annotations

import ast

from engine.frontend.assignment.aggregates import as_field, zero_of
from engine.frontend.context.context import Context
from engine.frontend.operands.operand import (
    BAD,
    Operand,
    Struct,
)
from engine.lang.structs import StructType


def lower_struct(cx: Context, node: ast.Call, t: StructType) -> Operand:
    """`S()`, `S(1.0, v)` or `S(x=1.0)`: fields that are left out are zero."""
    fields = list(t.fields)
    listed = f"its fields are: {', '.join(fields)}"
    given: dict[str, ast.expr] = dict(zip(fields, node.args, strict=False))
    if len(node.args) > len(fields):
        return cx.error(
            "E109", node, f"{t} has {len(fields)} fields, got {len(node.args)} values", listed
        )
    for word in node.keywords:
        if word.arg is None or word.arg not in t.fields:
            hint = cx.close_to(word.arg or "", fields)
            return cx.error("E106", word.value, f"{t} has no field `{word.arg}`", hint or listed)
        if word.arg in given:
            return cx.error("E106", word.value, f"field `{word.arg}` is given twice", listed)
        given[word.arg] = word.value
    items: list[Operand] = []
    told = False
    values = {name: (at, cx.expr(at)) for name, at in given.items()}
    for field, want in t.fields.items():
        if field not in values:
            items.append(zero_of(want))
            continue
        at, got = values[field]
        item = as_field(cx, at, got, want, f"field `{field}` of {t}")
        told |= item is None
        items.append(item or zero_of(want))
    return BAD if told else Struct(t, tuple(items))
