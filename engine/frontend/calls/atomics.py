"""`atomic_add` and the other updates of array elements that give the value before them."""

from __future__ import annotations

import ast

from engine import config
from engine.frontend.context.context import Context
from engine.frontend.expressions.conversions import coerce, integer
from engine.frontend.expressions.local_arrays import read_local, write_local
from engine.frontend.expressions.operators import apply
from engine.frontend.expressions.views import element, shown_part
from engine.frontend.operands.kinds import as_view
from engine.frontend.operands.lvalues import Element, Local, component_indices
from engine.frontend.operands.operand import BAD, Bad, Operand, Several, Struct, Value, View
from engine.frontend.operands.type_names import type_name
from engine.ir.nodes import Atom, Atomic, AtomicKind, Var
from engine.itself import is_own_scope
from engine.lang.types import BFLOAT16, BOOL, ArrayType, ScalarType, Type, ValueType, scalar_of

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
    array = as_view(base)
    one = base if array is not None else cx.one(node.args[0], base, "an array")
    at: list[tuple[ast.expr, Operand]] = []
    for n in node.args[1:-tail]:
        got = cx.expr(n)
        items = got.items if isinstance(got, Several) else (got,)
        at += [(n, item) for item in items]
    values = [(n, cx.one(n, v)) for n, v in at]
    given = [cx.scalar_value(n) for n in node.args[-tail:]]
    if isinstance(one, Bad):
        return BAD
    if array is None:
        assert isinstance(one, Value)
        return cx.error(
            "E104",
            node.args[0],
            f"the first argument of `{name}` must be an array, but this is {type_name(one.type)}",
            usage,
        )
    if len(at) != array.ndim:
        total = len(array.dims)
        count = len(at) + total - array.ndim
        return cx.error(
            "E109",
            node,
            f"`{name}` got {count} ind{'ex' if count == 1 else 'ices'} for an array of "
            f"{total} dimension{'s' if total > 1 else ''}",
            usage,
        )
    dims = list(array.dims)
    for k, (n, v) in enumerate(values):
        atom = integer(cx, n, v, "an index")
        if atom is None:
            return BAD
        dims[array.shown[k]] = shown_part(cx, array, k, atom)
    where = element(cx, View(array.root, tuple(dims)))
    if any(isinstance(v, Bad) for v in given):
        return BAD
    if isinstance(where, Struct):
        return cx.error(
            "E104",
            node,
            f"`{name}` does not work on structs",
            "update one field: `a[i].x += value`",
        )
    assert isinstance(where, (Element, Local))
    t = where.type
    if not _takes(cx, node, name, kind, where.array.type if isinstance(where, Element) else t):
        return BAD
    text = f"`{where.array.name}`" if isinstance(where, Element) else "this array"
    atoms: list[Atom] = []
    for n, v in zip(node.args[-tail:], given, strict=True):
        if isinstance(v, Bad):
            return BAD
        amount = coerce(cx, n, v, t, f"an element of {text}")
        if amount is None:
            return BAD
        atoms.append(amount)
    if isinstance(where, Local):
        return _update_local(cx, node, where, kind, atoms)
    if kind == "cas":
        return _swap(cx, where.array, t, where.index, *atoms)
    dst = None if statement else cx.b.temp(t)
    cx.b.add(Atomic(dst, kind, where.array, where.index, atoms[0], (), cx.b.span))
    return Value(dst) if dst is not None else Several(())


def _takes(cx: Context, node: ast.Call, name: str, kind: AtomicKind, t: Type) -> bool:
    """Whether the update takes the elements of the array."""
    scalar = scalar_of(t)
    if scalar.kind == "b":
        what = f"`{name}` does not work on arrays of bool"
    elif kind in _BITS and scalar.kind == "f":
        what = f"`{name}` changes bits of integers, but this is {type_name(t)}"
    elif config.atomics == "native" and not (_native(kind, scalar) or _is_ours(cx)):
        elements = type_name(t.element if isinstance(t, ArrayType) else t)
        what = f"`{name}` of {elements} does not exist in Warp"
        help_text = 'use 32 or 64 bits; `config.atomics = "all"` allows the others here'
        cx.error("E104", node, what, help_text)
        return False
    else:
        return True
    cx.error("E104", node, what, "use an array of integers")
    return False


def _is_ours(cx: Context) -> bool:
    """Whether the function comes with the engine."""
    return is_own_scope(cx.scope.globals)


def _native(kind: AtomicKind, scalar: ScalarType) -> bool:
    """Whether Warp has this update for elements of such scalars."""
    if scalar.bits >= 32:
        return True
    sums = kind in ("add", "sub")
    return scalar.kind == "f" and (sums or (kind in ("min", "max") and scalar == BFLOAT16))


def _swap(
    cx: Context, array: Var, t: ValueType, index: tuple[Atom, ...], compare: Atom, value: Atom
) -> Operand:
    """Compare and swap; vectors and matrices count by component, as in Warp."""
    b = cx.b
    if isinstance(t, ScalarType):
        dst = b.temp(t)
        b.add(Atomic(dst, "cas", array, index, value, (), b.span, compare=compare))
        return Value(dst)
    before: list[Atom] = []
    for at in component_indices(t):
        part, wanted = b.op("extract", value, *at), b.op("extract", compare, *at)
        dst = b.temp(scalar_of(t))
        b.add(Atomic(dst, "cas", array, index, part, at, b.span, compare=wanted))
        before.append(dst)
    return Value(b.op("construct", *before, result=t))


_LOCAL = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}


def _update_local(
    cx: Context, node: ast.Call, where: Local, kind: AtomicKind, atoms: list[Atom]
) -> Operand:
    """The same on an array of the thread's own, which needs no atomic."""
    old = read_local(cx, where)
    new: Value | Bad
    if kind == "exch":
        new = Value(atoms[0])
    elif kind == "cas":
        if not isinstance(where.type, ScalarType):
            return cx.error(
                "E104", node, "`atomic_cas` on a local array takes numbers", "compare by yourself"
            )
        same = cx.b.op("eq", old, atoms[0])
        assert same.type == BOOL
        new = Value(cx.b.op("select", same, atoms[1], old))
    else:
        new = apply(cx, node, _LOCAL.get(kind, kind), [Value(old), Value(atoms[0])])
    if isinstance(new, Value) and isinstance(where.base, Var) and where.base in cx.owned:
        cx.b.set(where.base, write_local(cx, where, new.atom))
    return Value(old)
