"""Assignment statements: plain, annotated and augmented."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.assignment.aggregates import as_field, zero_of
from engine.frontend.assignment.names import set_name
from engine.frontend.assignment.targets import assign, each_part, give, not_assignable
from engine.frontend.calls.dispatch import is_tid, thread_coordinates
from engine.frontend.calls.user_operators import operator_function, user_operator
from engine.frontend.context.context import Context
from engine.frontend.expressions.arithmetic import binary
from engine.frontend.expressions.component_slices import written
from engine.frontend.expressions.conversions import coerce
from engine.frontend.expressions.subscripts import lvalue, read_now
from engine.frontend.operands.kinds import decompose
from engine.frontend.operands.lvalues import Chosen, Element, LValue, Region, Shape
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    Known,
    Operand,
    Several,
    Struct,
    Value,
    zero,
)
from engine.frontend.parsing.annotations import BadAnnotation, annotation_of_node, help_text
from engine.frontend.parsing.local_variables import root_name, target_names
from engine.ir.nodes import Atomic, AtomicKind, Set, Stmt, Var, walk
from engine.ir.touched import touched
from engine.lang.structs import ARRAYS, FieldType, StructType
from engine.lang.types import scalar_of


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
    if several and isinstance(node, ast.Call) and is_tid(cx, node):
        with cx.at(node):
            return thread_coordinates(cx, node, len(several[0].elts))
    return cx.expr(node)


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
        array = _annotated_array(cx, node, target, t)
        if array is None:
            cx.spoil(node)
        else:
            set_name(cx, target, array, node.value or node.annotation)
        return
    got: Operand = Value(zero(t)) if node.value is None and t is not None else BAD
    if node.value is not None:
        got = cx.value(node.value)
        if isinstance(got, Value) and t is not None and target.id not in cx.types:
            atom = coerce(cx, node.value, got, t, f"`{target.id}`", "E105")
            got = BAD if atom is None else Value(atom)
    set_name(cx, target, got, node.value or node.annotation)


def _annotated_array(
    cx: Context, node: ast.AnnAssign, target: ast.Name, t: FieldType
) -> Operand | None:
    """The array of `x: array(dtype=...) = ...`."""
    if node.value is None:
        cx.error("E103", node.annotation, "a local variable for an array needs the array",
                 "assign one, such as a parameter of the kernel")  # fmt: skip
        return None
    return as_field(cx, node.value, cx.expr(node.value), t, f"`{target.id}`")


def lower_annotated_struct(
    cx: Context, node: ast.AnnAssign, target: ast.Name, t: StructType
) -> None:
    """`s: S = ...`, or `s: S`, which is zero."""
    got: Operand | None = zero_of(t)
    if node.value is not None:
        got = as_field(cx, node.value, cx.expr(node.value), t, f"`{target.id}`")
    set_name(cx, target, BAD if got is None else got, node.value or node.annotation)


_ATOMIC: dict[type[ast.AST], AtomicKind] = {
    ast.Add: "add", ast.Sub: "sub", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip


def lower_augmented(cx: Context, node: ast.stmt) -> None:
    """`a[i] += e`, `a[i] *= e`, `v.x += e`.

    As in Python, the target is read, then the right side is computed, then the target is
    written. Where the right side does not change the target's array, `+=` and the like of an
    element are one atomic update, as in Warp: that gives the same for each thread.
    """
    assert isinstance(node, ast.AugAssign)
    with cx.at(node.target):
        where = lvalue(cx, node.target)
    before, old = len(cx.b.stmts), None
    own = operator_function(cx, node.op) is not None
    if not isinstance(where, (Chosen, *_NO_TARGET)) and (own or not _updates(node, where)):
        old = read_now(cx, node.target, where)
    _augment(cx, node, where, cx.expr(node.value), before, old)


def _augment(
    cx: Context,
    node: ast.AugAssign,
    where: LValue,
    right: Operand,
    before: int,
    old: Operand | None = None,
) -> None:
    """before: how many statements there were before those of the right side. old: the target's
    value there, if it has been read.
    """
    changed = _changes(where, cx.b.stmts[before:])
    if isinstance(where, Chosen) and not changed:
        right = cx.keep(right)
        each_part(cx, where, lambda part: _augment(cx, node, part, right, len(cx.b.stmts)))
        return
    if operator_function(cx, node.op) is not None and not isinstance(where, _NO_TARGET):
        old = _read_before(cx, node, where, before) if old is None else old
        given = [(node.target, old), (node.value, right)]
        own = user_operator(cx, node.value, node.op, given)
        if own is not None:
            give(cx, node.target, where, own, node.value)
            return
    value = cx.scalar_one(node.value, right)
    if isinstance(where, (Element, Region)) and _updates(node, where) and not changed:
        _update(cx, node, where, _ATOMIC[type(node.op)], value)
        return
    if isinstance(where, (*_NO_TARGET, Struct)):
        if not isinstance(where, Bad):
            not_assignable(cx, node.target)
        return
    old = _read_before(cx, node, where, before) if old is None else old
    new = binary(cx, node, node.op, cx.one(node.target, old), value)
    give(cx, node.target, where, new, node.value)


_NO_TARGET = (Bad, Known, Several, Shape)


def _changes(where: LValue, right_side: Sequence[Stmt]) -> bool:
    """Whether the statements of a right side change an array that the target is part of."""
    arrays: set[str] = set()
    if isinstance(where, Chosen):
        parts = decompose(where.choice)
        arrays |= {a.name for a in (parts[1] if parts else ()) if isinstance(a, Var)}
    at = where.base if isinstance(where, Region) else where
    if isinstance(at, Element):
        arrays.add(at.array.name)
    block = tuple(right_side)
    sets = {s.dst.name for s in walk(block) if isinstance(s, Set)}
    return not arrays.isdisjoint(sets | touched(block)[1])


def _read_before(cx: Context, node: ast.AugAssign, where: LValue, before: int) -> Operand:
    """The target's value before the right side, whose statements are there already."""
    outer, cx.b = cx.b, cx.b.child()
    try:
        old = read_now(cx, node.target, where)
    finally:
        made, cx.b = cx.b.stmts, outer
    cx.b.stmts[before:before] = made
    return old


def _updates(node: ast.AugAssign, where: LValue) -> bool:
    """Whether there is an atomic update that does this to the place."""
    kind = _ATOMIC.get(type(node.op))
    if isinstance(where, Region):
        return bool(kind) and isinstance(where.base, Element) and where.whole.scalar.kind != "b"
    if kind is None or not isinstance(where, Element) or where.is_row:
        return False
    scalar = scalar_of(where.type).kind
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
