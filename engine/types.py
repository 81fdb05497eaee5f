"""Constructors of types, and predicates: `types.vector(length=5, dtype=float)`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from engine.lang import names as _names
from engine.lang.factories import (
    is_composite,
    is_float,
    is_int,
    is_matrix,
    is_quaternion,
    is_scalar,
    is_transformation,
    is_value,
    is_vector,
    kind_of,
    matrix,
    quaternion,
    transformation,
    type_is_composite,
    type_is_float,
    type_is_int,
    type_is_matrix,
    type_is_quaternion,
    type_is_scalar,
    type_is_transformation,
    type_is_value,
    type_is_vector,
    type_repr,
    type_size,
    type_size_in_bytes,
    types_equal,
    vector,
)
from engine.lang.scalars import SCALAR_CLASSES
from engine.lang.structs import StructType
from engine.lang.types import BFLOAT16, scalar_of
from engine.lang.values import (
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    to_ir_type,
    to_value_type,
    uint8,
    uint16,
    uint32,
    uint64,
)
from engine.lang.values import bool as _bool
from engine.lang.vectors import Components as _Components
from engine.runtime.annotation import ArrayAnnotation
from engine.runtime.array import array

int_types = (int8, uint8, int16, uint16, int32, uint32, int64, uint64)
float_types = (float16, bfloat16, float32, float64)
scalar_types = (*int_types, *float_types)
scalar_and_bool_types = (*scalar_types, _bool)
# Types whose elements Warp's atomics do not take; here they do.
non_atomic_types = (int8, uint8, int16, uint16)
# The vectors, matrices, quaternions and transforms that have names.
vector_types = tuple(
    dict.fromkeys(
        getattr(_names, n) for n in _names.__all__ if issubclass(getattr(_names, n), _Components)
    )
)
# Scalar class -> NumPy scalar type, and back. NumPy has no bfloat16: its bits are uint16 there.
warp_type_to_np_dtype = MappingProxyType(
    {c: np.uint16 if k is BFLOAT16 else k.numpy.type for k, c in SCALAR_CLASSES.items()}
)
np_dtype_to_warp_type = MappingProxyType(
    {
        key: c
        for k, c in SCALAR_CLASSES.items()
        if k is not BFLOAT16
        for key in (k.numpy.type, k.numpy)
    }
)


def type_scalar_type(dtype: Any) -> Any:
    """The scalar class that a type is made of: of `vec3d` float64, of `array(dtype=int)` int32.

    Raises LaunchError (E202) for what is no type of numbers.
    """
    kind = to_ir_type(dtype)
    return SCALAR_CLASSES[scalar_of(to_value_type(getattr(kind, "element", kind)))]


def type_is_struct(obj: Any) -> bool:
    """True for classes made by `@struct`."""
    return isinstance(kind_of(obj), StructType)


def is_struct(x: Any) -> bool:
    """True for values of a class made by `@struct`."""
    return type_is_struct(type(x))


def type_is_array(obj: Any) -> bool:
    """True for the class of arrays."""
    return isinstance(obj, type) and issubclass(obj, array)


def is_array(x: Any) -> bool:
    """True for arrays, and for annotations such as `array(dtype=float)`."""
    return isinstance(x, (array, ArrayAnnotation))


__all__ = [
    "float_types", "int_types", "is_array", "is_composite", "is_float", "is_int", "is_matrix",
    "is_quaternion", "is_scalar", "is_struct", "is_transformation", "is_value", "is_vector",
    "matrix", "non_atomic_types", "np_dtype_to_warp_type", "quaternion", "scalar_and_bool_types",
    "scalar_types", "transformation", "type_is_array", "type_is_composite", "type_is_float",
    "type_is_int", "type_is_matrix", "type_is_quaternion", "type_is_scalar", "type_is_struct",
    "type_is_transformation", "type_is_value", "type_is_vector", "type_repr", "type_scalar_type",
    "type_size", "type_size_in_bytes", "types_equal", "vector", "vector_types",
    "warp_type_to_np_dtype",
]  # fmt: skip
