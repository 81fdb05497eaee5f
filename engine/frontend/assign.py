"""Assignment: to names, parts of values, array elements and several targets at once."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.aggregates import as_field, set_field, struct_writes, zero_of
from engine.frontend.annotations import BadAnnotation, annotation_of_node, help_text
from engine.frontend.context import EXPR, STMT, Context
from engine.frontend.exprs import binary
from engine.frontend.local_arrays import write_local
from engine.frontend.locals import root_name, target_names
from engine.frontend.operands import (
    BAD,
    Absent,
    Bad,
    Known,
    Operand,
    Several,
    Struct,
    Value,
    View,
    zero,
)
from engine.frontend.ops import coerce
from engine.frontend.place_kinds import Element, Local, Part, Place, Region, Shape
from engine.frontend.places import place, read
from engine.frontend.regions import written
from engine.frontend.typenames import type_name
from engine.frontend.variables import set_name
from engine.ir.nodes import Atom, Atomic, AtomicKind, Store, Var
from engine.lang.structs import ARRAYS, StructType
from engine.lang.types import ScalarType, VectorType, scalar_of


def lower_assign(cx: Context, node: ast.stmt) -> None:
    assert isinstance(node, ast.Assign)
    several = [t for t in node.targets if isinstance(t, (ast.Tuple, ast.List))]
    got = _right_side(cx, node.value, several)
    changed = {n for t in node.targets for n in (*target_names(t), root_name(t)) if n}
    for t in several:
        changed |= {n for e in t.elts if (n := root_name(e))}
    if (several or len(node.targets) > 1) and any(n in cx.vars or n in cx.trees for n in changed):
        got = cx.keep(got)  # `a, b = b, a`: read everything before anything changes
    if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        set_name(cx, node.targets[0], got, node.value, naming=True)
        return
    for target in node.targets:
        assign(cx, target, got, node.value)


def _right_side(cx: Context, node: ast.expr, several: Sequence[ast.Tuple | ast.List]) -> Operand:
    """The value; `tid()` gives as many coordinates as there are names for them."""
    from engine.frontend.calls import is_tid, thread_coordinates

    if several and isinstance(node, ast.Call) and is_tid(cx, node):
        with cx.at(node):
            return thread_coordinates(cx, node, len(several[0].elts))
    return cx.expr(node)


def assign(cx: Context, target: ast.expr, got: Operand, value: ast.expr) -> None:
    """Gives a target a value; `value` is the node to blame for a wrong type."""
    if id(target) in cx.made.rejected:
        return
    if isinstance(target, (ast.Tuple, ast.List)):
        _unpack(cx, target, got, value)
    elif isinstance(target, ast.Name):
        set_name(cx, target, got, value)
    else:
        with cx.at(target):
            if set_field(cx, target, got, value):
                return
            where = place(cx, target)
            if isinstance(where, Struct):
                text = f"`{cx.source.text(target)}`"
                for part, atom in struct_writes(cx, where, got, value, text):
                    write(cx, target, part, Value(atom), value)
                return
        write(cx, target, where, cx.one(value, got), value)


def _unpack(cx: Context, target: ast.Tuple | ast.List, got: Operand, value: ast.expr) -> None:
    if isinstance(got, Value) and isinstance(got.type, VectorType):
        index = range(got.type.length)
        got = Several(tuple(read(cx, Part(got.atom, (_int(i),))) for i in index))
    if isinstance(got, Several):
        items = got.items
        if len(items) != len(target.elts):
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
    # An item of a written-out tuple has a place of its own to blame.
    parts: Sequence[ast.expr] = [value] * len(items)
    if isinstance(value, ast.Tuple) and len(value.elts) == len(items):
        parts = value.elts
    for t, item, part in zip(target.elts, items, parts, strict=True):
        assign(cx, t, item, part)


def _int(i: int) -> Atom:
    from engine.frontend.operands import literal

    return literal(i).atom


def lower_walrus(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.NamedExpr)
    got = cx.expr(node.value)
    set_name(cx, node.target, got, node.value)
    return cx.expr(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))


def lower_annotated(cx: Context, node: ast.stmt) -> None:
    """`x: float = 0.0`, or `x: float`, which is zero."""
    assert isinstance(node, ast.AnnAssign)
    target = node.target
    assert isinstance(target, ast.Name)
    try:
        t = annotation_of_node(node.annotation, cx.scope)
    except BadAnnotation as error:
        cx.error(error.code, node.annotation, str(error), error.help or help_text(cx.api))
        cx.spoil(node)
        return
    if isinstance(t, StructType):
        lower_annotated_struct(cx, node, target, t)
        return
    if isinstance(t, ARRAYS):
        cx.error("E103", node.annotation, "a local variable cannot be an array", help_text(cx.api))
        cx.spoil(node)
        return
    got: Operand = Value(zero(t)) if node.value is None and t is not None else BAD
    if node.value is not None:
        got = cx.value(node.value)
        if isinstance(got, Value) and t is not None and target.id not in cx.types:
            atom = coerce(cx, node.value, got, t, f"`{target.id}`", "E105")
            got = BAD if atom is None else Value(atom)
    set_name(cx, target, got, node.value or node.annotation)


def lower_annotated_struct(
    cx: Context, node: ast.AnnAssign, target: ast.Name, t: StructType
) -> None:
    """`s: S = ...`, or `s: S`, which is zero."""
    got: Operand | None = zero_of(t)
    if node.value is not None:
        got = as_field(cx, node.value, cx.expr(node.value), t, f"`{target.id}`")
    set_name(cx, target, BAD if got is None else got, node.value or node.annotation)


# ---- parts and elements


def _variable_behind(cx: Context, base: Atom) -> Var | None:
    return base if isinstance(base, Var) and base in cx.owned else None


def write(cx: Context, target: ast.expr, where: Place, got: Value | Bad, value: ast.expr) -> None:
    """Stores a value at a place."""
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
            _not_assignable(cx, target)
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
    if isinstance(where, (View, Absent)):
        cx.describe(target, where)  # too few indices, mostly: says so
        return
    _not_assignable(cx, target)


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
        _not_assignable(cx, target)
        return
    whole: Atom = var
    for path, part in written(cx, where, atom):
        whole = cx.b.op("insert", whole, *path, part)
    cx.b.set(var, whole)


def _not_assignable(cx: Context, target: ast.expr) -> None:
    cx.error(
        "E101",
        target,
        f"`{cx.source.text(target)}` cannot be assigned to",
        "assign to a variable, a component of a variable, or an array element",
    )


_ATOMIC: dict[type[ast.AST], AtomicKind] = {
    ast.Add: "add", ast.Sub: "sub", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip


def lower_augmented(cx: Context, node: ast.stmt) -> None:
    """`a[i] += e` (an atomic update, as in Warp), `a[i] *= e`, `v.x += e`."""
    assert isinstance(node, ast.AugAssign)
    with cx.at(node.target):
        where = place(cx, node.target)
    kind = _ATOMIC.get(type(node.op))
    if isinstance(where, Element) and kind and _updates(kind, scalar_of(where.type).kind):
        if not where.is_row:
            _update(cx, node, where, kind, cx.scalar_value(node.value))
            return
    if isinstance(where, Region) and isinstance(where.base, Element) and kind:
        if where.whole.scalar.kind != "b":
            _update(cx, node, where, kind, cx.scalar_value(node.value))
            return
    if isinstance(where, (Known, Several, Shape, Struct)):
        _not_assignable(cx, node.target)
        where = BAD
    old = cx.one(node.target, read(cx, where))
    new = binary(cx, node, node.op, old, cx.scalar_value(node.value))
    write(cx, node.target, where, new, node.value)


def _updates(kind: AtomicKind, scalar: str) -> bool:
    return scalar in "iu" or (scalar == "f" and kind in ("add", "sub"))


def _update(
    cx: Context,
    node: ast.AugAssign,
    where: Element | Region,
    kind: AtomicKind,
    value: Value | Bad,
) -> None:
    if isinstance(value, Bad):
        return
    at = where if isinstance(where, Element) else where.base
    assert isinstance(at, Element)
    whole = isinstance(where, Element) and not where.path
    text = f"an element of `{at.array.name}`" if whole else "this component"
    if isinstance(where, Region):
        text = f"`{cx.source.text(node.target)}`"
    atom = coerce(cx, node.value, value, where.type, text)
    if atom is None:
        return
    parts = [(at.path, atom)] if isinstance(where, Element) else written(cx, where, atom)
    for path, part in parts:
        cx.b.add(Atomic(None, kind, at.array, at.index, part, path, cx.b.span))


EXPR[ast.NamedExpr] = lower_walrus
STMT[ast.Assign] = lower_assign
STMT[ast.AnnAssign] = lower_annotated
STMT[ast.AugAssign] = lower_augmented
