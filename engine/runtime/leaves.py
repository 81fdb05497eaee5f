"""An array of structs as one array for each leaf field: the same memory, the struct's stride."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.lang.structs import StructType, value_leaves
from engine.lang.types import ValueType, is_float
from engine.runtime import views
from engine.runtime.annotation import element_info
from engine.runtime.device import HOST

if TYPE_CHECKING:
    from engine.runtime.array import array

_AT = "leaf"


def leaf_arrays(a: array) -> list[array]:
    """The values in an array of structs, in order. Their gradients are those of its gradient."""
    return [leaf_array(a, x.type, x.offset) for x in _leaves(a._ir.element)]


def leaf_array(a: array, kind: ValueType, offset: int) -> array:
    """The array of one value in each struct, `offset` bytes into it."""
    part = a._field(element_info(kind), offset)
    if is_float(kind):
        part._origin = (a, _selecting(offset, kind.size, a._ir.element.size))
        part._flag = True  # whether it requires a gradient, its origin says
    return part


@cache
def _leaves(t: StructType) -> list[Any]:
    return list(value_leaves(t))


@cache
def _selecting(offset: int, size: int, stride: int) -> views.Operation:
    record = np.dtype(
        {"names": [_AT], "formats": [(np.void, size)], "offsets": [offset], "itemsize": stride}
    )

    def operation(v: Any) -> Any:
        return v.view(record)[_AT]

    return operation


def float_parts(a: array) -> list[np.ndarray[Any, Any]]:
    """What of an array can carry a derivative, as NumPy views: its leaves where it has any."""
    if a._info.numpy.names is None:
        return [a._parts]
    return [leaf._parts for leaf in leaf_arrays(a) if is_float(leaf._ir)]


def without_integers(a: array, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of records in which every field that has no derivative is zero."""
    out = type(a)._allocate(a.shape, a._ir.element, False, HOST)
    out._parts[...] = values
    for leaf in leaf_arrays(out):
        if not is_float(leaf._ir):
            leaf._parts[...] = 0
    return out._parts
