"""Assignments of arrays to fields of structs in arrays.

A row of a table says where in its pool the array of each struct lies (`lang/structs`). A kernel
stores rows: that of another such field, whose pool launches make the same memory, or that of an
argument, which they put into the pool. After the launch the rows are looked up, and the structs
refer to the arrays.
"""

from __future__ import annotations

import ast

from engine.builtins.queries import ARGUMENTS
from engine.frontend.context.context import Context
from engine.frontend.expressions.choices import branches
from engine.frontend.expressions.views import as_int32, size
from engine.frontend.operands.kinds import as_view
from engine.frontend.operands.lvalues import Linked
from engine.frontend.operands.operand import Absent, Choice, Operand, Root, Struct, Value, View
from engine.ir.nodes import Atom, Const, Store, Var
from engine.lang.structs import StructType, leaves, own_leaf
from engine.lang.types import INT32

_HELP = "set the other fields one by one, or build the array of structs on the host"


def set_link(cx: Context, node: ast.AST, where: Linked, got: Operand, what: str) -> None:
    """Makes a field of a struct in an array hold an array. got: of the field's type."""
    if isinstance(got, Choice):
        blocks = []
        for option in got.options:
            with cx.nested() as b:
                set_link(cx, node, where, option, what)
            blocks.append(b.block())
        branches(cx, got.selector, blocks)
        return
    row = _row(cx, node, where, got, what)
    if row is not None:
        place = where.place
        whole = cx.b.op("construct", *row, result=place.type)
        cx.b.add(Store(place.array, place.index, whole, (), cx.b.span))


def _row(
    cx: Context, node: ast.AST, where: Linked, got: Operand, what: str
) -> tuple[Atom, ...] | None:
    """What the table is to say; None where that is not known, of which the user is told."""
    if isinstance(got, Absent):
        return (Const(0, INT32),) * (1 + where.type.ndim)
    view = got if isinstance(got, View) else as_view(got)
    root = None if view is None else view.root
    if view is None or root is None or not view.is_whole or root.tables or root.shape:
        _refuse(cx, node, f"{what} would refer to a part of an array, or to an indexed array")
        return None
    if root.place:
        element = root.element
        number = own_leaf(element) if isinstance(element, StructType) else 0
        own, other = where.leaves[number], root.leaves[number]
        assert isinstance(own, Var) and isinstance(other, Var)
        join(cx, own, other)
        return root.place
    index = _parameter(cx, root)
    if index is None:
        _refuse(cx, node, f"{what} would refer to an array that is a parameter of a function, "
                "where the argument of the kernel is unknown")  # fmt: skip
        return None
    number = cx.named_rows.setdefault((where.place.array.name, index), len(cx.named_rows))
    table = cx.table(ARGUMENTS)
    assert isinstance(table, Struct)
    starts = table.item("starts")
    assert isinstance(starts, Value) and isinstance(starts.atom, Var)
    start = cx.b.load(starts.atom, (Const(number, INT32),), (), INT32)
    return start, *(as_int32(cx, size(cx, view, k)) for k in range(view.ndim))


def _parameter(cx: Context, root: Root) -> int | None:
    """Which parameter of the kernel an array is, by the first of its leaves."""
    if not cx.is_kernel:
        return None
    names = [
        leaf.named(name)
        for name, t in cx.function.annotated.items()
        if t is not None
        for leaf in leaves(t)
    ]
    first = root.leaves[0]
    return names.index(first.name) if isinstance(first, Var) and first.name in names else None


def join(cx: Context, a: Var, b: Var) -> None:
    """Notes that two pools have to be one memory."""
    if a.name != b.name:
        cx.joined_pools.setdefault((min(a.name, b.name), max(a.name, b.name)), cx.b.span)


def _refuse(cx: Context, node: ast.AST, message: str) -> None:
    cx.error("E101", node, f"{message}, which cannot be set in a kernel", _HELP)
