"""JSON with indentation, written as fast as without it.

`json.dumps(data, indent=2)` is written by Python, item by item; its encoder in C knows no
indentation, but takes any separator: it writes all that holds nothing but plain values.
"""

from __future__ import annotations

import json
from functools import cache
from json.encoder import encode_basestring_ascii as text_of
from typing import Any

_FLAT = frozenset((str, int, float, bool, type(None)))


def indented(data: Any, indent: int) -> str:
    """What `json.dumps(data, indent=indent, allow_nan=False)` gives.

    data: of dicts with texts as keys, lists, and plain values; lists that come again are written
    once. Raises ValueError for NaN and infinities.
    """
    if type(data) in _FLAT or not data:
        return _encoder(indent, 0).encode(data)
    return _text(data, indent, 0, {})


def _text(data: Any, indent: int, depth: int, known: dict[tuple[int, int], str]) -> str:
    """What a dict or list with something in it is written as.

    known: lists that were written, by identity and depth.
    """
    at = (id(data), depth)
    text = known.get(at)
    if text is None:
        parts: list[str] = []
        _write(data, indent, depth, parts, known)
        text = "".join(parts)
        if type(data) is list:
            known[at] = text
    return text


def _write(
    data: Any, indent: int, depth: int, parts: list[str], known: dict[tuple[int, int], str]
) -> None:
    outer = "\n" + " " * (indent * depth)
    between = outer + " " * indent
    of_dict = type(data) is dict
    start, end = "{}" if of_dict else "[]"
    values = data.values() if of_dict else data
    encode = _encoder(indent, depth + 1).encode
    if _FLAT.issuperset(map(type, values)):
        parts += (start, between, encode(data)[1:-1], outer, end)
        return
    parts.append(start)
    before = between
    for key, value in data.items() if of_dict else zip(data, data, strict=True):
        parts.append(before)
        if of_dict:
            parts += (text_of(key), ": ")
        if type(value) in _FLAT or not value:
            parts.append(encode(value))
        else:
            parts.append(_text(value, indent, depth + 1, known))
        before = "," + between
    parts += (outer, end)


@cache
def _encoder(indent: int, depth: int) -> json.JSONEncoder:
    """Of what is so deep, on lines of their own."""
    comma = ",\n" + " " * (indent * depth)
    return json.JSONEncoder(separators=(comma, ": "), allow_nan=False)
