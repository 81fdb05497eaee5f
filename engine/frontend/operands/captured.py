"""The meaning of a Python object that a kernel captures."""

from __future__ import annotations

import enum
import types
from dataclasses import replace
from typing import Any

import numpy as np

from engine.frontend.operands.operand import Known, Operand, Several, Struct, Value, literal
from engine.frontend.parsing.scope import struct_of
from engine.ir.nodes import Const
from engine.lang.structs import StructType
from engine.lang.types import ArrayType, MatrixType, ScalarType, VectorType, scalar_of


def _nested(data: object) -> Any:
    return tuple(_nested(x) for x in data) if isinstance(data, list) else data


def _typed(obj: Any, t: ScalarType | VectorType | MatrixType) -> Value:
    """The constant of a value object such as `vec3(1, 2, 3)` or `float64(2)`."""
    data = np.asarray(obj, dtype=scalar_of(t).numpy).tolist()
    return Value(Const(_nested(data), t))


def operand_of(obj: Any) -> Operand | None:
    """What a Python object means in a kernel; None where it means nothing."""
    t = getattr(type(obj), "__ir_type__", None)
    if isinstance(t, (ScalarType, VectorType, MatrixType)):
        return _typed(obj, t)
    if isinstance(obj, (bool, np.bool_)):
        return literal(bool(obj))
    if isinstance(obj, (int, np.integer)):
        n = literal(int(obj))
        return replace(n, member=obj) if isinstance(obj, enum.Enum) else n
    if isinstance(obj, (float, np.floating)):
        return literal(float(obj))
    if isinstance(obj, tuple):
        items = [operand_of(x) for x in obj]
        found = tuple(x for x in items if x is not None)
        return Several(found) if len(found) == len(items) else None
    if hasattr(obj, "__builtin_name__") or isinstance(
        obj, (types.ModuleType, type, enum.Enum, np.dtype)
    ):
        return Known(obj)
    ir_type = getattr(obj, "__ir_type__", None)
    if callable(obj) and not isinstance(ir_type, ArrayType):
        return Known(obj)
    return None


def static_operand(obj: Any) -> Operand | None:
    """What a static expression's value means: also lists, and structs without arrays."""
    if isinstance(obj, (list, tuple)):
        items = [static_operand(x) for x in obj]
        found = tuple(x for x in items if x is not None)
        return Several(found) if len(found) == len(items) else None
    struct = struct_of(type(obj))
    if struct is None:
        return operand_of(obj)
    fields: list[Operand] = []
    for name, t in struct.fields.items():
        value = getattr(obj, name)
        if isinstance(t, StructType):
            inner = static_operand(value)
            if inner is None:
                return None
            fields.append(inner)
        elif isinstance(t, (ScalarType, VectorType, MatrixType)):
            fields.append(_typed(value, t))
        else:
            return None
    return Struct(struct, tuple(fields))


def describe(obj: object) -> tuple[str, str]:
    """What an object that cannot be captured is, and what to write instead."""
    kind = type(obj).__name__
    if struct_of(type(obj)) is not None:
        return f"a value of the struct `{kind}`", "pass it as a parameter of the kernel"
    if hasattr(obj, "__array_interface__") or hasattr(obj, "shape"):
        return "an array", "pass it as a parameter of the kernel"
    if isinstance(obj, (list, tuple, set, frozenset, dict)):
        return f"a {kind}", "pass its numbers as an array parameter, or use a vector"
    if isinstance(obj, str):
        return "a string", "use an integer in its place"
    if obj is None:
        return "None", "give it a number before the kernel is launched first"
    return (
        f"an object of type `{kind}`",
        "copy the number that you need into a variable outside the kernel and use that",
    )
