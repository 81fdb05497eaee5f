"""`a.ptr` of a local array, and `array(ptr=a.ptr + n, shape=..., dtype=...)`: another in its place.

An address is known while compiling: of which array, and how many bytes from its start. So the
array that is made of it is a view of the same variables. Other addresses are refused.
"""

from __future__ import annotations

import ast
import math

from engine.classes import dataclass
from engine.frontend.context.context import Context
from engine.frontend.expressions.local_arrays import shape_of_local
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    Known,
    Operand,
    Root,
    Span,
    Value,
    View,
    number,
)
from engine.frontend.parsing.scope import element_of
from engine.ir.nodes import Const
from engine.itself import is_of_engine
from engine.lang.structs import ElementType, StructType
from engine.lang.types import INT32, scalar_of, shape_of

_HELP = "index or slice the array itself: `a[i]`, `a[5:10]`"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a local array is. offset: in bytes."""

    view: View
    offset: int = 0


def refused(cx: Context, node: ast.AST, text: str) -> Bad:
    """E112 for what is done with an address elsewhere."""
    return cx.error("E112", node, f"`{text}`: addresses are not supported", _HELP)


def address_of_view(cx: Context, node: ast.Attribute, view: View) -> Operand:
    """`a.ptr`."""
    if not (view.is_local and view.is_whole):
        return refused(cx, node, cx.source.text(node))
    return Known(Address(view))


def moved(cx: Context, node: ast.BinOp, left: Operand, right: Operand) -> Operand | None:
    """An address with a number of bytes added or subtracted; None for anything else."""
    if isinstance(node.op, ast.Add) and isinstance(right, Known):
        left, right = right, left
    at = left.obj if isinstance(left, Known) else None
    if not isinstance(at, Address):
        return None
    n = number(right) if isinstance(right, Value) else None
    if isinstance(right, Bad):
        return BAD
    if not isinstance(n, int) or not isinstance(node.op, (ast.Add, ast.Sub)):
        return refused(cx, node, cx.source.text(node))
    return Known(Address(at.view, at.offset + (n if isinstance(node.op, ast.Add) else -n)))


def is_array_class(obj: object) -> bool:
    """Whether this is the class of arrays, called in a kernel."""
    return getattr(obj, "__name__", "") == "array" and is_of_engine(obj)


def array_at(cx: Context, node: ast.Call) -> Operand:
    """`array(ptr=..., shape=..., dtype=...)`."""
    words = {w.arg: w.value for w in node.keywords}
    if node.args or set(words) != {"ptr", "shape", "dtype"}:
        return refused(cx, node, cx.source.text(node.func))
    at = cx.expr(words["ptr"])
    dtype = cx.expr(words["dtype"])
    if isinstance(at, Bad) or isinstance(dtype, Bad):
        return BAD
    usage = f"write `{cx.api}.array(ptr=a.ptr, shape=(4,), dtype=float)` with constant numbers"
    shape = shape_of_local(cx, words["shape"], usage)
    if shape is None:
        return BAD
    if not isinstance(at, Known) or not isinstance(at.obj, Address):
        return refused(cx, words["ptr"], cx.source.text(words["ptr"]))
    element = element_of(dtype.obj) if isinstance(dtype, Known) else None
    found = None if element is None else _view(at.obj, shape, element)
    if found is None:
        return cx.error(
            "E104",
            node,
            "this is not a part of the local array at that address",
            "an array of the same numbers lies inside of it, and begins at one of its own elements",
        )
    return found


def _view(at: Address, shape: tuple[int, ...], element: ElementType) -> View | None:
    """The part of the local array; None where it is outside of it or has other numbers."""
    root = at.view.root
    if isinstance(element, StructType) or isinstance(root.element, StructType):
        if element is not root.element:
            return None
        whole = root.shape
        if at.offset or shape != whole:
            return None
        return View(root, (Span(_int(0), _int(1), _int(whole[0])), *[None] * (len(whole) - 1)))
    scalar = scalar_of(root.element)
    if scalar_of(element) != scalar:
        return None
    total = math.prod((*root.shape, *shape_of(root.element)))
    size = math.prod(shape_of(element))
    row = size * math.prod(shape[1:])  # numbers in what the first index names
    first, rest = divmod(at.offset, row * max(scalar.bits, 8) // 8)
    if rest or first < 0 or total % row or (first + shape[0]) * row > total:
        return None
    made = Root(element, len(shape), root.leaves, (), (total // row, *shape[1:]))
    span = Span(_int(first), _int(1), _int(shape[0]))
    return View(made, (span, *[None] * (len(shape) - 1)))


def _int(n: int) -> Const:
    return Const(n, INT32)
