"""Attributes: of modules and classes, components of vectors, facts about arrays."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from engine.frontend.context.context import Context
from engine.frontend.expressions.addresses import address_of_view
from engine.frontend.expressions.component_slices import component_of_region, named_part, region_of
from engine.frontend.expressions.local_arrays import local_part
from engine.frontend.expressions.views import arith, size
from engine.frontend.features import missing_feature
from engine.frontend.operands.captured import describe, operand_of
from engine.frontend.operands.kinds import as_view, decompose, user_type
from engine.frontend.operands.lvalues import Chosen, Element, Local, LValue, Part, Region, Shape
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
)
from engine.frontend.operands.type_names import type_name
from engine.frontend.parsing.scope import MISSING, is_engine, type_of
from engine.ir.nodes import Const
from engine.lang.stand_ins import StandIn, plural
from engine.lang.structs import ARRAYS, StructType
from engine.lang.types import (
    MatrixType,
    ScalarType,
    Tag,
    ValueType,
    VectorType,
    shape_of,
)
from engine.lang.values import value_class

_LETTERS = "xyzw"
# What types have as well as values.
_OF_TYPES = ("dtype", "length", "shape", "ndim", "size")
# Parts of a transform: first and last component, and what they are.
_TRANSFORM: dict[str, tuple[int, int, Tag]] = {"p": (0, 3, ""), "q": (3, 7, "quat")}


def member(cx: Context, node: ast.Attribute, base: LValue) -> LValue:
    """What `base.attr` names."""
    if isinstance(base, Bad):
        return BAD
    if isinstance(base, Choice):
        return Chosen(base, (node,))
    if isinstance(base, Chosen):
        return Chosen(base.choice, (*base.steps, node))
    if isinstance(base, Known) and base.value is not None and node.attr not in _OF_TYPES:
        base = base.value
    if isinstance(base, Known):
        return known_member(cx, node, base.obj)
    if isinstance(base, Struct):
        return _field(cx, node, base)
    if isinstance(base, Absent):
        return _of_none(node.attr, base) or cx.describe(node.value, base)
    if isinstance(base, Value) and base.member is not None and node.attr == "value":
        return replace(base, member=None)
    t: object = None
    if isinstance(base, (Element, Part, Region, Local, Value)):
        t = base.type
    view = as_view(base) if isinstance(base, (Value, View)) else None
    if view is not None:
        found = _array_member(cx, node, view)
        if found is not None:
            return found
        t = user_type((decompose(view) or (t,))[0])  # type: ignore[arg-type]
    k = _LETTERS.find(node.attr) if len(node.attr) == 1 else -1
    if isinstance(t, VectorType) and t.tag == "transform":
        region = base if isinstance(base, Region) else region_of(base)  # type: ignore[arg-type]
        if node.attr in _TRANSFORM and region is not None:
            return named_part(region, *_TRANSFORM[node.attr])
    elif isinstance(t, VectorType) and 0 <= k < t.length:
        if isinstance(base, Region):
            return component_of_region(cx, base, k)
        index = (literal(k).atom,)
        if isinstance(base, Element):
            return Element(base.array, base.index, base.path + index)
        if isinstance(base, Part):
            return Part(base.base, base.index + index)
        if isinstance(base, Local):
            return local_part(cx, base, index)
        assert isinstance(base, Value)
        return Part(base.atom, index)
    if node.attr == "dtype" and isinstance(t, ScalarType):
        return _class_of(t)
    if isinstance(t, (VectorType, MatrixType)) and (known := _of_type(node.attr, t)) is not None:
        return known
    what = "" if t is None else type_name(t)  # type: ignore[arg-type]
    return cx.error(
        "E102",
        node,
        f"{what or 'this value'} has no attribute `{node.attr}`",
        _member_help(cx, node, t),
    )


def _member_help(cx: Context, node: ast.Attribute, t: object) -> str:
    if isinstance(t, ARRAYS):
        return "arrays have `shape`, `ndim`, `size` and `dtype` in kernels"
    if isinstance(t, VectorType) and t.tag == "transform":
        return "transforms have a translation `p` and a rotation `q`"
    if isinstance(t, VectorType):
        letters = ", ".join(f"`{c}`" for c in _LETTERS[: t.length])
        return f"components are {letters}; call functions by name: `{cx.api}.dot(a, b)`"
    if len(node.attr) == 1 or t is None:
        return "only vectors have components with names"
    return f"call functions by name: `{cx.api}.{node.attr}(...)`"


def _class_of(t: ValueType) -> Known:
    return Known(value_class(t))


def _field(cx: Context, node: ast.Attribute, base: Struct) -> LValue:
    """A field of a struct."""
    if node.attr in base.type.missing:
        return not_here(cx, node, base.type.missing[node.attr], cx.source.text(node))
    if node.attr in base.type.fields:
        found: LValue = base.item(node.attr)
        return found
    fields = list(base.type.fields)
    return cx.error(
        "E102",
        node,
        f"{base.type} has no field `{node.attr}`",
        cx.close_to(node.attr, fields) or f"its fields are: {', '.join(fields)}",
    )


def _array_member(cx: Context, node: ast.Attribute, view: View) -> LValue | None:
    if node.attr == "shape":
        return Shape(view)
    if node.attr == "ndim":
        return literal(view.ndim)
    if node.attr == "dtype":
        element = view.root.element
        return Known(element.cls) if isinstance(element, StructType) else _class_of(element)
    if node.attr == "ptr":
        return address_of_view(cx, node, view)
    if node.attr == "size":
        total = size(cx, view, 0)
        for d in range(1, view.ndim):
            total = arith(cx, "mul", total, size(cx, view, d))
        return Value(total, weak=isinstance(total, Const))
    return None


# What kernels know as the engine's, too.
_PYTHON: dict[str, object] = {"float": float, "int": int, "len": len, "print": print}


def known_member(cx: Context, node: ast.Attribute, obj: object) -> Operand:
    """An attribute of a module, class or enumeration."""
    text = cx.source.text(node)
    of_type = _of_type(node.attr, type_of(obj))
    if of_type is not None:
        return of_type
    try:
        found = cx.scope.member(obj, node.attr)
    except Exception:
        if is_engine(obj) and node.attr in _PYTHON:
            return Known(_PYTHON[node.attr])
        return unknown(cx, node, node.attr, is_engine(obj), _public(obj), text)
    if isinstance(found, StandIn):
        return not_here(cx, node, found, text)
    got = operand_of(found)
    if got is None:
        what, help_text = describe(found)
        return cx.error("E107", node, f"`{text}` is {what}", help_text)
    return got


def function_of_object(cx: Context, node: ast.Attribute) -> Known | None:
    """`obj.f` for a function or type in an object that is itself nothing to kernels."""
    if not isinstance(node.value, ast.Name) or node.value.id in cx.plan.assigned:
        return None
    obj = cx.scope.lookup(node.value.id)
    if obj is MISSING or isinstance(obj, StandIn) or operand_of(obj) is not None:
        return None
    try:
        got = operand_of(cx.scope.member(obj, node.attr))
    except Exception:
        return None
    return got if isinstance(got, Known) and callable(got.obj) else None


def _of_none(name: str, base: Absent) -> Operand | None:
    """A fact about an array that is not there: it has no elements."""
    assert isinstance(base.type, ARRAYS)
    if name == "shape":
        return Several((literal(0),) * base.type.ndim)
    if name == "dtype":
        return Known(value_class(base.type.element))
    return literal({"size": 0, "ndim": base.type.ndim}[name]) if name in ("size", "ndim") else None


def _of_type(name: str, t: ValueType | None) -> Operand | None:
    """`length`, `shape` and `dtype` of vectors or matrices, and of their classes."""
    if name == "dtype" and isinstance(t, (VectorType, MatrixType)):
        return _class_of(t.scalar)
    if name == "length" and isinstance(t, VectorType):
        return literal(t.length)
    if name == "shape" and isinstance(t, (VectorType, MatrixType)):
        return Several(tuple(literal(n) for n in shape_of(t)))
    return None


def _public(obj: object) -> list[str]:
    return [n for n in dir(obj) if not n.startswith("_")]


def not_here(cx: Context, node: ast.expr, found: StandIn, text: str) -> Bad:
    """E112 for what stands in for a feature of Warp that is not there."""
    what = f"`{text}`: {plural(found.missing_feature)} not supported"
    return cx.error("E112", node, what, found.missing_help)


def unknown(
    cx: Context, node: ast.expr, name: str, engine: bool, others: Sequence[str], text: str
) -> Bad:
    """E112 for a feature of Warp that is not there, else E102."""
    feature = missing_feature(name) if engine else None
    if feature is not None:
        return cx.error("E112", node, f"`{text}`: {plural(feature[0])} not supported", feature[1])
    return cx.error(
        "E102",
        node,
        f"`{text}` is not defined",
        cx.close_to(name, others, text[: len(text) - len(name)])
        or "define it before the kernel, or check the spelling",
    )
