"""Attributes: of modules and classes, components of vectors, facts about arrays."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.context import Context
from engine.frontend.features import missing_feature, plural
from engine.frontend.operands import BAD, Bad, Known, Operand, Value, literal
from engine.frontend.place_kinds import Element, Part, Place, Region, Shape, dimension
from engine.frontend.regions import component_of_region, named_part, region_of
from engine.frontend.scope import describe, is_engine, operand_of
from engine.frontend.typenames import type_name
from engine.ir.nodes import Atom, Var
from engine.lang.types import (
    ArrayType,
    MatrixType,
    ScalarType,
    Tag,
    ValueType,
    VectorType,
    scalar_of,
)
from engine.lang.values import value_class

_LETTERS = "xyzw"
# Parts of a transform: first and last component, and what they are.
_TRANSFORM: dict[str, tuple[int, int, Tag]] = {"p": (0, 3, ""), "q": (3, 7, "quat")}


def member(cx: Context, node: ast.Attribute, base: Place) -> Place:
    """What `base.attr` names."""
    if isinstance(base, Bad):
        return BAD
    if isinstance(base, Known):
        return known_member(cx, node, base.obj)
    t: object = None
    if isinstance(base, (Element, Part, Region, Value)):
        t = base.type
    if isinstance(t, ArrayType) and isinstance(base, Value) and isinstance(base.atom, Var):
        found = _array_member(cx, node, base.atom, t)
        if found is not None:
            return found
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
        assert isinstance(base, Value)
        return Part(base.atom, index)
    if node.attr == "dtype" and isinstance(t, (ScalarType, VectorType, MatrixType)):
        return _class_of(scalar_of(t))
    what = type_name(t) if isinstance(t, (ScalarType, VectorType, MatrixType, ArrayType)) else ""
    return cx.error(
        "E102",
        node,
        f"{what or 'this value'} has no attribute `{node.attr}`",
        _member_help(cx, node, t),
    )


def _member_help(cx: Context, node: ast.Attribute, t: object) -> str:
    if isinstance(t, ArrayType):
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


def _array_member(cx: Context, node: ast.Attribute, array: Var, t: ArrayType) -> Place | None:
    if node.attr == "shape":
        return Shape(array)
    if node.attr == "ndim":
        return literal(t.ndim)
    if node.attr == "dtype":
        return _class_of(t.element)
    if node.attr == "size":
        total: Atom = dimension(cx, array, 0)
        for d in range(1, t.ndim):
            total = cx.b.op("mul", total, dimension(cx, array, d))
        return Value(total)
    return None


def known_member(cx: Context, node: ast.Attribute, obj: object) -> Operand:
    """An attribute of a module, class or enumeration."""
    text = cx.source.text(node)
    try:
        found = getattr(obj, node.attr)
    except Exception:
        return unknown(cx, node, node.attr, is_engine(obj), _public(obj), text)
    got = operand_of(found)
    if got is None:
        what, help_text = describe(found)
        return cx.error("E107", node, f"`{text}` is {what}", help_text)
    return got


def _public(obj: object) -> list[str]:
    return [n for n in dir(obj) if not n.startswith("_")]


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
