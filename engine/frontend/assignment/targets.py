"""Assignment: to names, parts of values, array elements and several targets at once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from engine.frontend.assignment.aggregates import linked_write, set_field, struct_writes
from engine.frontend.assignment.names import set_name
from engine.frontend.context.context import Context
from engine.frontend.expressions.choices import branches
from engine.frontend.expressions.component_slices import written
from engine.frontend.expressions.conversions import coerce
from engine.frontend.expressions.local_arrays import write_local
from engine.frontend.expressions.sequences import items_of
from engine.frontend.expressions.subscripts import lvalue, part_of
from engine.frontend.operands.lvalues import Chosen, Element, Linked, Local, LValue, Part, Region
from engine.frontend.operands.operand import (
    BAD,
    Absent,
    Bad,
    Choice,
    Operand,
    Several,
    Struct,
    Value,
    View,
)
from engine.frontend.operands.type_names import type_name
from engine.ir.nodes import Atom, Store, Var
from engine.lang.types import ScalarType, VectorType


def assign(cx: Context, target: ast.expr, got: Operand, value: ast.expr) -> None:
    """Gives a target a value; `value` is the node to blame for a wrong type."""
    if id(target) in cx.function.rejected:
        return
    if isinstance(target, (ast.Tuple, ast.List)):
        _unpack(cx, target, got, value)
    elif isinstance(target, ast.Name):
        set_name(cx, target, got, value)
    else:
        with cx.at(target):
            if set_field(cx, target, got, value):
                return
            where = lvalue(cx, target)
        give(cx, target, where, got, value)


def give(cx: Context, target: ast.expr, where: LValue, got: Operand, value: ast.expr) -> None:
    """Gives a place a value, which may be a struct; the array may be chosen at run time."""
    if isinstance(where, Chosen):
        each_part(cx, where, lambda part: give(cx, target, part, got, value))
        return
    with cx.at(target):
        if isinstance(where, Linked):
            linked_write(cx, where, got, value, f"`{cx.source.text(target)}`")
            return
        if isinstance(where, Struct):
            text = f"`{cx.source.text(target)}`"
            for part, atom in struct_writes(cx, where, got, value, text):
                write(cx, target, part, Value(atom), value)
            return
    write(cx, target, where, cx.one(value, got), value)


def each_part(cx: Context, where: Chosen, use: Callable[[LValue], None]) -> None:
    """Does something with a part of the array that is chosen."""
    blocks = []
    for option in where.choice.options:
        with cx.nested() as b:
            use(part_of(cx, where, option))
        blocks.append(b.block())
    branches(cx, where.choice.selector, blocks)


def _unpack(cx: Context, target: ast.Tuple | ast.List, got: Operand, value: ast.expr) -> None:
    found = None if isinstance(got, Bad) else items_of(cx, value, got)
    rest = [k for k, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
    if found is not None:
        items = found
        if len(rest) == 1 and len(items) >= len(target.elts) - 1:
            start, stop = rest[0], len(items) - (len(target.elts) - 1 - rest[0])
            items = (*items[:start], Several(items[start:stop]), *items[stop:])
        elif len(items) != len(target.elts):
            cx.error(
                "E109",
                target,
                f"{len(target.elts)} names for {len(items)} value{'s' if len(items) != 1 else ''}",
                "write one name for each value",
            )
            items = (BAD,) * len(target.elts)
    else:
        if not isinstance(got, Bad):
            one = cx.one(value, got)
            if isinstance(one, Value):
                cx.error(
                    "E109",
                    target,
                    f"{len(target.elts)} names for one value of type {type_name(one.type)}",
                    "write one name",
                )
        items = (BAD,) * len(target.elts)
    names = [t.value if isinstance(t, ast.Starred) else t for t in target.elts]
    # An item of a written-out tuple has a place of its own to blame.
    parts: Sequence[ast.expr] = [value] * len(items)
    if isinstance(value, ast.Tuple) and len(value.elts) == len(items):
        parts = value.elts
    for t, item, part in zip(names, items, parts, strict=True):
        assign(cx, t, item, part)


def lower_walrus(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.NamedExpr)
    got = cx.expr(node.value)
    set_name(cx, node.target, got, node.value)
    return cx.expr(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))


# ---- parts and elements


def _variable_behind(cx: Context, base: Atom) -> Var | None:
    return base if isinstance(base, Var) and base in cx.owned else None


def write(cx: Context, target: ast.expr, where: LValue, got: Value | Bad, value: ast.expr) -> None:
    """Gives an lvalue a value."""
    if isinstance(got, Bad) or isinstance(where, Bad):
        return
    if isinstance(where, Element):
        text = f"an element of `{where.array.name}`" if not where.path else "this component"
        atom = coerce(cx, value, got, where.type, text)
        if atom is None:
            return
        if where.is_row:
            whole = cx.b.load(where.array, where.index, (), where.element)
            changed = cx.b.op("insert_row", whole, *where.path, atom)
            cx.b.add(Store(where.array, where.index, changed, (), cx.b.span))
        else:
            cx.b.add(Store(where.array, where.index, atom, where.path, cx.b.span))
        return
    if isinstance(where, Region):
        _write_region(cx, target, where, got, value)
        return
    if isinstance(where, Part):
        var = _variable_behind(cx, where.base)
        if var is None:
            not_assignable(cx, target)
            return
        atom = coerce(cx, value, got, where.type, "this component")
        if atom is not None:
            name = "insert_row" if isinstance(where.type, VectorType) else "insert"
            cx.b.set(var, cx.b.op(name, var, *where.index, atom))
        return
    if isinstance(where, Value):
        var = _variable_behind(cx, where.atom)  # `adjoint[x] = ...`, `s.x = ...`
        if var is not None and not isinstance(target, ast.Name):
            atom = coerce(cx, value, got, var.type, f"`{cx.source.text(target)}`")
            if atom is not None:
                cx.b.set(var, atom)
            return
    if isinstance(where, Local):
        var = _variable_behind(cx, where.base)
        atom = coerce(cx, value, got, where.type, "an element of this array")
        if var is not None and atom is not None:
            cx.b.set(var, write_local(cx, where, atom))
        if var is not None or atom is None:
            return
    if isinstance(where, (View, Absent, Choice)):
        cx.describe(target, where)  # too few indices, mostly: says so
        return
    not_assignable(cx, target)


def _write_region(
    cx: Context, target: ast.expr, where: Region, got: Value, value: ast.expr
) -> None:
    """Gives a slice new components: as many as it has, or a number that fills it."""
    fills = got.weak or isinstance(got.type, ScalarType)
    t = where.whole.scalar if fills else where.type
    atom = coerce(cx, value, got, t, f"`{cx.source.text(target)}`")
    if atom is None:
        return
    if isinstance(where.base, Element):
        at = where.base
        for path, part in written(cx, where, atom):
            cx.b.add(Store(at.array, at.index, part, path, cx.b.span))
        return
    var = _variable_behind(cx, where.base)
    if var is None:
        not_assignable(cx, target)
        return
    whole: Atom = var
    for path, part in written(cx, where, atom):
        whole = cx.b.op("insert", whole, *path, part)
    cx.b.set(var, whole)


def not_assignable(cx: Context, target: ast.expr) -> None:
    cx.error(
        "E101",
        target,
        f"`{cx.source.text(target)}` cannot be assigned to",
        "assign to a variable, a component of a variable, or an array element",
    )
