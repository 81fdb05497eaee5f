"""`atomic_add`, `atomic_sub`, `atomic_min` and `atomic_max` on array elements."""

from __future__ import annotations

import ast

from engine.frontend.context import Context
from engine.frontend.operands import BAD, Bad, Operand, Row, Several, Value
from engine.frontend.ops import coerce, integer
from engine.frontend.place_kinds import array_index
from engine.frontend.typenames import type_name
from engine.ir.nodes import Atom, Atomic, AtomicKind, Var
from engine.lang.types import ArrayType, scalar_of

ATOMICS: dict[str, AtomicKind] = {
    "atomic_add": "add",
    "atomic_sub": "sub",
    "atomic_min": "min",
    "atomic_max": "max",
}


def lower_atomic(cx: Context, node: ast.Call, kind: AtomicKind, statement: bool) -> Operand:
    """`atomic_add(array, i, ..., value)`; gives the value before the update."""
    name = f"atomic_{kind}"
    usage = f"write `{cx.api}.{name}(array, i, value)`, with one index for each dimension"
    if len(node.args) < 3:
        return cx.error("E109", node, f"`{name}` takes at least 3 arguments", usage)
    base = cx.expr(node.args[0])
    # `atomic_add(a[i], j, value)` is `atomic_add(a, i, j, value)`.
    index: list[Atom] = list(base.index) if isinstance(base, Row) else []
    if isinstance(base, Row):
        base = Value(base.array)
    array = cx.one(node.args[0], base, "an array")
    at: list[tuple[ast.expr, Operand]] = []
    for n in node.args[1:-1]:
        got = cx.expr(n)
        items = got.items if isinstance(got, Several) else (got,)
        at += [(n, item) for item in items]
    values = [(n, cx.one(n, v)) for n, v in at]
    value = cx.scalar_value(node.args[-1])
    if isinstance(array, Bad):
        return BAD
    t = array.type
    if not isinstance(t, ArrayType) or not isinstance(array.atom, Var):
        return cx.error(
            "E104",
            node.args[0],
            f"the first argument of `{name}` must be an array, but this is {type_name(t)}",
            usage,
        )
    given = len(index) + len(at)
    if given != t.ndim:
        return cx.error(
            "E109",
            node,
            f"`{name}` got {given} ind{'ex' if given == 1 else 'ices'} for an array of "
            f"{t.ndim} dimension{'s' if t.ndim > 1 else ''}",
            usage,
        )
    for n, v in values:
        atom = integer(cx, n, v, "an index")
        if atom is None:
            return BAD
        index.append(array_index(cx, array.atom, len(index), atom))
    if isinstance(value, Bad):
        return BAD
    if scalar_of(t).kind == "b":
        return cx.error(
            "E104", node, f"`{name}` does not work on arrays of bool", "use an array of integers"
        )
    amount = coerce(cx, node.args[-1], value, t.element, f"an element of `{array.atom.name}`")
    if amount is None:
        return BAD
    dst = None if statement else cx.b.temp(t.element)
    cx.b.add(Atomic(dst, kind, array.atom, tuple(index), amount, (), cx.b.span))
    return Value(dst) if dst is not None else Several(())
