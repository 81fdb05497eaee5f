"""Types made to measure, and questions about types: `types.vector(length=5, dtype=float)`."""

from __future__ import annotations

from typing import Any

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
from engine.runtime.annotation import ArrayAnnotation
from engine.runtime.array import array


def type_is_array(obj: Any) -> bool:
    """True for the class of arrays."""
    return isinstance(obj, type) and issubclass(obj, array)


def is_array(x: Any) -> bool:
    """True for arrays, and for annotations such as `array(dtype=float)`."""
    return isinstance(x, (array, ArrayAnnotation))


__all__ = [
    "is_array", "is_composite", "is_float", "is_int", "is_matrix", "is_quaternion", "is_scalar",
    "is_transformation", "is_value", "is_vector", "matrix", "quaternion", "transformation",
    "type_is_array", "type_is_composite", "type_is_float", "type_is_int", "type_is_matrix",
    "type_is_quaternion", "type_is_scalar", "type_is_transformation", "type_is_value",
    "type_is_vector", "type_repr", "type_size", "type_size_in_bytes", "types_equal", "vector",
]  # fmt: skip
