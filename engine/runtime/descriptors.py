"""Arrays and structs as C sees them: `value.__ctype__()`, and arguments that come that way.

An array is its address, that of its gradient, shape, strides and dimensions, as in records of
structs (`engine.lang.structs.record_dtype`).
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from engine.diagnostics import LaunchError
from engine.lang.structs import (
    StructArrayType,
    StructType,
    UserType,
    record_dtype,
)
from engine.lang.types import FLOAT32, ArrayType
from engine.runtime.annotation import element_info
from engine.runtime.array import array
from engine.runtime.links import array_at, descriptor, from_record
from engine.runtime.pack import Mismatch, shown_value

ARRAY = record_dtype(StructType("array_t", {"of": ArrayType(FLOAT32, 1)}))["of"]


def ctype_of(value: Any) -> ctypes.Structure:
    """A struct or an array as a C structure; it refers to arrays by their addresses."""
    if isinstance(value, array):
        parts = np.array(descriptor(value), ARRAY)
    else:
        parts = np.array(value.numpy_value(), record_dtype(value.__ir_type__))
    made: ctypes.Structure = _class(parts.dtype).from_buffer_copy(parts.tobytes())
    return made


@cache
def _class(dtype: np.dtype[Any]) -> Any:
    return np.ctypeslib.as_ctypes_type(dtype)


def value_of(given: Any, kind: UserType) -> Any:
    """An argument given as a C structure, as launches take it. Raises Mismatch."""
    if isinstance(given, ctypes._SimpleCData):
        return given.value
    if not isinstance(given, ctypes.Structure):
        return given
    if isinstance(kind, StructType):
        dtype = record_dtype(kind)
    elif isinstance(kind, (ArrayType, StructArrayType)):
        dtype = ARRAY
    else:
        raise Mismatch("E202", shown_value(given))
    data = bytes(given)
    if len(data) != dtype.itemsize:
        raise Mismatch("E202", f"a C structure of {len(data)} bytes",
                       f"a value of the type has {dtype.itemsize}")  # fmt: skip
    record = np.frombuffer(data, dtype)[0]
    if isinstance(kind, StructType):
        return from_record(kind, record)
    assert isinstance(kind, (ArrayType, StructArrayType))
    try:
        return array_at(kind, record)
    except LaunchError:  # an address from elsewhere
        n = int(record["ndim"])
        shape, strides = (tuple(record[x].tolist()[:n]) for x in ("shape", "strides"))
        of = element_info(kind.element).dtype
        return array(ptr=int(record["data"]), dtype=of, shape=shape, strides=strides)
