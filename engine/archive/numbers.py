"""Numbers as text without loss of bits, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.archive.data import ArchiveError
from engine.lang.types import ScalarType, ValueType, scalar_of, shape_of

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_FLOAT = re.compile(r"-?(?:0x[01](?:\.[0-9a-f]{1,13})?p[+-][0-9]{1,4}|inf|nan)")


def texts(value: Any, t: ValueType) -> tuple[str, ...]:
    """The components of a value of a type, flat."""
    scalar = scalar_of(t)
    if shape_of(t):
        value = np.asarray(_plain(value)).reshape(-1).tolist()
    else:
        value = [value]
    return tuple(_text(v, scalar) for v in value)


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def _text(value: Any, scalar: ScalarType) -> str:
    if scalar.kind == "b":
        return "true" if value else "false"
    if scalar.kind == "f":
        return float(value).hex()
    return str(int(value))


def components(numbers: Sequence[str], t: ValueType) -> list[Any]:
    """The components as Python numbers. Raises ArchiveError where they do not fit the type."""
    count = int(np.prod(shape_of(t), dtype=np.int64))
    if len(numbers) != count:
        raise ArchiveError(f"{len(numbers)} numbers for a {t}")
    scalar = scalar_of(t)
    return [_number(x, scalar) for x in numbers]


def constant(numbers: Sequence[str], t: ValueType) -> Any:
    """The value as the IR has constants: a number, or nested tuples."""
    flat, shape = components(numbers, t), shape_of(t)
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return tuple(flat)
    return tuple(tuple(flat[i : i + shape[1]]) for i in range(0, len(flat), shape[1]))


def _number(text: str, scalar: ScalarType) -> bool | int | float:
    if scalar.kind == "b":
        if text in ("true", "false"):
            return text == "true"
    elif scalar.kind == "f":
        if _FLOAT.fullmatch(text):
            return float.fromhex(text)
    elif _INTEGER.fullmatch(text):
        value = int(text)
        low = -(1 << (scalar.bits - 1)) if scalar.kind == "i" else 0
        if low <= value < low + (1 << scalar.bits):
            return value
    raise ArchiveError(f"{text[:40]!r} is not a {scalar}")
