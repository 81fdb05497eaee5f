"""The geometry of views: sizes, what an index means, slices. All of it integer arithmetic."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from engine.frontend.context.context import Context
from engine.frontend.expressions.conversions import integer
from engine.frontend.expressions.indices import component_index, dimension, within, wrapped_index
from engine.frontend.operands.kinds import element_leaves, leaf_count
from engine.frontend.operands.lvalues import Element, Linked, Local, LValue
from engine.frontend.operands.operand import BAD, Bad, Dim, Root, Span, Struct, View
from engine.ir.builder import const
from engine.ir.nodes import Atom, Const, Var
from engine.lang.structs import (
    ARRAYS,
    ElementType,
    StructType,
    own_leaf,
)
from engine.lang.types import INT32, ValueType, shape_of


def _int(n: int) -> Const:
    return Const(n, INT32)


def _known(a: Atom) -> int | None:
    return a.value if isinstance(a, Const) and isinstance(a.value, int) else None


def arith(cx: Context, op: str, a: Atom, b: Atom) -> Atom:
    """add, sub, mul, min or max of int32 atoms, done here where both are known."""
    x, y = _known(a), _known(b)
    if x is not None and y is not None:
        found = {"add": x + y, "sub": x - y, "mul": x * y, "min": min(x, y), "max": max(x, y)}[op]
        return _int(found)
    if (y == 0 and op in ("add", "sub")) or (y == 1 and op == "mul"):
        return a
    if (x == 0 and op == "add") or (x == 1 and op == "mul"):
        return b
    return cx.b.op(op, a, b)


# ---- sizes


def root_size(cx: Context, root: Root, dim: int) -> Atom:
    """How many places an index along a dimension of the root can name."""
    if root.shape:
        return _int(root.shape[dim])
    if root.place:
        return root.place[1 + dim]
    array, at = (root.tables[dim], 0) if root.tables else (root.leaves[own_leaf(root.element)], dim)
    assert isinstance(array, Var)
    return dimension(cx, array, at)


def size(cx: Context, view: View, k: int) -> Atom:
    """The length of the k-th dimension of a view."""
    d = view.shown[k]
    found = view.dims[d]
    return found.count if isinstance(found, Span) else root_size(cx, view.root, d)


# ---- indices


def as_int32(cx: Context, index: Atom) -> Atom:
    if index.type == INT32:
        return index
    n = _known(index)
    return _int(n) if n is not None else cx.b.op("cast", index, result=INT32)


def _place_in(cx: Context, view: View, k: int, index: Atom) -> Atom:
    """The index along the root's dimension that an index along the view's means."""
    d = view.shown[k]
    dim = view.dims[d]
    if isinstance(dim, Span):
        inside = wrapped_index(cx, as_int32(cx, index), lambda: dim.count)
        inside = within(cx, inside, dim.count)
        return arith(cx, "add", dim.start, arith(cx, "mul", inside, dim.step))
    if view.root.shape:
        n = _known(index)
        if n is not None:
            return _int(n % view.root.shape[d])
        found = component_index(cx, view.root.shape[d], index)
        # The last index alone is seen to be outside of the whole.
        return within(cx, as_int32(cx, found), _int(view.root.shape[d])) if d else found
    if view.root.place:
        length = root_size(cx, view.root, d)
        return within(cx, wrapped_index(cx, as_int32(cx, index), lambda: length), length)
    return wrapped_index(cx, index, lambda: root_size(cx, view.root, d))


def shown_part(cx: Context, view: View, k: int, part: Atom | Span | None) -> Dim:
    """An index, a span of the view's own places, or nothing, as an entry of its `dims`."""
    old = view.dims[view.shown[k]]
    if part is None:
        return old
    if not isinstance(part, Span):
        return _place_in(cx, view, k, part)
    if not isinstance(old, Span):
        return part
    start = arith(cx, "add", old.start, arith(cx, "mul", part.start, old.step))
    return Span(start, arith(cx, "mul", part.step, old.step), part.count)


def settled(cx: Context, view: View) -> View:
    """The view with indices of one type, as variables and parameters hold them."""
    dims: list[Dim] = [d if d is None or isinstance(d, Span) else as_int32(cx, d)
                       for d in view.dims]  # fmt: skip
    return View(view.root, tuple(dims))


def element(cx: Context, view: View) -> LValue:
    """The place of the element that a view without dimensions shows."""
    root = view.root
    index = [d for d in view.dims if d is not None and not isinstance(d, Span)]
    assert len(index) == root.ndim
    if root.tables:
        index = [
            cx.b.load(_var(t), (i,), (), INT32) for t, i in zip(root.tables, index, strict=True)
        ]
    if root.shape:
        at = _flat(cx, [as_int32(cx, i) for i in index], [_int(n) for n in root.shape])
        places = [_local(cx, leaf, at, t) for leaf, t in
                  zip(root.leaves, leaf_types(root.element), strict=True)]  # fmt: skip
        return gathered(root.element, places)
    if root.place:
        flat = _flat(cx, [as_int32(cx, i) for i in index], root.place[1:])
        index = [arith(cx, "add", root.place[0], flat)]
    return _element(root.element, list(root.leaves), tuple(index))


def _element(element: ElementType, left: list[Atom], index: tuple[Atom, ...]) -> LValue:
    """The place of an element in arrays, which are taken from `left`."""
    if not isinstance(element, StructType):
        return Element(_var(left.pop(0)), index)
    items: list[LValue] = []
    for field in element.fields.values():
        if isinstance(field, ARRAYS):
            pool = tuple(left.pop(0) for _ in range(leaf_count(field.element)))
            items.append(Linked(field, pool, Element(_var(left.pop(0)), index)))
        else:
            items.append(_element(field, left, index))
    return Struct(element, tuple(items))


def linked_view(cx: Context, got: Linked) -> View:
    """The array that a field of a struct in an array holds."""
    where = cx.b.load(got.place.array, got.place.index, (), got.place.type)
    place = tuple(cx.b.op("extract", where, _int(k)) for k in range(1 + got.type.ndim))
    root = Root(got.type.element, got.type.ndim, got.leaves, place=place)
    return View(root, (None,) * got.type.ndim)


def _var(a: Atom) -> Var:
    assert isinstance(a, Var)
    return a


def _flat(cx: Context, index: Sequence[Atom], shape: Sequence[Atom]) -> Atom:
    at = index[0]
    for i, n in zip(index[1:], shape[1:], strict=True):
        at = arith(cx, "add", arith(cx, "mul", at, n), i)
    return at


def _local(cx: Context, leaf: Atom, at: Atom, t: ValueType) -> Local:
    return Local(leaf, arith(cx, "mul", at, _int(math.prod(shape_of(t)))), t)


def leaf_types(element: ElementType) -> list[ValueType]:
    """Types of the leaves of an element, in order."""
    return [t for _, t in element_leaves(element)]


def gathered(element: ElementType, places: Sequence[LValue]) -> LValue:
    """The places of an element's leaves as the place of the element."""
    if not isinstance(element, StructType):
        (one,) = places
        return one
    items = []
    left = list(places)
    for field in element.fields.values():
        assert not isinstance(field, ARRAYS)
        count = leaf_count(field)
        items.append(gathered(field, left[:count]))
        left = left[count:]
    return Struct(element, tuple(items))


# ---- subscripts


def subscript(cx: Context, node: ast.Subscript, view: View, nodes: Sequence[ast.expr]) -> LValue:
    """`view[i, a:b, ...]`: an element's place where every dimension has an index, else a view."""
    if len(nodes) > view.ndim:
        fixed = len(view.dims) - view.ndim
        total, given = view.ndim + fixed, len(nodes) + fixed
        return cx.error(
            "E109",
            node,
            f"the array has {total} dimension{'s' if total > 1 else ''}, but {given} indices "
            "are given",
            "components of an element have a subscript of their own: `a[i][k]`",
        )
    dims = list(view.dims)
    for k, n in enumerate(nodes):
        part: Atom | Span | None
        if isinstance(n, ast.Slice):
            span = _span(cx, n, size(cx, view, k))
            if isinstance(span, Bad):
                return BAD
            part = span
        else:
            part = integer(cx, n, cx.value(n, "an index"), "an index")
            if part is None or not _inside(cx, n, view, k, part):
                return BAD
        dims[view.shown[k]] = shown_part(cx, view, k, part)
    found = View(view.root, tuple(dims))
    return found if found.ndim else element(cx, found)


def _inside(cx: Context, node: ast.expr, view: View, k: int, index: Atom) -> bool:
    """Says so where a known index is outside of an array of known shape."""
    n = _known(index)
    d = view.shown[k]
    length = _known(size(cx, view, k)) if view.root.shape or view.dims[d] is not None else None
    if n is None or length is None or -length <= n < length:
        return True
    cx.error("E104", node, f"index {n} is out of range for {length} elements",
             f"indices go from 0 to {length - 1}" if length else "the array is empty")  # fmt: skip
    return False


def _span(cx: Context, node: ast.Slice, n: Atom) -> Span | Bad | None:
    """What `start:stop:step` selects of n places, as Python does. None for all of them."""
    step: Atom = _int(1)
    if node.step is not None:
        found = integer(cx, node.step, cx.value(node.step, "the step of a slice"), "a step")
        if found is None:
            return BAD
        if _known(found) == 0:
            return cx.error("E104", node.step, "Slice step cannot be zero",
                            "write 1 for all elements, -1 to turn them around")  # fmt: skip
        step = as_int32(cx, found)
    ends = []
    for bound in (node.lower, node.upper):
        atom = None
        if bound is not None:
            atom = integer(cx, bound, cx.value(bound, "the bound of a slice"), "a bound of a slice")
            if atom is None:
                return BAD
        ends.append(atom)
    if ends == [None, None] and _known(step) == 1:
        return None
    up = _Direction(cx, step)
    low = up.chosen(_int(0), _int(-1))
    high = n if (up.known or 0) > 0 else up.chosen(n, arith(cx, "sub", n, _int(1)))
    first, last = up.chosen(low, high), up.chosen(high, low)
    start = first if ends[0] is None else _bound(cx, as_int32(cx, ends[0]), n, low, high)
    stop = last if ends[1] is None else _bound(cx, as_int32(cx, ends[1]), n, low, high)
    a, b = up.chosen(stop, start), up.chosen(start, stop)
    return Span(start, step, up.divided(arith(cx, "max", arith(cx, "sub", a, b), _int(0))))


class _Direction:
    """Whether the step of a slice goes up, known here or at run time."""

    def __init__(self, cx: Context, step: Atom) -> None:
        self.cx = cx
        self.step = step
        self.known = _known(step)
        self.up = cx.b.op("gt", step, _int(0)) if self.known is None else None

    def chosen(self, up: Atom, down: Atom) -> Atom:
        """One of two, by the direction."""
        if self.known is not None:
            return up if self.known > 0 else down
        assert self.up is not None
        return up if up == down else self.cx.b.op("select", self.up, up, down)

    def divided(self, room: Atom) -> Atom:
        """How many steps there are in it. A step that turns out to be 0 selects nothing."""
        if self.known is not None:
            return _divided_up(self.cx, room, abs(self.known))
        cx, step = self.cx, self.step
        size = arith(cx, "max", step, arith(cx, "sub", _int(0), step))
        size = arith(cx, "max", size, _int(1))
        count = cx.b.op("div", arith(cx, "add", room, arith(cx, "sub", size, _int(1))), size)
        return cx.b.op("select", cx.b.op("eq", step, _int(0)), _int(0), count)


def _bound(cx: Context, at: Atom, n: Atom, low: Atom, high: Atom) -> Atom:
    """A slice's bound as a place from `low` to `high`; a negative one counts from the end."""
    least = cx.b.low(at)
    if least is not None and least >= 0:
        return arith(cx, "min", at, high)
    from_end = arith(cx, "max", arith(cx, "add", at, n), low)
    if _known(at) is not None:
        return from_end
    from_start = arith(cx, "min", at, high)
    negative = cx.b.op("lt", at, const(0, INT32))
    return cx.b.op("select", negative, from_end, from_start)


def _divided_up(cx: Context, room: Atom, step: int) -> Atom:
    """The quotient, rounded up."""
    n = _known(room)
    if n is not None:
        return _int(-(-n // step))
    if step == 1:
        return room
    return cx.b.op("div", arith(cx, "add", room, _int(step - 1)), _int(step))
