"""`cast(x, dtype)`: the bytes of a value read as another type."""

from __future__ import annotations

import ast

from engine.builtins.bits import reinterpretable
from engine.frontend.context.context import Context
from engine.frontend.operands.operand import BAD, Bad, Known, Operand, Value
from engine.frontend.operands.type_names import type_name
from engine.frontend.parsing.scope import type_of


def lower_reinterpret(cx: Context, node: ast.Call) -> Operand:
    """A call of `cast`. A literal counts as int32 or float32."""
    usage = f"write `{cx.api}.cast(x, {cx.api}.uint32)`; to convert the number, call the type"
    words = {w.arg: w.value for w in node.keywords}
    args = [*node.args, *(words[n] for n in ("a", "dtype")[len(node.args) :] if n in words)]
    if len(args) != 2 or len(node.args) + len(node.keywords) != 2:
        return cx.error("E109", node, "`cast` takes a value and a type", usage)
    got = cx.scalar_value(args[0], "a value")
    kind = cx.expr(args[1])
    if isinstance(got, Bad) or isinstance(kind, Bad):
        return BAD
    t = type_of(kind.obj) if isinstance(kind, Known) else None
    if t is None:
        return cx.error("E104", args[1], "the second argument of `cast` must be a type", usage)
    if got.type == t:
        return Value(got.atom)
    if not reinterpretable(got.type, t):
        return cx.error(
            "E104",
            node,
            f"`cast` cannot read {type_name(got.type)} as {type_name(t)}",
            "both need the same number of bytes, and no bool; to convert the number, call the type",
        )
    return Value(cx.b.op("reinterpret", got.atom, result=t))
