"""Statements that decide what runs: `if`, `for`, `while`, `break`, `continue`, `return`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.assignment.names import set_name
from engine.frontend.calls.dispatch import call_statement
from engine.frontend.context.context import Context
from engine.frontend.context.value_ranges import RangeBuilder
from engine.frontend.expressions.conditions import condition
from engine.frontend.expressions.conversions import integer
from engine.frontend.operands.operand import BAD, Bad, Operand, Value, literal, number, unify
from engine.frontend.operands.type_names import type_name
from engine.frontend.parsing.local_variables import stores
from engine.frontend.statements.query_loops import lower_query_loop
from engine.frontend.statements.unrolled_loops import (
    items_to_loop_over,
    jumps,
    unroll,
    unroll_range,
    unrolls,
)
from engine.ir.nodes import (
    Atomic,
    Block,
    Break,
    Call,
    Const,
    Continue,
    For,
    If,
    Message,
    Return,
    Set,
    Stmt,
    Store,
    Var,
    While,
    walk,
    writes_memory,
)
from engine.lang.types import BOOL, INT32, ScalarType


def lower_if(cx: Context, node: ast.stmt) -> None:
    assert isinstance(node, ast.If)
    with cx.at(node.test):
        cond = condition(cx, node.test)
    known = number(cond) if isinstance(cond, Value) else None
    if known is not None:
        cx.block(node.body if known else node.orelse)
        return
    with cx.nested() as then:
        if isinstance(cond, Value):
            then.assume(cond.atom, True)
        cx.block(node.body)
    with cx.nested() as orelse:
        if isinstance(cond, Value):
            orelse.assume(cond.atom, False)
        cx.block(node.orelse)
    if isinstance(cond, Value) and (then.stmts or orelse.stmts):
        with cx.at(node.test):
            cx.branch(cond.atom, then.block(), orelse.block())
        if not reaches_end(then.block()):
            cx.b.assume(cond.atom, False)
        elif not reaches_end(orelse.block()):
            cx.b.assume(cond.atom, True)


# ---- loops


def _range(cx: Context, node: ast.For) -> list[Value] | None:
    """start, stop and step of `range(...)`, in one integer type."""
    call = node.iter
    if _calls(cx, call, reversed):
        assert isinstance(call, ast.Call)
        bounds = _bounds(cx, call.args[0])
        return None if bounds is None else _backwards(cx, call, bounds)
    return _bounds(cx, call)


def _calls(cx: Context, node: ast.expr, function: object) -> bool:
    """Whether an expression is a call of one of Python's own functions."""
    if not isinstance(node, ast.Call) or id(node) in cx.function.rejected:
        return False
    found = cx.expr(node.func)
    return getattr(found, "obj", None) is function


def _over_range(cx: Context, node: ast.expr) -> bool:
    """Whether a loop runs over `range(...)` or `reversed(range(...))`."""
    if _calls(cx, node, reversed):
        assert isinstance(node, ast.Call)
        if len(node.args) == 1 and not node.keywords:
            node = node.args[0]
    return _calls(cx, node, range)


def _backwards(cx: Context, node: ast.AST, bounds: list[Value]) -> list[Value] | None:
    """The bounds of a range as those of the same numbers in the other order."""
    numbers = [number(v) for v in bounds]
    start, stop, step = (v.atom for v in bounds)
    t = start.type
    assert isinstance(t, ScalarType)
    if all(isinstance(k, int) for k in numbers):
        turned = range(*(int(k or 0) for k in numbers))[::-1]
        if t.kind != "u" or turned.stop >= 0:
            ends = (turned.start, turned.stop, turned.step)
            return [Value(Const(k, t), v.weak) for k, v in zip(ends, bounds, strict=True)]
    if t.kind == "u":
        cx.error(
            "E104",
            node,
            f"a range of {type_name(t)} cannot be reversed, because it would end below zero",
            "convert the arguments: `int(...)`",
        )
        return None
    one, by = Const(1, t), numbers[2]
    if by in (1, -1):
        less = "sub" if by == 1 else "add"
        first, beyond = cx.b.op(less, stop, one), cx.b.op(less, start, one)
        return [Value(first), Value(beyond), Value(Const(-by, t))]
    # How many numbers there are: the quotient, rounded up. What is beyond the end has none.
    sign = cx.b.op("select", cx.b.op("gt", step, Const(0, t)), one, Const(-1, t))
    room = cx.b.op("sub", cx.b.op("add", cx.b.op("sub", stop, start), step), sign)
    count = cx.b.op("max", cx.b.op("div", room, step), Const(0, t))
    before = cx.b.op("sub", start, step)
    return [
        Value(cx.b.op("add", before, cx.b.op("mul", count, step))),
        Value(before),
        Value(cx.b.op("neg", step)),
    ]


def _bounds(cx: Context, call: ast.expr) -> list[Value] | None:
    """start, stop and step of a call of `range`."""
    assert isinstance(call, ast.Call)
    if call.keywords or not 1 <= len(call.args) <= 3:
        cx.error(
            "E109",
            call,
            f"`range` takes 1 to 3 arguments, got {len(call.args)}",
            "write `range(stop)`, `range(start, stop)` or `range(start, stop, step)`",
        )
        return None
    args = [cx.value(a) for a in call.args]
    for k, v in enumerate(args):
        known = number(v) if isinstance(v, Value) else None
        if isinstance(known, bool):
            args[k] = literal(int(known))
    values: list[Value] = []
    for a, v in zip(call.args, args, strict=True):
        if integer(cx, a, v, "an argument of `range`") is not None and isinstance(v, Value):
            values.append(v)
    if len(values) != len(args):
        return None
    zero, one = Value(Const(0, INT32), True), Value(Const(1, INT32), True)
    full = [zero, *values, one] if len(values) == 1 else [*values, one][:3]
    if number(full[2]) == 0:
        cx.error("E104", call.args[2], "the step of `range` is zero", "use a step such as 1 or -1")
        return None
    same = unify(full, cx.b)
    if same is None:
        names = ", ".join(type_name(v.type) for v in values)
        cx.error(
            "E104",
            call,
            f"the arguments of `range` have different types ({names})",
            "convert them: `int(...)`",
        )
    return same


def lower_for(cx: Context, node: ast.stmt) -> None:
    assert isinstance(node, ast.For)
    cx.forget_counts(node)
    _for(cx, node)
    last = _last_count(cx, node) if cx.path else None
    cx.forget_counts(node)
    if last is not None:
        assert isinstance(node.target, ast.Name)
        cx.unrolled[node.target.id] = last


def _last_count(cx: Context, node: ast.For) -> int | None:
    """What the loop's variable is after it, where that is known: `static(...)` may ask."""
    target = node.target
    found = cx.facts.last.get((id(node), cx.path))
    if found is None or not isinstance(target, ast.Name) or any(jumps(node.body)):
        return None
    return None if any(target.id in stores(s) for s in node.body) else found


def _for(cx: Context, node: ast.For) -> None:
    if lower_query_loop(cx, node):
        return
    bounds: list[Value] | None = None
    if not _over_range(cx, node.iter):
        _over_items(cx, node)
        return
    with cx.at(node.iter):
        bounds = _range(cx, node)
    if not isinstance(node.target, ast.Name):
        cx.error("E109", node.target, "several names for one number of `range`",
                 "write one name, or loop over `enumerate(...)` or `zip(...)`")  # fmt: skip
        cx.spoil(node.target)
        target = None
    else:
        target = node.target
    known = [number(v) for v in bounds or ()]
    if bounds and all(isinstance(k, int) for k in known):
        counts = range(*(int(k or 0) for k in known))
        cx.facts.trips[id(node), cx.path] = len(counts)
        if counts:
            cx.facts.last[id(node), cx.path] = counts[-1]
    if target is not None and unrolls(cx, node):
        if bounds:
            unroll_range(cx, node, bounds)
        else:
            cx.spoil(node)
        return
    t = bounds[0].type if bounds else INT32
    var = cx.b.temp(t, target.id if target else "i")
    with cx.looping(node), cx.nested() as body:
        if bounds:
            _learn_count(body, var, bounds)
        if target is not None:
            _count(cx, target, Value(var) if bounds else BAD)
        cx.block(node.body)
    if bounds:
        start, stop, step = (v.atom for v in bounds)
        cx.b.add(For(var, start, stop, step, body.block(), cx.b.span))


def _over_items(cx: Context, node: ast.For) -> None:
    """A loop over what has items that are known."""
    with cx.at(node.iter):
        items = items_to_loop_over(cx, node.iter)
    if isinstance(items, list):
        cx.facts.trips[id(node), cx.path] = len(items)
        unroll(cx, node, items)
        return
    if items is None:
        cx.error(
            "E101",
            node.iter,
            "a loop over anything but `range(...)`, a tuple, a vector, a matrix or a local array, "
            "or `enumerate` or `zip` of these, is not supported in kernels",
            "write `for i in range(n):` and index with `i`",
        )
    cx.spoil(node.target)
    with cx.looping(node), cx.nested():  # more to say about the body, perhaps
        cx.block(node.body)


def _learn_count(body: RangeBuilder, var: Var, bounds: Sequence[Value]) -> None:
    """What the bounds say about the loop's variable."""
    start, stop, step = bounds
    by = number(step)
    if by is not None and by > 0:
        body.learn(var, body.low(start.atom))
    elif by is not None:
        last = body.low(stop.atom)
        body.learn(var, None if last is None else last + 1)


def _count(cx: Context, target: ast.Name, value: Operand) -> None:
    """Gives the loop's variable its value for one iteration."""
    with cx.at(target):
        set_name(cx, target, value, target)


def has_effect(block: Sequence[Stmt]) -> bool:
    """True where memory is written or a message given, in the block or what it calls."""
    return any(
        isinstance(s, (Store, Atomic, Message)) or (isinstance(s, Call) and writes_memory(s.func))
        for s in walk(tuple(block))
    )


def _assigns(cx: Context, block: Sequence[Stmt]) -> bool:
    """True where a variable changes that is read elsewhere: by `:=`, or a local array by a call."""
    return any(isinstance(s, Set) and s.dst not in cx.settled for s in walk(tuple(block)))


def lower_while(cx: Context, node: ast.stmt) -> None:
    assert isinstance(node, ast.While)
    with cx.looping(node):
        with cx.nested() as test, cx.at(node.test):
            cond = condition(cx, node.test)
        known = number(cond) if isinstance(cond, Value) else None
        with cx.nested() as body:
            if known is None or known:
                cx.block(node.body)
    if isinstance(cond, Bad):
        return
    if known is not None:
        if known:
            cx.b.add(While((), Const(True, BOOL), body.block(), cx.b.span))
        return
    if not has_effect(test.stmts) and not _assigns(cx, test.stmts):
        cx.b.add(While(test.block(), cond.atom, body.block(), cx.b.span))
        return
    # A test that writes memory or variables is no test of the IR, which is not reversed:
    # leave from inside the body.
    with cx.nested() as inner, cx.at(node.test):
        inner.stmts += test.stmts
        stop = inner.op("lnot", cond.atom)
        inner.add(If(stop, (Break(inner.span),), (), inner.span))
        inner.stmts += body.stmts
    cx.b.add(While((), Const(True, BOOL), inner.block(), cx.b.span))


def lower_break(cx: Context, node: ast.stmt) -> None:
    around = cx.exits[-1]
    if around is not None and around.left is not None:
        cx.b.set(around.left, Const(True, BOOL))
    cx.b.add(Break(cx.b.span))


def lower_continue(cx: Context, node: ast.stmt) -> None:
    # An unrolled iteration that is left early is a loop of its own.
    cx.b.add(Continue(cx.b.span) if cx.exits[-1] is None else Break(cx.b.span))


# ---- the end of a function


def reaches_end(block: Block) -> bool:
    """True where running the block can come out at its end."""
    if not block:
        return True
    last = block[-1]
    if isinstance(last, (Return, Break, Continue)):
        return False
    if isinstance(last, If):
        return reaches_end(last.then) or reaches_end(last.orelse)
    if isinstance(last, While) and last.cond == Const(True, BOOL) and not last.test:
        return _breaks(last.body)
    return True


def _breaks(body: Block) -> bool:
    """True where a `break` leaves the loop of this body."""
    return any(
        isinstance(s, Break) or (isinstance(s, If) and (_breaks(s.then) or _breaks(s.orelse)))
        for s in body
    )


def lower_expression(cx: Context, node: ast.stmt) -> None:
    """An expression as a statement: a call for its effect."""
    assert isinstance(node, ast.Expr)
    if isinstance(node.value, ast.Call) and id(node.value) not in cx.function.rejected:
        with cx.at(node.value):
            call_statement(cx, node.value)
    else:
        cx.expr(node.value)
