"""Converts numbers from Python to values of fixed types."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import Any

import numpy as np

NumpyArray = np.ndarray[Any, Any]


def number_kind(dtype: np.dtype[Any]) -> str:
    """The letter of a NumPy dtype: `b`, `i`, `u`, `f`; that of bfloat16 is `f`, too."""
    return "f" if dtype.kind == "V" and dtype.name == "bfloat16" else dtype.kind


@lru_cache(64)
def epsilon(dtype: Any) -> float:
    """The distance from 1 to the next number of a type of float."""
    kind = np.dtype(dtype)
    return 2.0**-7 if kind.name == "bfloat16" else float(np.finfo(kind).eps)


def least(dtype: Any) -> float:
    """The smallest positive number of a type of float."""
    kind = np.dtype(dtype)
    return 2.0**-133 if kind.name == "bfloat16" else float(np.finfo(kind).smallest_subnormal)


def numbers(value: Any) -> NumpyArray:
    """A value as a NumPy array; one of objects where it is no rectangular block of numbers."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError):
        return np.asarray(None)


def exact(value: Any, target: np.dtype[Any]) -> NumpyArray:
    """A value as NumPy has it; but 64-bit integers are not rounded because their signs differ.

    Raises what `numpy.asarray` raises.
    """
    found = np.asarray(value)
    if (
        target.kind in "iu"
        and number_kind(found.dtype) in "fO"
        and isinstance(value, (list, tuple))
    ):
        each = np.asarray(value, object)
        if each.size and all(isinstance(x, (int, np.integer)) for x in each.flat):
            with contextlib.suppress(OverflowError):  # `misfit` says it
                return each.astype(target)
    return found


def misfit(found: NumpyArray, target: np.dtype[Any]) -> str:
    """Why numbers have no place in an integer type, empty where they have one.

    Fractions are cut off; infinity and NaN are no integers.
    """
    if target.kind not in "iu" or not found.size or np.can_cast(found.dtype, target):
        return ""
    info = np.iinfo(target)
    low, high = found.min().item(), found.max().item()  # NaN, if there is one
    if low > int(info.min) - 1 and high < int(info.max) + 1:
        return ""
    bad = high if low > int(info.min) - 1 else low
    return f"{bad} is outside {info.min}..{info.max}"
