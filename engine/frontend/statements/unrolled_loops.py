"""Loops whose body is lowered once for each iteration.

Those over tuples, vectors, matrices and local arrays, those in which `static(...)` reads the
loop's variable, and those in which it is an index of a tuple.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from engine.frontend.assignment.names import set_name
from engine.frontend.context.context import Context, Exit
from engine.frontend.expressions.sequences import items_of
from engine.frontend.operands.operand import Bad, Operand, Several, Value, literal, number
from engine.ir.nodes import Block, Break, Const, If, Return, While
from engine.lang.types import BOOL

# Such loops have at most this many iterations.
MAX_UNROLL = 4096

# What Python has to loop over, and kernels have not.
_ITERATORS = (enumerate, zip, map, filter, iter, sorted, reversed)


def unrolls(cx: Context, node: ast.For) -> bool:
    """Whether a loop's body needs the loop's variable to be known while compiling."""
    name = node.target.id if isinstance(node.target, ast.Name) else None
    nodes = [n for s in node.body for n in ast.walk(s)]
    return any(
        name in found.names for n in nodes if (found := cx.function.statics.get(id(n))) is not None
    ) or any(
        isinstance(n, ast.Subscript)
        and isinstance(n.value, ast.Name)
        and isinstance(cx.bound.get(n.value.id), Several)
        and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(n.slice))
        for n in nodes
    )


def items_to_loop_over(cx: Context, node: ast.expr) -> list[Operand] | Bad | None:
    """The items of what a loop runs over; None where this has none that are known."""
    backwards = _reversed_argument(cx, node)
    at = backwards or node
    if isinstance(at, ast.Call) and getattr(cx.expr(at.func), "obj", None) in _ITERATORS:
        return None
    got = cx.expr(at)
    if isinstance(got, Bad):
        return got
    items = items_of(cx, at, cx.keep(got))
    if items is None:
        return None
    return list(items if backwards is None else reversed(items))


def _reversed_argument(cx: Context, node: ast.expr) -> ast.expr | None:
    """What `reversed(...)` turns round."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return None
    found = cx.expr(node.func)
    return node.args[0] if getattr(found, "obj", None) is reversed else None


def unroll_range(cx: Context, node: ast.For, bounds: list[Value]) -> None:
    """Lowers the body of a loop over `range(...)` once for each iteration."""
    start, stop, step = (number(v) for v in bounds)
    if not all(isinstance(k, int) for k in (start, stop, step)):
        cx.error(
            "E107",
            node.iter,
            "`static(...)` in the body reads the loop's variable, or it is an index of a tuple, "
            "but the bounds are not constant",
            "write numbers or captured names as bounds, or do without `static`",
        )
        cx.spoil(node)
        return
    count = range(int(start or 0), int(stop or 0), int(step or 1))
    if len(count) > MAX_UNROLL:
        cx.error(
            "E101",
            node.iter,
            f"a loop that `static(...)` unrolls has {len(count)} iterations, more than "
            f"{MAX_UNROLL}",
            "use fewer of them",
        )
        return
    weak = bounds[0].weak
    items = [literal(k) if weak else Value(Const(k, bounds[0].type)) for k in count]  # type: ignore[arg-type]
    unroll(cx, node, items)


def unroll(cx: Context, node: ast.For, items: Sequence[Operand]) -> None:
    """Lowers the body of a loop once for each item.

    Where something jumps, the whole is the body of one loop, which `break` leaves, and each
    iteration that of one more, which `continue` leaves.
    """
    found = list(jumps(node.body))
    if not found:
        _iterations(cx, node, items)
        return
    outer = cx.exits
    breaks = any(isinstance(s, ast.Break) for s in found)
    continues = any(isinstance(s, ast.Continue) for s in found)
    left = None
    if breaks and continues:
        left = cx.b.variable(BOOL, "left")
        cx.b.set(left, Const(False, BOOL))
    cx.exits = (*outer, Exit(left))
    with cx.nested() as whole:
        _iterations(cx, node, items, continues)
    cx.exits = outer
    if breaks:
        cx.b.add(_once(cx, whole.block()))
    else:
        cx.b.stmts += whole.stmts


def _once(cx: Context, body: Block) -> While:
    """A loop of one iteration."""
    return While((), Const(True, BOOL), (*body, Break(cx.b.span)), cx.b.span)


def _iterations(cx: Context, node: ast.For, items: Sequence[Operand], apart: bool = False) -> None:
    """apart: each iteration is a loop of its own, which its jumps leave."""
    assert isinstance(node.target, ast.Name)
    before, outside = dict(cx.unrolled), cx.path
    cx.facts.unrolled.add(id(node))
    for at, item in enumerate(items):
        k = number(item) if isinstance(item, Value) else None
        known = {node.target.id: k} if isinstance(k, int) else {}
        others = {n: v for n, v in before.items() if n != node.target.id}
        cx.unrolled, cx.path = {**others, **known}, (*outside, at)
        if apart:
            with cx.nested() as inner:
                _iteration(cx, node, item)
            cx.b.add(_once(cx, inner.block()))
            left = cx.exits[-1].left if cx.exits[-1] is not None else None
            if left is not None:
                cx.b.add(If(left, (Break(cx.b.span),), (), cx.b.span))
            continue
        _iteration(cx, node, item)
        if cx.b.stmts and isinstance(cx.b.stmts[-1], (Return, Break)):
            break
    cx.unrolled, cx.path = before, outside


def _iteration(cx: Context, node: ast.For, item: Operand) -> None:
    assert isinstance(node.target, ast.Name)
    with cx.at(node.target):
        set_name(cx, node.target, item, node.target)
    cx.block(node.body)


def jumps(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """`break` and `continue` that belong to the loop of this body."""
    for s in body:
        if isinstance(s, (ast.Break, ast.Continue)):
            yield s
        elif isinstance(s, ast.If):
            yield from jumps([*s.body, *s.orelse])
