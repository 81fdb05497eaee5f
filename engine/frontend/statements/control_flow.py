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
from engine.frontend.operands.operand import BAD, Bad, Operand, Value, number, unify
from engine.frontend.operands.type_names import type_name
from engine.frontend.statements.query_loops import lower_query_loop
from engine.frontend.statements.unrolled_loops import unroll, unrolls
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
from engine.lang.types import BOOL, INT32


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
    found = cx.expr(call.func) if isinstance(call, ast.Call) else BAD
    if not isinstance(call, ast.Call) or getattr(found, "obj", None) is not range:
        if not isinstance(found, Bad):
            cx.error(
                "E101",
                call,
                "a loop over anything but `range(...)` is not supported in kernels",
                "write `for i in range(n):` and index with `i`",
            )
        return None
    if call.keywords or not 1 <= len(call.args) <= 3:
        cx.error(
            "E109",
            call,
            f"`range` takes 1 to 3 arguments, got {len(call.args)}",
            "write `range(stop)`, `range(start, stop)` or `range(start, stop, step)`",
        )
        return None
    args = [cx.value(a) for a in call.args]
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
    same = unify(full)
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
    if lower_query_loop(cx, node):
        return
    with cx.at(node.iter):
        bounds = _range(cx, node)
    if not isinstance(node.target, ast.Name):
        cx.spoil(node.target)
        target = None
    else:
        target = node.target
    known = [number(v) for v in bounds or ()]
    if bounds and all(isinstance(k, int) for k in known):
        cx.facts.trips[id(node), cx.path] = len(range(*(int(k or 0) for k in known)))
    if target is not None and unrolls(cx, node):
        if bounds:
            unroll(cx, node, bounds)
        else:
            cx.spoil(node)
        return
    t = bounds[0].type if bounds else INT32
    var = cx.b.temp(t, target.id if target else "i")
    cx.loops.append(node)
    with cx.nested() as body:
        if bounds:
            _learn_count(body, var, bounds)
        if target is not None:
            _count(cx, target, Value(var) if bounds else BAD)
        cx.block(node.body)
    cx.loops.pop()
    if bounds:
        start, stop, step = (v.atom for v in bounds)
        cx.b.add(For(var, start, stop, step, body.block(), cx.b.span))


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
    cx.loops.append(node)
    with cx.nested() as test, cx.at(node.test):
        cond = condition(cx, node.test)
    known = number(cond) if isinstance(cond, Value) else None
    with cx.nested() as body:
        if known is None or known:
            cx.block(node.body)
    cx.loops.pop()
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
    cx.b.add(Break(cx.b.span))


def lower_continue(cx: Context, node: ast.stmt) -> None:
    cx.b.add(Continue(cx.b.span))


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
