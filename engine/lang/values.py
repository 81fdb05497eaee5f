"""The value types of the public API, and the ways between them, NumPy and the type system."""

from __future__ import annotations

import builtins
from typing import Any, TypeVar

import numpy as np

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.lang import types as t
from engine.lang.scalars import (
    SCALAR_CLASSES,
    bfloat16,
    bool,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from engine.lang.stand_ins import StandIn
from engine.lang.structs import (
    ARRAYS,
    ElementType,
    FieldType,
    IndexedArrayType,
    StructArrayType,
    StructType,
    record_dtype,
)
from engine.lang.vectors import Components, vector_class

T = TypeVar("T")


_COMPOUND = (StructType, StructArrayType, IndexedArrayType)
# Plain Python classes mean what they mean in kernels.
_PYTHON: dict[Any, t.ScalarType] = {float: t.FLOAT32, int: t.INT32, builtins.bool: t.BOOL}
_BY_CLASS = {**_PYTHON, **{c: k for k, c in SCALAR_CLASSES.items()}}


def to_ir_type(obj: object) -> FieldType:
    """The type that `obj` (a class, a NumPy dtype or an annotation) names.

    Raises LaunchError (E202) where it names none.
    """
    kind = getattr(obj, "__ir_type__", None)
    if kind is not None:
        return kind  # type: ignore[no-any-return]
    if isinstance(obj, StandIn):
        raise obj.error()
    if isinstance(obj, type) and obj in _PYTHON:
        return _PYTHON[obj]
    if isinstance(obj, (t.ScalarType, t.VectorType, t.MatrixType, t.ArrayType, *_COMPOUND)):
        return obj
    if isinstance(obj, np.dtype) or (isinstance(obj, type) and issubclass(obj, np.generic)):
        name = np.dtype(obj).name
        if name in t.BY_NAME and np.dtype(obj).isnative:
            return t.BY_NAME[name]
    raise LaunchError(
        Diagnostic(
            "E202",
            f"{getattr(obj, '__name__', None) or repr(obj)} is not a type of the kernel language",
            call_span(),
            help="use float, int, bool, a sized scalar such as float64, a vector or a matrix",
        )
    )


def to_value_type(obj: object) -> t.ValueType:
    """Like `to_ir_type`, for scalars, vectors and matrices: all else is refused (E202)."""
    kind = to_element_type(obj)
    if isinstance(kind, StructType):
        raise LaunchError(
            Diagnostic(
                "E202",
                f"the struct {kind.name} has more than one type of numbers",
                call_span(),
                help="use float, int, bool, a sized scalar such as float64, a vector or a matrix",
            )
        )
    return kind


def to_element_type(obj: object) -> ElementType:
    """Like `to_ir_type`, for the elements of arrays, structs included: arrays are refused."""
    if obj.__class__ is type:
        known = _BY_CLASS.get(obj)
        if known is not None:
            return known
    kind = to_ir_type(obj)
    if isinstance(kind, ARRAYS):
        raise LaunchError(
            Diagnostic("E202", "the dtype of an array cannot itself be an array", call_span())
        )
    return kind


def value_class(kind: ElementType) -> type:
    """The class whose instances are values of a type: `float32`, `vec3f`, ..."""
    if isinstance(kind, StructType):
        found: type = kind.cls
        return found
    if isinstance(kind, t.ScalarType):
        return SCALAR_CLASSES[kind]
    return vector_class(kind)


class DtypeError(LaunchError, TypeError):
    """A type that NumPy has not, or the kernel language. A TypeError too, as Warp raises it."""


def dtype_to_numpy(dtype: object) -> Any:
    """The NumPy scalar class of a scalar type, such as `numpy.float32`, which is a dtype too.

    For vectors and matrices it is that of the components; for structs the dtype of their records.
    Raises DtypeError (E202), a LaunchError and a TypeError, for all else.
    """
    try:
        kind = to_ir_type(dtype)
    except LaunchError as e:
        raise DtypeError(*e.diagnostics) from None
    if isinstance(kind, t.ArrayType):
        kind = kind.element
    if isinstance(kind, StructType):
        return record_dtype(kind)
    if isinstance(kind, ARRAYS):
        raise DtypeError(
            Diagnostic("E202", f"NumPy has no dtype for elements of {kind}", call_span())
        )
    return t.scalar_of(kind).numpy.type


def dtype_from_numpy(dtype: Any) -> type:
    """The scalar class of a NumPy dtype.

    Raises DtypeError (E202), a LaunchError and a TypeError, where there is none: for complex
    numbers, dates, objects, text, and another order of bytes.
    """
    try:
        found = None if dtype is None else np.dtype(dtype)
        kind = None if found is None else to_ir_type(found)
    except (LaunchError, TypeError, ValueError):
        kind = None
    if not isinstance(kind, t.ScalarType):
        raise DtypeError(
            Diagnostic(
                "E202", f"{dtype!r} is not a NumPy dtype of a scalar type", call_span(),
                help="arrays have bool, int8 to int64, uint8 to uint64, float16, bfloat16, "
                     "float32 and float64, in the byte order of the machine",
            )
        )  # fmt: skip
    return SCALAR_CLASSES[kind]


def constant(value: T) -> T:
    """Marks a value as a constant of the kernels that name it. Returns it unchanged."""
    to_ir_type(type(value))
    return value


__all__ = [
    "SCALAR_CLASSES", "Components", "constant", "dtype_from_numpy", "dtype_to_numpy",
    "to_ir_type", "to_value_type", "value_class",
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64",
]  # fmt: skip
