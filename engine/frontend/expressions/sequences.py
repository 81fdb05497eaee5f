"""Sequences with items known at compile time: tuples, vectors, matrices, local arrays.

Such are unpacked by `*` and by several names on the left, and looped over.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.context.context import Context
from engine.frontend.context.lowered import lowered
from engine.frontend.expressions.subscripts import lvalue, read
from engine.frontend.expressions.views import subscript
from engine.frontend.operands.kinds import as_view
from engine.frontend.operands.lvalues import LValue, Part
from engine.frontend.operands.operand import (
    Bad,
    Known,
    Operand,
    Several,
    Value,
    View,
    literal,
    number,
)
from engine.frontend.operands.type_names import type_name
from engine.lang.types import MatrixType, VectorType


def count_of(got: Operand) -> int | None:
    """How many items there are, where this is known."""
    if isinstance(got, Several):
        return len(got.items)
    if isinstance(got, Value) and isinstance(got.type, (VectorType, MatrixType)):
        return got.type.length if isinstance(got.type, VectorType) else got.type.rows
    if isinstance(got, View) and got.is_local and got.dims[got.shown[0]] is None:
        return got.root.shape[got.shown[0]]
    return None


def items_of(cx: Context, node: ast.expr, got: Operand) -> tuple[Operand, ...] | None:
    """The items of a tuple, vector, matrix (its rows) or local array; None for anything else."""
    if isinstance(got, Known) and got.value is not None:
        got = got.value
    if isinstance(got, Several):
        return got.items
    if isinstance(got, Value) and isinstance(got.type, (VectorType, MatrixType)):
        every = range(count_of(got) or 0)
        return tuple(read(cx, Part(got.atom, (literal(k).atom,))) for k in every)
    count = count_of(got)
    if isinstance(got, View) and count is not None:
        return _elements(cx, node, got, range(count))
    return None


def _elements(cx: Context, node: ast.expr, view: View, places: range) -> tuple[Operand, ...]:
    """Elements of an array, or its parts along the first dimension."""
    out: list[Operand] = []
    for k in places:
        index = ast.copy_location(ast.Constant(k), node)
        at = ast.copy_location(ast.Subscript(node, index, ast.Load()), node)
        out.append(read(cx, subscript(cx, at, view, [index])))
    return tuple(out)


def _slice_of_array(
    cx: Context, node: ast.Subscript, base: LValue
) -> tuple[Operand, ...] | Bad | None:
    """The elements of `array[a:b]`, whose bounds must be written out; None for anything else."""
    view = as_view(base) if isinstance(base, (Value, View)) else None
    if view is None or not isinstance(node.slice, ast.Slice):
        return None
    bounds: list[int | None] = []
    for part in (node.slice.lower, node.slice.upper, node.slice.step):
        found = cx.value(part, "the bound of a slice") if part is not None else None
        if isinstance(found, Bad):
            return found
        n = number(found) if found is not None else None
        if part is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 0):
            return cx.error(
                "E104",
                part,
                "the bounds of an array's slice that `*` unpacks are constant integers from 0 on",
                "write the numbers themselves, such as `*a[0:3]`",
            )
        bounds.append(n)  # type: ignore[arg-type]
    if bounds[1] is None or bounds[2] == 0:
        return cx.error(
            "E104",
            node,
            "`*` unpacks an array only as far as a slice says, and this one has no end"
            if bounds[1] is None
            else "the step of a slice is 0",
            "write the number of elements, such as `*a[0:3]`",
        )
    return _elements(cx, node, view, range(bounds[1])[slice(*bounds)])


def starred(cx: Context, node: ast.Starred) -> tuple[Operand, ...] | None:
    """What `*value` stands for; None where it is reported why there is nothing."""
    value = node.value
    with cx.at(value):
        if isinstance(value, ast.Subscript) and id(value) not in cx.function.rejected:
            base = lvalue(cx, value.value)
            found = _slice_of_array(cx, value, base)
            if isinstance(found, Bad):
                return None
            if found is not None:
                return found
        got = cx.expr(value)
        if isinstance(got, Bad):
            return None
        items = items_of(cx, value, got)
        if items is None:
            _not_unpacked(cx, node, got)
        return items


def _not_unpacked(cx: Context, node: ast.Starred, got: Operand) -> None:
    if isinstance(got, Value) and as_view(got) is None:
        what = f"this is {type_name(got.type)}"
    else:
        array = isinstance(got, (Value, View))
        what = "the length of an array is not known" if array else "this value is none of these"
    cx.error(
        "E104",
        node,
        f"`*` unpacks tuples, vectors, matrices and slices of arrays, but {what}",
        "write the values one by one, or a slice with constant bounds: `*a[0:3]`",
    )


def expanded(cx: Context, nodes: Sequence[ast.expr]) -> list[ast.expr] | None:
    """Expressions with every `*value` replaced by what it unpacks; None where one has nothing."""
    out: list[ast.expr] = []
    failed = False
    for node in nodes:
        if not isinstance(node, ast.Starred):
            out.append(node)
            continue
        items = starred(cx, node)
        failed |= items is None
        out += [lowered(item, node) for item in items or ()]
    return None if failed else out
