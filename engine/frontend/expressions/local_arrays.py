"""Arrays of a fixed size that a kernel makes: `zeros(shape=(4,), dtype=float)`.

All components lie in one vector variable, so that every pass treats writing an element
as it treats writing a component of a vector.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from engine.frontend.context.context import Context
from engine.frontend.expressions.component_slices import components_of
from engine.frontend.expressions.views import arith, as_int32, leaf_types
from engine.frontend.operands.kinds import local_type
from engine.frontend.operands.lvalues import Local, part_type
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    Known,
    Operand,
    Root,
    Several,
    Value,
    View,
    number,
)
from engine.frontend.parsing.scope import element_of
from engine.ir.builder import const
from engine.ir.nodes import Atom, Const
from engine.lang.structs import ElementType, StructType, leaves
from engine.lang.types import FLOAT32, INT32, ArrayType, MatrixType, ScalarType, shape_of

# Components of one local array. Each lives in registers or on the thread's stack, and is
# saved for the backward pass wherever it changes.
LIMIT = 1024


def lower_zeros(cx: Context, node: ast.Call) -> Operand:
    """`zeros(shape, dtype)` in a kernel."""
    usage = f"write `{cx.api}.zeros(shape=(4,), dtype=float)` with constant numbers"
    words: dict[str, ast.expr] = dict(zip(("shape", "dtype"), node.args, strict=False))
    for word in node.keywords:
        if word.arg not in ("shape", "dtype") or word.arg in words:
            return cx.error(
                "E106", word.value, f"a local array takes no argument `{word.arg}`", usage
            )
        words[word.arg] = word.value
    if "shape" not in words or len(node.args) > 2:
        return cx.error("E109", node, "a local array takes a shape and a dtype", usage)
    shape = shape_of_local(cx, words["shape"], usage)
    element: ElementType | None = FLOAT32
    if "dtype" in words:
        found = cx.expr(words["dtype"])
        if isinstance(found, Bad):
            return BAD
        element = element_of(found.obj) if isinstance(found, Known) else None
    if shape is None:
        return BAD
    if element is None:
        return cx.error("E104", words["dtype"], "this is not a type of elements", usage)
    if isinstance(element, StructType) and any(
        isinstance(x.type, ArrayType) for x in leaves(element)
    ):
        return cx.error(
            "E104",
            words["dtype"],
            f"elements of an array cannot hold arrays, as fields of {element.name} do",
            "keep the arrays in a separate struct",
        )
    types = leaf_types(element)
    total = math.prod(shape) * sum(math.prod(shape_of(t)) for t in types)
    if total > LIMIT:
        return cx.error(
            "E104",
            node,
            f"a local array has at most {LIMIT} components, but this one has {total}",
            "pass an array parameter with a row for each thread, and use that row",
        )
    atoms = tuple(const(0, local_type(t, shape)) for t in types)
    root = Root(element, len(shape), atoms, (), shape)
    return View(root, (None,) * len(shape))


def shape_of_local(cx: Context, node: ast.expr, usage: str) -> tuple[int, ...] | None:
    """A shape of constant numbers, or an error."""
    got = cx.expr(node)
    if isinstance(got, Bad):
        return None
    items: Sequence[Operand] = got.items if isinstance(got, Several) else (got,)
    known = [number(i) if isinstance(i, Value) else None for i in items]
    sizes = [n for n in known if type(n) is int and n > 0]
    if not 1 <= len(items) <= 4 or len(sizes) != len(items):
        cx.error("E104", node, "the shape of a local array must be 1 to 4 constant positive "
                 "integers", usage)  # fmt: skip
        return None
    return tuple(sizes)


# ---- elements


def local_part(cx: Context, whole: Local, index: Sequence[Atom]) -> Local:
    """The component, or row, of a vector or matrix in a local array."""
    at = index[0]
    if isinstance(whole.type, MatrixType):
        at = arith(cx, "mul", as_int32(cx, at), Const(whole.type.cols, INT32))
        if len(index) == 2:
            at = arith(cx, "add", at, as_int32(cx, index[1]))
    t = part_type(whole.type, len(index))
    return Local(whole.base, arith(cx, "add", whole.at, as_int32(cx, at)), t)


def _component_indices(cx: Context, got: Local) -> list[Atom]:
    """Where in the vector each component lies, row by row."""
    count = math.prod(shape_of(got.type))
    return [arith(cx, "add", got.at, Const(k, INT32)) for k in range(count)]


def read_local(cx: Context, got: Local) -> Atom:
    """The value at a place in a local array."""
    parts = [cx.b.op("extract", got.base, at) for at in _component_indices(cx, got)]
    if isinstance(got.type, ScalarType):
        return parts[0]
    return cx.b.op("construct", *parts, result=got.type)


def write_local(cx: Context, where: Local, value: Atom) -> Atom:
    """The array's vector with a value put in place."""
    parts = components_of(cx, value) or [value]
    whole = where.base
    # One after the other, with nothing between: code generators see one change of the array.
    for at, part in zip(_component_indices(cx, where), parts, strict=True):
        whole = cx.b.op("insert", whole, at, part)
    return whole
