"""`atomic_add` and the other updates of array elements that give the value before them."""

from __future__ import annotations

import ast

from engine.frontend.context import Context
from engine.frontend.operands import BAD, Bad, Operand, Row, Several, Value
from engine.frontend.ops import coerce, indices, integer
from engine.frontend.place_kinds import array_index
from engine.frontend.typenames import type_name
from engine.ir.nodes import Atom, Atomic, AtomicKind, Var
from engine.lang.types import ArrayType, ScalarType, scalar_of

ATOMICS: dict[str, AtomicKind] = {
    "atomic_add": "add",
    "atomic_sub": "sub",
    "atomic_min": "min",
    "atomic_max": "max",
    "atomic_and": "and",
    "atomic_or": "or",
    "atomic_xor": "xor",
    "atomic_exch": "exch",
    "atomic_cas": "cas",
}
_BITS = ("and", "or", "xor")


def lower_atomic(cx: Context, node: ast.Call, kind: AtomicKind, statement: bool) -> Operand:
    """`atomic_add(array, i, ..., value)`; gives the value before the update.

    `atomic_cas(array, i, ..., compare, value)` has one value more.
    """
    name = f"atomic_{kind}"
    tail = 2 if kind == "cas" else 1
    what = "compare, value" if kind == "cas" else "value"
    usage = f"write `{cx.api}.{name}(array, i, {what})`, with one index for each dimension"
    if len(node.args) < 2 + tail:
        least = 2 + tail
        return cx.error("E109", node, f"`{name}` takes at least {least} arguments", usage)
    base = cx.expr(node.args[0])
    # `atomic_add(a[i], j, value)` is `atomic_add(a, i, j, value)`.
    index: list[Atom] = list(base.index) if isinstance(base, Row) else []
    if isinstance(base, Row):
        base = Value(base.array)
    array = cx.one(node.args[0], base, "an array")
    at: list[tuple[ast.expr, Operand]] = []
    for n in node.args[1:-tail]:
        got = cx.expr(n)
        items = got.items if isinstance(got, Several) else (got,)
        at += [(n, item) for item in items]
    values = [(n, cx.one(n, v)) for n, v in at]
    given = [cx.scalar_value(n) for n in node.args[-tail:]]
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
    count = len(index) + len(at)
    if count != t.ndim:
        return cx.error(
            "E109",
            node,
            f"`{name}` got {count} ind{'ex' if count == 1 else 'ices'} for an array of "
            f"{t.ndim} dimension{'s' if t.ndim > 1 else ''}",
            usage,
        )
    for n, v in values:
        atom = integer(cx, n, v, "an index")
        if atom is None:
            return BAD
        index.append(array_index(cx, array.atom, len(index), atom))
    if not _takes(cx, node, name, kind, t):
        return BAD
    atoms: list[Atom] = []
    for n, v in zip(node.args[-tail:], given, strict=True):
        if isinstance(v, Bad):
            return BAD
        amount = coerce(cx, n, v, t.element, f"an element of `{array.atom.name}`")
        if amount is None:
            return BAD
        atoms.append(amount)
    if kind == "cas":
        return _swap(cx, array.atom, t, tuple(index), *atoms)
    dst = None if statement else cx.b.temp(t.element)
    cx.b.add(Atomic(dst, kind, array.atom, tuple(index), atoms[0], (), cx.b.span))
    return Value(dst) if dst is not None else Several(())


def _takes(cx: Context, node: ast.Call, name: str, kind: AtomicKind, t: ArrayType) -> bool:
    """Whether the update takes the elements of the array."""
    scalar = scalar_of(t)
    if scalar.kind == "b":
        what = f"`{name}` does not work on arrays of bool"
    elif kind in _BITS and scalar.kind == "f":
        what = f"`{name}` changes bits of integers, but this is {type_name(t)}"
    else:
        return True
    cx.error("E104", node, what, "use an array of integers")
    return False


def _swap(
    cx: Context, array: Var, t: ArrayType, index: tuple[Atom, ...], compare: Atom, value: Atom
) -> Operand:
    """Compare and swap; vectors and matrices count by component, as in Warp."""
    b = cx.b
    if isinstance(t.element, ScalarType):
        dst = b.temp(t.element)
        b.add(Atomic(dst, "cas", array, index, value, (), b.span, compare=compare))
        return Value(dst)
    before: list[Atom] = []
    for at in indices(t.element):
        part, wanted = b.op("extract", value, *at), b.op("extract", compare, *at)
        dst = b.temp(scalar_of(t))
        b.add(Atomic(dst, "cas", array, index, part, at, b.span, compare=wanted))
        before.append(dst)
    return Value(b.op("construct", *before, result=t.element))
