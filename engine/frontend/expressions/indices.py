"""Indices: sizes of dimensions, and negative indices, which count from the end."""

from __future__ import annotations

from collections.abc import Callable

from engine.frontend.context.context import Context
from engine.ir.nodes import Atom, Const, Var
from engine.lang.types import INT32, ScalarType


def dimension(cx: Context, array: Var, dim: int) -> Var:
    return cx.b.op("shape", array, Const(dim, INT32))


def wrapped_index(cx: Context, index: Atom, length: Callable[[], Atom]) -> Atom:
    """The integer as an index into `length()` places: a negative one counts from the end."""
    if _never_negative(cx, index):
        return index
    size = length()
    if isinstance(index, Const) and isinstance(index.value, int):
        if isinstance(size, Const) and isinstance(size.value, int):
            return Const(size.value + index.value, INT32)
        return cx.b.op("add", size, Const(index.value, INT32))
    index = _widened(cx, index)
    if index.type != INT32:
        size = cx.b.op("cast", size, result=index.type)
    return cx.b.op("wrap_index", index, size)


def component_index(cx: Context, size: int, index: Atom) -> Atom:
    """The integer as the index of a component: a negative one counts from the end."""
    if _never_negative(cx, index):
        return index
    index = _widened(cx, index)
    assert isinstance(index.type, ScalarType)
    return cx.b.op("wrap_index", index, Const(size, index.type))


def _never_negative(cx: Context, index: Atom) -> bool:
    if isinstance(index.type, ScalarType) and index.type.kind == "u":
        return not (isinstance(index, Const) and isinstance(index.value, int) and index.value < 0)
    low = cx.b.low(index)
    return low is not None and low >= 0


def within(cx: Context, index: Atom, size: Atom) -> Atom:
    """An index along a dimension that IR does not show, for kernels that are watched."""
    if isinstance(index, Const) and isinstance(size, Const):
        return index  # looked at already
    return cx.b.op("within", index, size)


def _widened(cx: Context, index: Atom) -> Atom:
    """Sizes need not fit into the narrow types that indices may have."""
    t = index.type
    narrow = isinstance(t, ScalarType) and t.bits < INT32.bits
    return cx.b.op("cast", index, result=INT32) if narrow else index
