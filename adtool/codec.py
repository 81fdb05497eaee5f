"""Frozen dataclasses to strict JSON and back, validated against their annotations.

NaN and infinities travel as the strings "nan", "inf" and "-inf". Reading builds only
the dataclasses named by the annotations: no text can make it run anything.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_PLAIN = {int, str, bool, NoneType}
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class CodecError(ValueError):
    """The text is no strict JSON, or does not have the expected form."""


def dumps(value: object, indent: int | None = None) -> str:
    """Strict JSON (ASCII) of a dataclass or of plain data, keys in the order of the fields."""
    return json.dumps(encode(value), indent=indent, allow_nan=False)


def loads(kind: type[T], text: str) -> T:
    """The value of type `kind` written in `text`.

    Unknown keys are ignored, missing ones take the field's default.

    Raises:
        CodecError: naming the place in the text that does not fit.
    """
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise CodecError(f"not JSON: {error}") from None
    value: T = decode(kind, data)
    return value


def encode(value: object) -> Any:
    """Plain JSON data (dict, list, str, int, float, bool, None) of a value."""
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, (tuple, list)):
        if set(map(type, value)) <= _PLAIN:
            return list(value)
        return [encode(v) for v in value]
    if isinstance(value, dict):
        return {str(k): encode(v) for k, v in value.items()}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if hasattr(value, "item"):  # a scalar of numpy
        return encode(value.item())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def decode(kind: Any, data: Any, path: str = "$") -> Any:
    """The value of the annotated type `kind` that `data` (from JSON) stands for."""
    if is_dataclass(kind):
        return _decode_dataclass(kind, data, path)
    origin = get_origin(kind)
    if origin is Literal:
        if data not in get_args(kind) or isinstance(data, bool):
            _fail(path, f"one of {', '.join(map(repr, get_args(kind)))}", data)
        return data
    if origin in (Union, UnionType):
        return _decode_optional(get_args(kind), data, path)
    if origin is tuple:
        return _decode_tuple(get_args(kind), data, path)
    if kind is float:
        return _decode_float(data, path)
    if kind in (int, str, bool, NoneType):
        # `True` is an int to Python, not to JSON
        if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
            _fail(path, kind.__name__, data)
        return data
    raise TypeError(f"no decoder for {kind!r}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode_dataclass(kind: Any, data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        _fail(path, "an object", data)
    hints = _hints(kind)
    values = {}
    for f in fields(kind):
        if f.name in data:
            values[f.name] = decode(hints[f.name], data[f.name], f"{path}.{f.name}")
        elif f.default is MISSING and f.default_factory is MISSING:
            raise CodecError(f"{path}: `{f.name}` is missing")
    return kind(**values)


def _decode_optional(options: tuple[Any, ...], data: Any, path: str) -> Any:
    rest = [o for o in options if o is not NoneType]
    if data is None and len(rest) < len(options):
        return None
    if len(rest) != 1:
        raise TypeError(f"no decoder for a union of {options!r}")
    return decode(rest[0], data, path)


def _decode_tuple(items: tuple[Any, ...], data: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        _fail(path, "a list", data)
    if len(items) == 2 and items[1] is Ellipsis:
        if items[0] in (int, str) and set(map(type, data)) <= {items[0]}:
            return tuple(data)  # most of what is read, and fast
        items = (items[0],) * len(data)
    if len(items) != len(data):
        _fail(path, f"a list of {len(items)}", data)
    return tuple(
        decode(k, v, f"{path}[{i}]") for i, (k, v) in enumerate(zip(items, data, strict=True))
    )


def _decode_float(data: Any, path: str) -> float:
    if isinstance(data, str) and data in _SPECIAL:
        return _SPECIAL[data]
    if isinstance(data, bool) or not isinstance(data, (int, float)):
        _fail(path, "a number", data)
    try:
        value = float(data)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        _fail(path, "a finite number", data)
    return value


def _no_constant(name: str) -> NoReturn:
    raise CodecError(f"{name} is not strict JSON")


def _fail(path: str, expected: str, got: Any) -> NoReturn:
    shown = repr(got)
    shown = shown if len(shown) <= 40 else shown[:37] + "..."
    raise CodecError(f"{path}: expected {expected}, got {shown}")
