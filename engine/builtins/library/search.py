"""Search in sorted arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.builtins import language as wp
from engine.builtins.composite import composite
from engine.lang.types import INT32, ArrayType, ScalarType, Type

_DOC = (
    "lower_bound(a, value), lower_bound(a, begin, end, value): the first index in a sorted array "
    "of one dimension (or in the part of it from begin up to end - 1) whose element is not less "
    "than value; the last index if all are less."
)


def _sorted_array(array: Type, value: Type) -> bool:
    fits = isinstance(array, ArrayType) and array.ndim == 1 and array.element == value
    return fits and isinstance(value, ScalarType) and value.kind != "b"


def _whole(types: Sequence[Type]) -> bool:
    return len(types) == 2 and _sorted_array(*types)


def _part(types: Sequence[Type]) -> bool:
    return len(types) == 4 and _sorted_array(types[0], types[3]) and types[1] == types[2] == INT32


@composite(_DOC, _whole)
def lower_bound(a: Any, value: Any) -> Any:
    return wp.lower_bound(a, 0, a.shape[0], value)


@composite(_DOC, _part, user="lower_bound")
def lower_bound_between(a: Any, begin: Any, end: Any, value: Any) -> Any:
    low = begin
    high = end - 1
    while low < high:
        middle = low + (high - low) // 2
        if a[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
