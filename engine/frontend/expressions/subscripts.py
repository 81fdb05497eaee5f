"""Subscripts and attributes: `a[i, j]`, `a[i][0]`, `v.x`, `m[i, j]`, `a.shape[0]`, `wp.sin`.

An lvalue is resolved without reading it, so that `a[i].x` reads one number and not the
whole element, and so that the same code serves reading and writing.
"""

from __future__ import annotations

import ast

from engine.frontend.context.context import Context
from engine.frontend.context.lowered import lowered
from engine.frontend.expressions.adjoint_variables import adjoint_of
from engine.frontend.expressions.attributes import function_of_object, member
from engine.frontend.expressions.choices import per_option
from engine.frontend.expressions.component_slices import (
    chosen_items,
    part_of_region,
    read_region,
    region_of,
)
from engine.frontend.expressions.conversions import integer
from engine.frontend.expressions.indices import component_index
from engine.frontend.expressions.local_arrays import local_part, read_local
from engine.frontend.expressions.names import named
from engine.frontend.expressions.operators import tabled
from engine.frontend.expressions.views import linked_view, size, subscript
from engine.frontend.operands.folding import chosen_among
from engine.frontend.operands.kinds import as_view, plain
from engine.frontend.operands.lvalues import (
    Chosen,
    Element,
    Linked,
    Local,
    LValue,
    Part,
    Region,
    Shape,
)
from engine.frontend.operands.operand import (
    BAD,
    Absent,
    Bad,
    Choice,
    Known,
    Operand,
    Several,
    Struct,
    Value,
    View,
    literal,
    number,
    unify,
    zero,
)
from engine.frontend.operands.type_names import type_name
from engine.frontend.parsing.local_variables import root_name
from engine.ir.nodes import Atom, Const
from engine.lang.structs import ARRAYS, ElementType, StructType
from engine.lang.types import MatrixType, ScalarType, VectorType


def lvalue(cx: Context, node: ast.expr) -> LValue:
    """What a subscript or attribute names, not read yet; any other expression as it is."""
    if id(node) in cx.function.rejected:
        return BAD
    if isinstance(node, ast.Subscript):
        base = _base(cx, node.value)
        with cx.at(node):
            return _subscript(cx, node, _shown(cx, base))
    if isinstance(node, ast.Attribute):
        function = function_of_object(cx, node)
        if function is not None:
            return function
        base = _base(cx, node.value)
        with cx.at(node):
            return member(cx, node, _shown(cx, base))
    return cx.expr(node)


def _base(cx: Context, node: ast.expr) -> LValue:
    """What a part is taken of: a variable itself, whatever the expression changes."""
    if isinstance(node, ast.Name) and node.id in cx.plan.touched:
        with cx.at(node):
            return named(cx, node)
    return lvalue(cx, node)


def part_of(cx: Context, got: Chosen, option: Operand) -> LValue:
    """The part where an option is the array that is chosen."""
    base: LValue = option
    for step in got.steps:
        with cx.at(step):
            if isinstance(step, ast.Subscript):
                base = _subscript(cx, step, _shown(cx, base))
            else:
                assert isinstance(step, ast.Attribute)
                base = member(cx, step, _shown(cx, base))
    return base


def _with_indices(cx: Context, node: ast.Subscript) -> ast.Subscript:
    """The subscript with its indices lowered, so that each option can have them."""

    def index(n: ast.expr) -> ast.expr:
        return lowered(cx.keep(cx.expr(n)), n)

    nodes: list[ast.expr] = []
    for n in _index_nodes(node):
        if isinstance(n, ast.Slice):
            lower, upper = (None if part is None else index(part) for part in (n.lower, n.upper))
            nodes.append(ast.copy_location(ast.Slice(lower, upper, n.step), n))
        else:
            nodes.append(index(n))
    at = ast.copy_location(ast.Tuple(nodes, ast.Load()), node.slice)
    return ast.copy_location(ast.Subscript(node.value, at, node.ctx), node)


def _shown(cx: Context, base: LValue) -> LValue:
    """An array behind a field is read where a part of it is wanted."""
    return linked_view(cx, base) if isinstance(base, Linked) else base


def read(cx: Context, got: LValue) -> Operand:
    """The value of an lvalue."""
    if isinstance(got, Chosen):
        found = per_option(cx, got.choice, lambda option: read(cx, part_of(cx, got, option)))
        if found is None:
            at = got.steps[-1]
            return cx.error("E104", at, f"`{cx.source.text(at)}` has a type that depends on which "
                            "array is chosen", "write `if` / `else` around the code")  # fmt: skip
        return found
    if isinstance(got, Element):
        if got.is_row:
            whole = cx.b.load(got.array, got.index, (), got.element)
            return Value(cx.b.op("extract_row", whole, *got.path))
        return Value(cx.b.load(got.array, got.index, got.path, got.type))
    if isinstance(got, Part):
        known = _constant_part(got)
        if known is not None:
            return known
        name = "extract_row" if isinstance(got.type, VectorType) else "extract"
        return Value(cx.b.op(name, got.base, *got.index))
    if isinstance(got, Region):
        return Value(read_region(cx, got))
    if isinstance(got, Local):
        return Value(read_local(cx, got))
    if isinstance(got, Shape):
        return Several(tuple(_length(cx, got.view, d) for d in range(got.view.ndim)))
    if isinstance(got, Linked):
        return linked_view(cx, got)
    if isinstance(got, Struct):
        return Struct(got.type, tuple(read(cx, item) for item in got.items))
    return plain(got) if isinstance(got, View) else got


def _length(cx: Context, view: View, k: int) -> Value:
    """The length of a dimension; where it is known, a literal."""
    found = size(cx, view, k)
    return Value(found, weak=isinstance(found, Const))


def _constant_part(got: Part) -> Value | None:
    """The component of a constant vector or matrix."""
    data: object = got.base.value if isinstance(got.base, Const) else None
    for k in got.index:
        if not isinstance(k, Const) or not isinstance(k.value, int) or not isinstance(data, tuple):
            return None
        data = data[k.value]
    return Value(Const(data, got.type)) if isinstance(data, (bool, int, float, tuple)) else None


def lower_lvalue(cx: Context, node: ast.expr) -> Operand:
    return read_now(cx, node, lvalue(cx, node))


def read_now(cx: Context, node: ast.expr, where: LValue) -> Operand:
    """The value of a place, which what is written later does not change."""
    got = read(cx, where)
    return cx.keep(got) if root_name(node) in cx.plan.touched else got


# ---- subscripts


def _index_nodes(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _subscript(cx: Context, node: ast.Subscript, base: LValue) -> LValue:
    if isinstance(base, Choice):
        return Chosen(base, (_with_indices(cx, node),))
    if isinstance(base, Chosen):
        return Chosen(base.choice, (*base.steps, _with_indices(cx, node)))
    nodes = _index_nodes(node)
    if isinstance(base, Known) and base.value is not None:
        base = base.value
    if isinstance(base, Known):
        return adjoint_of(cx, node, base)
    if isinstance(base, Bad):
        for n in nodes:
            cx.expr(n)
        return BAD
    if isinstance(base, (Shape, Several)):
        return _item(cx, node, base, nodes)
    if isinstance(base, Local):
        if any(isinstance(n, ast.Slice) for n in nodes):
            base = Value(read_local(cx, base))
        else:
            found = _components(cx, node, base.type, 0, nodes)
            return BAD if found is None else local_part(cx, base, found)
    if isinstance(base, Region) or any(isinstance(n, ast.Slice) for n in nodes):
        found_part = _region(cx, node, base, nodes)
        if found_part is not None:
            return found_part
    if isinstance(base, (Element, Part)):
        depth = len(base.path if isinstance(base, Element) else base.index)
        t = base.element if isinstance(base, Element) else base.base.type
        found = _components(cx, node, t, depth, nodes)
        if found is None:
            return BAD
        if isinstance(base, Element):
            return Element(base.array, base.index, base.path + found)
        return Part(base.base, base.index + found)
    if isinstance(base, Absent) and (cx.depth or not cx.is_kernel):
        # It has no elements, so this never runs: the code is written for structs with arrays too.
        assert isinstance(base.type, ARRAYS)
        indices = [integer(cx, n, cx.value(n, "an index"), "an index") for n in nodes
                   if not isinstance(n, ast.Slice)]  # fmt: skip
        if None in indices:
            return BAD
        return base if len(indices) < base.type.ndim else none_of(base.type.element)
    if isinstance(base, (Struct, Absent)):
        return cx.describe(node.value, base)
    assert isinstance(base, (Value, View))
    view = as_view(base)
    if view is not None:
        return subscript(cx, node, view, nodes)
    assert isinstance(base, Value)
    found = _components(cx, node, base.type, 0, nodes)
    return BAD if found is None else Part(base.atom, found)


def none_of(element: ElementType) -> Operand:
    """What stands for an element of an array that has none."""
    if not isinstance(element, StructType):
        return Value(zero(element))
    return Struct(element, tuple(Absent(t) if isinstance(t, ARRAYS) else none_of(t)
                                 for t in element.fields.values()))  # fmt: skip


def _region(cx: Context, node: ast.Subscript, base: LValue, nodes: list[ast.expr]) -> LValue | None:
    """Slices of vectors and matrices, and parts of them; None for anything else."""
    region = base if isinstance(base, Region) else None
    if isinstance(base, (Element, Part, Value)):
        region = region_of(base)
    if region is None:
        return None
    if len(nodes) > len(region.runs):
        _too_many(cx, node, region.type, len(region.runs), len(nodes))
        return BAD
    found = part_of_region(cx, region, nodes, lambda n, size: _component(cx, n, size))
    return BAD if found is None else found


def _components(
    cx: Context, node: ast.Subscript, t: object, depth: int, nodes: list[ast.expr]
) -> tuple[Atom, ...] | None:
    """Checked indices into a vector or matrix that has `depth` indices already."""
    sizes: tuple[int, ...] = ()
    if isinstance(t, VectorType):
        sizes = (t.length,)
    elif isinstance(t, MatrixType):
        sizes = (t.rows, t.cols)
    if depth + len(nodes) > len(sizes):
        _too_many(cx, node, t, len(sizes) - depth, len(nodes))
        return None
    out: list[Atom] = []
    for n, count in zip(nodes, sizes[depth:], strict=False):
        found = _component(cx, n, count)
        if found is None:
            return None
        out.append(found)
    return tuple(out)


def _too_many(cx: Context, node: ast.AST, t: object, most: int, given: int) -> None:
    shown = f"a {type_name(t)}" if most else "a number"  # type: ignore[arg-type]
    cx.error(
        "E109",
        node,
        f"{shown} takes {most or 'no'} {'index' if most == 1 else 'indices'}, but "
        f"{given} {'is' if given == 1 else 'are'} given",
        "only arrays, vectors and matrices are indexed",
    )


def _component(cx: Context, node: ast.expr, size: int) -> Atom | None:
    """The checked index of one of `size` components."""
    got = cx.value(node, "an index")
    atom = integer(cx, node, got, "an index")
    if atom is None:
        return None
    k = number(got) if isinstance(got, Value) else None
    if not size or (k is not None and not -size <= k < size):
        shown = "this index" if k is None else f"index {k}"
        cx.error(
            "E104",
            node,
            f"{shown} is out of range for {size} components",
            f"indices go from 0 to {size - 1}" if size else "the vector has none",
        )
        return None
    known = literal(int(k) % size).atom if k is not None else None
    return known or component_index(cx, size, atom)


def _item(cx: Context, node: ast.Subscript, base: Shape | Several, nodes: list[ast.expr]) -> LValue:
    if len(nodes) == 1 and isinstance(nodes[0], ast.Slice):
        several = read(cx, base)
        assert isinstance(several, Several)
        chosen = chosen_items(cx, nodes[0], len(several.items))
        return BAD if chosen is None else Several(tuple(several.items[k] for k in chosen))
    got = cx.value(nodes[0], "an index") if len(nodes) == 1 else BAD
    k = number(got) if isinstance(got, Value) else None
    count = base.view.ndim if isinstance(base, Shape) else len(base.items)
    if not isinstance(k, int) or isinstance(k, bool):
        if isinstance(got, Bad) and len(nodes) == 1:
            return BAD
        return _item_at_run_time(cx, node, base, nodes[0], got)
    if isinstance(base, Shape) and count <= k < 4:
        return literal(0)  # as in Warp, whose shapes have four entries
    if isinstance(base, Shape) and count <= k < 4:
        return literal(0)  # as in Warp, where shapes have four numbers
    if not -count <= k < count:
        return cx.error(
            "E104", node, f"index {k} is out of range for {count} values", f"use 0 to {count - 1}"
        )
    return _length(cx, base.view, k % count) if isinstance(base, Shape) else base.items[k]


def _item_at_run_time(
    cx: Context, node: ast.Subscript, base: Shape | Several, at: ast.expr, got: Value | Bad
) -> LValue:
    """An item that an index chooses at run time: of numbers of one type, as of a vector."""
    several = read(cx, base)
    assert isinstance(several, Several)
    values = [v for v in several.items if isinstance(v, Value)]
    same = unify(values, cx.b) if values and len(values) == len(several.items) else None
    t = same[0].type if same else None
    if not isinstance(got, Value) or same is None or not isinstance(t, ScalarType):
        return cx.error(
            "E104",
            node,
            "a tuple is indexed with a constant integer",
            "write the number itself, or loop over the tuple",
        )
    index = integer(cx, at, got, "an index")
    if index is None:
        return BAD
    index = component_index(cx, len(same), index)
    whole = cx.b.op("construct", *(v.atom for v in same), result=VectorType(t, len(same)))
    if not all(v.weak for v in values):
        return Part(whole, (index,))
    place = cx.frozen(index)
    item = Value(cx.b.op("extract", whole, index))
    return tabled(cx, node, item, lambda: chosen_among(place, values))


def lower_slice(cx: Context, node: ast.expr) -> Operand:
    return cx.error(
        "E101",
        node,
        "a slice is not supported here",
        "slice arrays, vectors and matrices; write the others one by one",
    )
