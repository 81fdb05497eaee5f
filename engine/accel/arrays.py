"""New arrays like others that were made before, by compiled code."""

from __future__ import annotations

from typing import Any

from engine.accel.launcher import maker
from engine.lang.scalars import float32, float64, int32, int64
from engine.lang.values import to_element_type
from engine.runtime.annotation import ElementInfo, element_info
from engine.runtime.array import array
from engine.runtime.device import HOST

# Types that are made again and again, with numbers as elements.
_NUMBERS = frozenset({float, int, float32, float64, int32, int64})
_infos: dict[Any, ElementInfo] = {}


def try_zeros(shape: Any, dtype: Any, requires_grad: bool) -> array | None:
    """An array of zeros like one that was made before; None where there is none."""
    functions = maker.functions
    if functions is None:
        return None
    try:
        info = _infos.get(dtype)
    except TypeError:
        return None
    if info is None:
        if dtype in _NUMBERS:
            _infos[dtype] = element_info(to_element_type(dtype))
        return None
    wanted = bool(requires_grad) and info.floating
    if requires_grad and not wanted:
        return None
    made: array | None = functions.zeros(info.models, shape, HOST, wanted)
    return made
