"""Conditions and choices: `and`, `or`, `not`, `a if c else b`, `where`.

The right side of `and` and `or` and the arms of a conditional expression are
evaluated only when Python would: with an `If` where evaluating them always could be
seen (memory, calls, infinities in a derivative), else with plain operations.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.context.context import Context
from engine.frontend.context.value_ranges import RangeBuilder
from engine.frontend.expressions.conditions import condition, truth
from engine.frontend.expressions.conversions import refuse_quotient
from engine.frontend.expressions.operators import apply
from engine.frontend.expressions.views import settled
from engine.frontend.operands.kinds import Kind, StructKind, compose, decompose, slots
from engine.frontend.operands.operand import (
    BAD,
    Absent,
    Bad,
    Operand,
    Several,
    Struct,
    Value,
    View,
    literal,
    number,
    unify,
)
from engine.frontend.operands.type_names import type_name
from engine.ir.nodes import Atom, Block, Const, Let, Set, Stmt
from engine.lang.types import BOOL, ArrayType

# Operations that may run although their result is not wanted: cheap, total, and with
# derivatives that are finite everywhere (0 * inf would spoil an adjoint).
_FREE = frozenset(
    {"add", "sub", "neg", "copy", "eq", "ne", "lt", "le", "gt", "ge", "land", "lor", "lnot"}
    | {"bitand", "bitor", "bitxor", "select"}
)
_FREE_OF_DERIVATIVE = _FREE | {"mul", "shape", "tid", "cast", "scale"}


def _free(stmts: Sequence[Stmt], names: frozenset[str]) -> bool:
    return all(
        isinstance(s, Let)
        and (s.op in names or (s.op == "extract" and all(isinstance(a, Const) for a in s.args[1:])))
        for s in stmts
    )


def lower_bool(cx: Context, node: ast.expr) -> Operand:
    """`a and b and ...`, from the left."""
    assert isinstance(node, ast.BoolOp)
    is_and = isinstance(node.op, ast.And)
    left = condition(cx, node.values[0])
    for right in node.values[1:]:
        known = number(left) if isinstance(left, Value) else None
        if known is not None and bool(known) != is_and:
            return left  # `False and ...`: the rest can never run
        with cx.nested() as inner:
            if isinstance(left, Value):
                inner.assume(left.atom, is_and)
            value = condition(cx, right)
        if isinstance(left, Bad) or isinstance(value, Bad):
            left = BAD
            continue
        if known is not None:
            cx.b.stmts += inner.stmts
            left = value
        elif _free(inner.stmts, _FREE_OF_DERIVATIVE):
            cx.b.stmts += inner.stmts
            left = Value(cx.b.op("land" if is_and else "lor", left.atom, value.atom))
        else:
            out = cx.result_variable(BOOL)
            inner.set(out, value.atom)
            shortcut: Block = (Set(out, Const(not is_and, BOOL), cx.b.span),)
            arms = (inner.block(), shortcut) if is_and else (shortcut, inner.block())
            cx.branch(left.atom, *arms)
            left = Value(out)
    return left


def lower_not(cx: Context, node: ast.UnaryOp) -> Operand:
    value = condition(cx, node.operand)
    if isinstance(value, Bad):
        return BAD
    n = number(value)
    return literal(not n) if n is not None else Value(cx.b.op("lnot", value.atom))


def _common(cx: Context, node: ast.AST, arms: list[Value], what: str) -> list[Value] | None:
    found = unify(arms)
    if found is None and refuse_quotient(cx, node, arms):
        return None
    if found is None or isinstance(found[0].type, ArrayType):
        names = " and ".join(type_name(v.type) for v in arms)
        cx.error(
            "E104",
            node,
            f"the two values of {what} must have one type, but they are {names}",
            "convert one of them, or write `if` / `else`",
        )
        return None
    return found


def lower_choice(cx: Context, node: ast.expr) -> Operand:
    """`yes if cond else no`."""
    assert isinstance(node, ast.IfExp)
    cond = condition(cx, node.test)
    known = number(cond) if isinstance(cond, Value) else None
    if known is not None:
        return cx.expr(node.body if known else node.orelse)
    with cx.nested() as first:
        if isinstance(cond, Value):
            first.assume(cond.atom, True)
        yes = cx.expr(node.body)
    with cx.nested() as second:
        if isinstance(cond, Value):
            second.assume(cond.atom, False)
        no = cx.expr(node.orelse)
    if isinstance(cond, Bad) or isinstance(yes, Bad) or isinstance(no, Bad):
        return BAD
    if isinstance(yes, (Struct, View, Absent)) and isinstance(no, (Struct, View, Absent)):
        return _choose(cx, node, cond.atom, (first, yes), (second, no))
    if isinstance(yes, Several) and isinstance(no, Several):
        if not all(isinstance(item, Value) for item in (*yes.items, *no.items)):
            return _choose(cx, node, cond.atom, (first, yes), (second, no))
    many = isinstance(yes, Several) and isinstance(no, Several)
    left = list(yes.items) if isinstance(yes, Several) and many else [yes]
    right = list(no.items) if isinstance(no, Several) and many else [no]
    if len(left) != len(right):
        return cx.error(
            "E109",
            node,
            f"one value gives {len(left)} results, the other {len(right)}",
            "make both give the same number of results",
        )
    pairs: list[list[Value]] = []
    for a, b in zip(left, right, strict=True):
        va, vb = cx.one(node.body, a), cx.one(node.orelse, b)
        if isinstance(va, Bad) or isinstance(vb, Bad):
            return BAD
        pair = _common(cx, node, [va, vb], "this conditional expression")
        if pair is None:
            return BAD
        pairs.append(pair)
    out: list[Operand] = []
    if _free(first.stmts, _FREE) and _free(second.stmts, _FREE):
        cx.b.stmts += first.stmts + second.stmts
        for a, b in pairs:
            out.append(Value(cx.b.op("select", cond.atom, a.atom, b.atom)))
    else:
        for a, b in pairs:
            var = cx.result_variable(a.type)
            first.set(var, a.atom)
            second.set(var, b.atom)
            out.append(Value(var))
        cx.branch(cond.atom, first.block(), second.block())
    return Several(tuple(out)) if many else out[0]


Arm = tuple[RangeBuilder, Operand]


def _choose(cx: Context, node: ast.IfExp, cond: Atom, yes: Arm, no: Arm) -> Operand:
    """One of two structs or views, field by field; arrays in them must be the same."""
    kinds: list[Kind] = []
    atoms: list[tuple[Atom, ...]] = []
    for builder, got in (yes, no):
        outer, cx.b = cx.b, builder
        parts = decompose(settled(cx, got) if isinstance(got, View) else got)
        cx.b = outer
        if parts is None:
            return BAD
        kinds.append(parts[0])
        atoms.append(parts[1])
    every = slots(kinds[0])
    same = kinds[0] == kinds[1]
    pairs = list(zip(every, *atoms, strict=True)) if same else []
    if not same or any(s.static and a != b for s, a, b in pairs):
        names = " and ".join(type_name(k) for k in kinds)
        arrays = kinds[0] == kinds[1] or not isinstance(kinds[0], StructKind)
        return cx.error(
            "E104",
            node,
            "the two values of this conditional expression refer to different arrays" if arrays
            else f"the two values of this conditional expression must have one type, but they "
            f"are {names}",
            "write `if` / `else` around the code that uses them",
        )  # fmt: skip
    out: list[Atom] = []
    for s, a, b in pairs:
        if s.static:
            out.append(a)
            continue
        var = cx.result_variable(s.type)
        yes[0].set(var, a)
        no[0].set(var, b)
        out.append(var)
    cx.branch(cond, yes[0].block(), no[0].block())
    return compose(kinds[0], out)


def lower_where(cx: Context, node: ast.Call, name: str) -> Operand:
    """`where(cond, a, b)`, and the older `select(cond, if_false, if_true)`."""
    args = [cx.scalar_value(a) for a in node.args]
    values = [a for a in args if isinstance(a, Value)]
    if len(values) != len(args):
        return BAD
    if len(values) != 3:
        return cx.error(
            "E109",
            node,
            f"`{name}` takes 3 arguments, got {len(values)}",
            f"write `{cx.api}.where(condition, value_if_true, value_if_false)`",
        )
    pair = _common(cx, node, values[1:], f"`{name}`")
    cond = truth(cx, node.args[0], values[0])
    if pair is None or isinstance(cond, Bad):
        return BAD
    return apply(cx, node, name, [cond, *pair])
