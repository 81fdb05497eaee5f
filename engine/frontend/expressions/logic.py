"""Conditions and choices: `and`, `or`, `not`, `a if c else b`, `where`.

The right side of `and` and `or` and the arms of a conditional expression are
evaluated only when Python would: with an `If` where evaluating them always could be
seen (memory, calls, infinities in a derivative), else with plain operations.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from engine.frontend.context.context import Context
from engine.frontend.context.value_ranges import RangeBuilder
from engine.frontend.expressions.choices import (
    FREE,
    FREE_OF_DERIVATIVE,
    is_array,
    is_free,
    merged,
)
from engine.frontend.expressions.conditions import condition, truth
from engine.frontend.expressions.conversions import refuse_quotient
from engine.frontend.expressions.operators import apply, ask_for, tabled
from engine.frontend.operands.folding import chosen_among
from engine.frontend.operands.kinds import decompose, user_type
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    LiteralTable,
    Operand,
    Several,
    Struct,
    Value,
    View,
    float_literal,
    is_exact,
    is_scalar,
    literal,
    number,
    place_in,
    unify,
)
from engine.frontend.operands.type_names import type_name
from engine.ir.nodes import Atom, Block, Const, Set
from engine.lang.types import BOOL, INT32, ArrayType


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
        elif is_free(inner.stmts, FREE_OF_DERIVATIVE):
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


def _common(
    cx: Context, node: ast.AST, arms: list[Value], what: str, *builders: RangeBuilder
) -> list[Value] | None:
    found = unify(arms, *builders)
    if found is None and refuse_quotient(cx, node, arms):
        return None
    if found is None or isinstance(found[0].type, ArrayType):
        ask_for(cx, node, [v.type for v in arms])
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
    if any(_compound(got) for got in (yes, no)):
        found = merged(cx, cond.atom, ((first, yes), (second, no)))
        return _no_common_type(cx, node, yes, no) if found is None else found
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
    given: list[list[Value]] = []
    pairs: list[list[Value]] = []
    for a, b in zip(left, right, strict=True):
        va, vb = cx.one(node.body, a), cx.one(node.orelse, b)
        if isinstance(va, Bad) or isinstance(vb, Bad):
            return BAD
        pair = _common(cx, node, [va, vb], "this conditional expression", first, second)
        if pair is None:
            return BAD
        given.append([va, vb])
        pairs.append(pair)
    out: list[Operand] = []
    if is_free(first.stmts, FREE) and is_free(second.stmts, FREE):
        cx.b.stmts += first.stmts + second.stmts
        for arms, (a, b) in zip(given, pairs, strict=True):
            value = Value(cx.b.op("select", cond.atom, a.atom, b.atom))
            out.append(_chosen(cx, node, value, cond, arms))
    else:
        which = [_which(cx, arms, (first, second)) for arms in given]
        made = [cx.result_variable(a.type) for a, _ in pairs]
        for var, (a, b) in zip(made, pairs, strict=True):
            first.set(var, a.atom)
            second.set(var, b.atom)
        cx.branch(cond.atom, first.block(), second.block())
        for var, table in zip(made, which, strict=True):
            out.append(tabled(cx, node, Value(var), table) if table else Value(var))
    return Several(tuple(out)) if many else out[0]


def _chosen(
    cx: Context, node: ast.AST, got: Value, cond: Value, arms: Sequence[Value]
) -> Value | Bad:
    """What a condition chooses: between literals a literal."""
    if not all(v.weak for v in arms):
        return got
    place = cx.frozen(cond.atom)
    return tabled(cx, node, got, lambda: chosen_among(place, arms))


def _which(
    cx: Context, arms: Sequence[Value], builders: Sequence[RangeBuilder]
) -> Callable[[], LiteralTable | None] | None:
    """Makes the table of the literals of two blocks of which one runs: a variable says which."""
    if not all(v.weak for v in arms):
        return None
    which, items, exact = cx.result_variable(INT32), list[Value](), all(map(is_exact, arms))
    for b, v in zip(builders, arms, strict=True):
        place: Atom = Const(len(items), INT32)
        if v.table is not None:
            place = b.op("add", place_in(b, v.table), place)
        b.set(which, place)
        items += [v] if v.table is None else v.table.items
    return lambda: chosen_among(which, items, exact)


def _compound(got: Operand) -> bool:
    """Whether one of two such is chosen part by part: structs, arrays, tuples with such."""
    if isinstance(got, Several):
        return not all(isinstance(item, Value) and not is_array(item) for item in got.items)
    return isinstance(got, (Struct, View)) or is_array(got)


def _no_common_type(cx: Context, node: ast.expr, yes: Operand, no: Operand) -> Bad:
    parts = [decompose(got) for got in (yes, no)]
    kinds = [p[0] for p in parts if p is not None]
    if len(kinds) == 2 and user_type(kinds[0]) == user_type(kinds[1]):
        return cx.error(
            "E104",
            node,
            "the two values of this conditional expression refer to different arrays, of which "
            "one is local",
            "write `if` / `else` around the code that uses them",
        )
    shown = " and ".join(type_name(k) for k in kinds) or "of different kinds"
    return cx.error(
        "E104",
        node,
        f"the two values of this conditional expression must have one type, but they are {shown}",
        "write `if` / `else` around the code that uses them",
    )


def lower_where(cx: Context, node: ast.Call, name: str) -> Operand:
    """`where(cond, a, b)`, and the older `select(cond, if_false, if_true)`."""
    found = [cx.expr(a) for a in node.args]
    if name == "where" and len(found) == 3 and all(is_array(got) for got in found[1:]):
        return _where_array(cx, node, found)
    args = [cx.scalar_one(a, got) for a, got in zip(node.args, found, strict=True)]
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
    pair = _common(cx, node, values[1:], f"`{name}`", cx.b)
    cond = truth(cx, node.args[0], values[0])
    if pair is None or isinstance(cond, Bad):
        return BAD
    got = apply(cx, node, name, [cond, *pair])
    if isinstance(got, Bad) or not all(v.weak for v in values[1:]):
        return got
    arms = values[1:] if name == "where" else values[:0:-1]
    known = number(cond)
    if known is not None:
        arm = arms[0 if known else 1]
        return arm if arm.type == got.type else _like(cx, arm, got)
    return _chosen(cx, node, got, cond, arms)


def _like(cx: Context, arm: Value, got: Value) -> Value:
    """A literal beside one of another type: of floats where one of them is."""
    floats = is_scalar(got.type, "f") and is_scalar(arm.type, "iu") and not arm.truncated
    return float_literal(cx.b, arm) if floats else got


def _where_array(cx: Context, node: ast.Call, found: Sequence[Operand]) -> Operand:
    """`where(cond, a, b)` for arrays: one of them."""
    cond = truth(cx, node.args[0], cx.scalar_one(node.args[0], found[0]))
    if isinstance(cond, Bad):
        return BAD
    known = number(cond)
    if known is not None:
        return found[1] if known else found[2]
    with cx.nested() as first, cx.nested() as second:
        pass
    got = merged(cx, cond.atom, ((first, found[1]), (second, found[2])))
    return _no_common_type(cx, node, found[1], found[2]) if got is None else got
