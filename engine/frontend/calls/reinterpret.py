"""`cast(x, dtype)`: the bytes of a value read as another type."""

from __future__ import annotations

import ast

from engine.builtins.bits import reinterpretable
from engine.frontend.context.context import Context
from engine.frontend.operands.kinds import decompose
from engine.frontend.operands.operand import BAD, Bad, Known, Operand, Struct, Value
from engine.frontend.operands.type_names import type_name
from engine.frontend.parsing.scope import type_of
from engine.ir.nodes import Atom, Const
from engine.lang.structs import value_leaves
from engine.lang.types import SCALARS, ScalarType


def _of_struct(cx: Context, got: Struct, t: object) -> Value | None:
    """The first bytes of a struct as a scalar; None where its fields do not make up just those."""
    if not isinstance(t, ScalarType) or t.kind == "b" or got.type.size < t.size:
        return None
    bits = SCALARS[f"uint{t.bits}"]
    out: Atom | None = None
    end = 0
    parts = decompose(got)
    for leaf, atom in zip(value_leaves(got.type), parts[1] if parts else (), strict=True):
        if end == t.size:
            break
        own = leaf.type
        if leaf.offset != end or not isinstance(own, ScalarType) or own.kind == "b":
            return None
        end += own.size
        if end > t.size:
            return None
        part = _reinterpreted(cx, atom, SCALARS[f"uint{own.bits}"])
        part = part if part.type == bits else cx.b.op("cast", part, result=bits)
        if leaf.offset:
            part = cx.b.op("shl", part, Const(8 * leaf.offset, bits))
        out = part if out is None else cx.b.op("bitor", out, part)
    return None if out is None or end != t.size else Value(_reinterpreted(cx, out, t))


def _reinterpreted(cx: Context, atom: Atom, t: ScalarType) -> Atom:
    return atom if atom.type == t else cx.b.op("reinterpret", atom, result=t)


def lower_reinterpret(cx: Context, node: ast.Call) -> Operand:
    """A call of `cast`. A literal counts as int32 or float32."""
    usage = f"write `{cx.api}.cast(x, {cx.api}.uint32)`; to convert the number, call the type"
    words = {w.arg: w.value for w in node.keywords}
    args = [*node.args, *(words[n] for n in ("a", "dtype")[len(node.args) :] if n in words)]
    if len(args) != 2 or len(node.args) + len(node.keywords) != 2:
        return cx.error("E109", node, "`cast` takes a value and a type", usage)
    found = cx.expr(args[0])
    kind = cx.expr(args[1])
    if isinstance(found, Struct) and isinstance(kind, Known):
        joined = _of_struct(cx, found, type_of(kind.obj))
        if joined is not None:
            return joined
    got = cx.scalar_one(args[0], found, "a value")
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
