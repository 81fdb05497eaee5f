"""Constants of the kernel language as C++ literals with the exact value."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from engine.ir.nodes import Const
from engine.lang.ctypes_ import ctype
from engine.lang.types import BFLOAT16, ScalarType


def literal(c: Const) -> str:
    """A C++ expression of the constant's type, safe as an operand."""
    if isinstance(c.type, ScalarType):
        assert isinstance(c.value, (bool, int, float))
        return scalar_literal(c.value, c.type)
    numbers = list(_flat(c.value))
    if len(numbers) > 16 and all(repr(v) in ("0", "0.0", "False") for v in numbers):
        return f"{ctype(c.type)}{{}}"
    parts = ", ".join(scalar_literal(v, c.type.scalar) for v in numbers)
    return f"{ctype(c.type)}{{{{{parts}}}}}"


def scalar_literal(value: bool | int | float, t: ScalarType) -> str:
    if t.kind == "b":
        return "true" if value else "false"
    if t.kind == "f":
        return _float(float(value), t)
    return _integer(int(value), t)


def _flat(value: object) -> Iterator[bool | int | float]:
    if isinstance(value, tuple):
        for v in value:
            yield from _flat(v)
    else:
        assert isinstance(value, (bool, int, float))
        yield value


def _float(value: float, t: ScalarType) -> str:
    with np.errstate(over="ignore"):
        rounded = t.numpy.type(value)
    name = ctype(t)
    if math.isnan(rounded):
        return f"eng::quiet_nan<{name}>()"
    if math.isinf(rounded):
        return f"eng::infinity<{name}>()" if rounded > 0 else f"(-eng::infinity<{name}>())"
    if t.bits == 16:
        if t == BFLOAT16:
            return f"eng::bfloat(0x{rounded.view(np.uint16):04x})"
        return f"eng::half(0x{rounded.view(np.uint16):04x})"
    # The shortest decimal that reads back as the same number.
    text = np.format_float_scientific(rounded, trim="0").replace("e+00", "")
    text += "f" if t.bits == 32 else ""
    return f"({text})" if text.startswith("-") else text


def _integer(value: int, t: ScalarType) -> str:
    value &= (1 << t.bits) - 1
    if t.kind == "u":
        text = f"{value}ull" if t.bits == 64 else f"{value}u"
    else:
        if value >> (t.bits - 1):
            value -= 1 << t.bits
        suffix = "ll" if t.bits == 64 else ""
        lowest = value == -(1 << (t.bits - 1)) and t.bits >= 32
        # C has no negative literals: the lowest value cannot be written directly.
        text = f"({value + 1}{suffix} - 1)" if lowest else f"{value}{suffix}"
        if value < 0 and not lowest:
            text = f"({text})"
    return text if t.bits == 32 else f"{ctype(t)}({text})"
