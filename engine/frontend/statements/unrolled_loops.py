"""Loops whose body is lowered once for each iteration.

Those over tuples, vectors, matrices and local arrays, those in which `static(...)` reads the
loop's variable, and those in which it is an index of a tuple.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from engine.frontend.assignment.targets import assign
from engine.frontend.context.context import Context, Exit
from engine.frontend.expressions.sequences import items_of
from engine.frontend.operands.operand import BAD, Bad, Operand, Several, Value, literal, number
from engine.frontend.parsing.local_variables import target_names
from engine.ir.nodes import Block, Break, Const, If, Return, While
from engine.lang.types import BOOL

# Such loops have at most this many iterations.
MAX_UNROLL = 4096

# What Python has to loop over, and kernels have not.
_ITERATORS = (map, filter, iter, sorted, reversed)


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
    function = getattr(cx.expr(at.func), "obj", None) if isinstance(at, ast.Call) else None
    if isinstance(at, ast.Call) and function in (enumerate, zip):
        if backwards is not None:
            return None  # Python has no items of these in the other order
        return _counted(cx, at) if function is enumerate else _side_by_side(cx, at)
    if function in _ITERATORS:
        return None
    got = cx.expr(at)
    if isinstance(got, Bad):
        return got
    items = items_of(cx, at, cx.keep(got))
    if items is None:
        return None
    return list(items if backwards is None else reversed(items))


def _counted(cx: Context, node: ast.Call) -> list[Operand] | Bad | None:
    """The items of `enumerate(items, start)`, each with its number."""
    words = {w.arg: w.value for w in node.keywords}
    given = [*node.args[1:], *(words[w] for w in ("start",) if w in words)]
    if not node.args or len(given) > 1 or not set(words) <= {"start"}:
        return cx.error("E109", node, "`enumerate` takes the items, and a number to start with",
                        "write `enumerate(items)` or `enumerate(items, 1)`")  # fmt: skip
    first = cx.value(given[0]) if given else literal(0)
    items = items_to_loop_over(cx, node.args[0])
    if not isinstance(items, list) or isinstance(first, Bad):
        return BAD if isinstance(first, Bad) else items
    start = number(first)
    if not isinstance(start, int):
        return cx.error("E104", given[0], "`enumerate` starts with a constant integer",
                        "write the number itself, and add what is known at run time")  # fmt: skip
    return [Several((literal(start + k), item)) for k, item in enumerate(items)]


def _side_by_side(cx: Context, node: ast.Call) -> list[Operand] | Bad | None:
    """The items of `zip(a, b)`: as many as the shortest has."""
    strict = [w for w in node.keywords if w.arg == "strict"]
    says = cx.value(strict[0].value) if strict else literal(False)
    if len(strict) != len(node.keywords) or isinstance(says, Bad) or number(says) is None:
        return cx.error("E109", node, "`zip` takes sequences, and a constant `strict`",
                        "write `zip(a, b)`")  # fmt: skip
    every = [items_to_loop_over(cx, a) for a in node.args]
    rows = [items for items in every if isinstance(items, list)]
    if len(rows) != len(every):
        return BAD if any(isinstance(items, Bad) for items in every) else None
    if number(says) and len({len(row) for row in rows}) > 1:
        lengths = ", ".join(str(len(row)) for row in rows)
        return cx.error("E109", node, f"`zip` with `strict=True` has items of lengths {lengths}",
                        "pass as many of each")  # fmt: skip
    return [Several(row) for row in zip(*rows, strict=False)]


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
    names = set(target_names(node.target))
    before, outside = dict(cx.unrolled), cx.path
    cx.facts.unrolled.add(id(node))
    for at, item in enumerate(items):
        known = dict(_known(node.target, item))
        others = {n: v for n, v in before.items() if n not in names}
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
    with cx.at(node.target):
        assign(cx, node.target, item, node.target)
    cx.block(node.body)


def _known(target: ast.expr, item: Operand) -> Iterator[tuple[str, int]]:
    """The integers that an iteration gives to names."""
    if isinstance(target, ast.Name):
        k = number(item) if isinstance(item, Value) else None
        if isinstance(k, int):
            yield target.id, k
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(item, Several):
        if len(target.elts) == len(item.items):
            for part, value in zip(target.elts, item.items, strict=True):
                yield from _known(part, value)


def jumps(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """`break` and `continue` that belong to the loop of this body."""
    for s in body:
        if isinstance(s, (ast.Break, ast.Continue)):
            yield s
        elif isinstance(s, ast.If):
            yield from jumps([*s.body, *s.orelse])
