"""Names of types in messages: `vec3`, `mat22d`, `array(dtype=float32, ndim=2)`."""

from __future__ import annotations

from collections.abc import Iterable

from engine.frontend.operands.kinds import (
    AbsentKind,
    ChoiceKind,
    Kind,
    LiteralKind,
    StructKind,
    TupleKind,
    ViewKind,
    user_type,
)
from engine.frontend.operands.operand import Known
from engine.lang.generics import Pattern
from engine.lang.structs import IndexedArrayType, StructArrayType, StructType, TupleType, UserType
from engine.lang.types import FLOAT32, ArrayType, MatrixType, ScalarType, VectorType
from engine.lang.vectors import class_name


def type_name(t: Kind | UserType) -> str:
    """The type as a user would write it."""
    if isinstance(t, Known):
        return str(getattr(t.obj, "__name__", "function"))
    if isinstance(t, (StructKind, ViewKind, AbsentKind, ChoiceKind, LiteralKind)):
        t = user_type(t)
    if isinstance(t, (TupleKind, TupleType)):
        return f"tuple[{type_names(t.items)}]"
    if isinstance(t, StructType):
        return t.name
    if isinstance(t, (StructArrayType, IndexedArrayType)):
        ndim = f", ndim={t.ndim}" if t.ndim > 1 else ""
        indexed = "indexed" if isinstance(t, IndexedArrayType) else ""
        return f"{indexed}array(dtype={type_name(t.element)}{ndim})"
    if isinstance(t, (VectorType, MatrixType)):
        name = class_name(t)
        short = t.scalar == FLOAT32 and not name.endswith(")")
        return name[:-1] if short else name  # vec3f is vec3
    if isinstance(t, ArrayType):
        ndim = f", ndim={t.ndim}" if t.ndim > 1 else ""
        return f"array(dtype={type_name(t.element)}{ndim})"
    return t.name


def pattern_name(pattern: Pattern | None) -> str:
    """What a parameter takes, as a user would write it."""
    if pattern is None or pattern.role != "tuple":
        return str(pattern)
    items = [pattern_name(i) if isinstance(i, Pattern) else type_name(i) for i in pattern.items]
    return f"tuple[{', '.join(items + ['...'] * pattern.rest)}]"


def type_names(types: Iterable[Kind]) -> str:
    """Several types, separated by commas."""
    return ", ".join(type_name(t) for t in types)


def cast_name(t: ScalarType, api: str) -> str:
    """What a cast to the type is called in a kernel: `float`, or `wp.float64`."""
    return {"float32": "float", "int32": "int", "bool": "bool"}.get(t.name, f"{api}.{t.name}")
