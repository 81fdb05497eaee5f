"""Loops that `static(...)` unrolls: their body is lowered once for each iteration."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.frontend.assignment.names import set_name
from engine.frontend.context.context import Context
from engine.frontend.operands.operand import Value, literal, number
from engine.ir.nodes import Const, Return

# Such loops have at most this many iterations.
MAX_UNROLL = 4096


def unrolls(cx: Context, node: ast.For) -> bool:
    """Whether a loop's body has a `static` that reads the loop's variable."""
    name = node.target.id if isinstance(node.target, ast.Name) else None
    return any(
        name in found.names
        for s in node.body
        for n in ast.walk(s)
        if (found := cx.function.statics.get(id(n))) is not None
    )


def unroll(cx: Context, node: ast.For, bounds: list[Value]) -> None:
    """Lowers the body of a loop once for each iteration."""
    start, stop, step = (number(v) for v in bounds)
    if not all(isinstance(k, int) for k in (start, stop, step)):
        cx.error(
            "E107",
            node.iter,
            "`static(...)` in the body reads the loop's variable, but the bounds are not constant",
            "write numbers or captured names as bounds, or do without `static`",
        )
        return
    count = range(int(start or 0), int(stop or 0), int(step or 1))
    jump = next(_jumps(node.body), None)
    if jump is not None or len(count) > MAX_UNROLL:
        cx.error(
            "E101",
            jump or node.iter,
            "a loop that `static(...)` unrolls cannot be left early"
            if jump is not None
            else f"a loop that `static(...)` unrolls has {len(count)} iterations, "
            f"more than {MAX_UNROLL}",
            "put the rest of the body under an `if`" if jump is not None else "use fewer of them",
        )
        return
    assert isinstance(node.target, ast.Name)
    name = node.target.id
    before, outside = dict(cx.unrolled), cx.path
    cx.facts.unrolled.add(id(node))
    for at, k in enumerate(count):
        cx.unrolled, cx.path = {**before, name: k}, (*outside, at)
        with cx.at(node.target):
            value = literal(k)
            if bounds[0].weak:
                set_name(cx, node.target, value, node.target)
            else:
                set_name(cx, node.target, Value(Const(k, bounds[0].type)), node.target)  # type: ignore[arg-type]
        cx.block(node.body)
        if cx.b.stmts and isinstance(cx.b.stmts[-1], Return):
            break
    cx.unrolled, cx.path = before, outside


def _jumps(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """`break` and `continue` that belong to the loop of this body."""
    for s in body:
        if isinstance(s, (ast.Break, ast.Continue)):
            yield s
        elif isinstance(s, ast.If):
            yield from _jumps([*s.body, *s.orelse])
