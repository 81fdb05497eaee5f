"""Writes JSON with indentation as fast as without.

`json.dumps(data, indent=2)` is written by Python, item by item; its encoder in C knows no
indentation, but takes any separator: it writes all that holds nothing but plain values.
"""

from __future__ import annotations

import json
from functools import cache
from json.encoder import encode_basestring_ascii as text_of
from typing import Any

_FLAT = frozenset((str, int, float, bool, type(None)))


_Known = dict[tuple[int, int], str]
_LINE = json.JSONEncoder(allow_nan=False)


def indented(data: Any, indent: int, lines: frozenset[str] = frozenset()) -> str:
    """What `json.dumps(data, indent=indent, allow_nan=False)` gives.

    data: of dicts with texts as keys, lists, and plain values; lists that come again are written
    once. lines: keys of lists of which each item is a line. Raises ValueError for NaN and
    infinities.
    """
    return _text(data, indent, 0, {}, lines)


def _text(data: Any, indent: int, depth: int, known: _Known, lines: frozenset[str]) -> str:
    """The same of what is so deep. known: lists that were written, by identity and depth."""
    encode = _encoder(indent, depth + 1).encode
    if type(data) in _FLAT or not data:
        return encode(data)
    text = known.get((id(data), depth))
    if text is not None:
        return text
    outer = "\n" + " " * (indent * depth)
    between = outer + " " * indent
    of_dict = type(data) is dict
    if _FLAT.issuperset(map(type, data.values() if of_dict else data)):
        inner = encode(data)[1:-1]
    elif of_dict:
        parts = (f"{text_of(k)}: {_value(k, x, indent, depth + 1, known, lines)}"
                 for k, x in data.items())  # fmt: skip
        inner = f",{between}".join(parts)
    else:
        inner = f",{between}".join([_text(x, indent, depth + 1, known, lines) for x in data])
    start, end = "{}" if of_dict else "[]"
    text = f"{start}{between}{inner}{outer}{end}"
    if not of_dict:
        known[id(data), depth] = text
    return text


def _value(
    key: str, data: Any, indent: int, depth: int, known: _Known, lines: frozenset[str]
) -> str:
    if key not in lines or type(data) is not list or not data:
        return _text(data, indent, depth, known, lines)
    outer = "\n" + " " * (indent * depth)
    between = outer + " " * indent
    return f"[{between}{f',{between}'.join(map(_LINE.encode, data))}{outer}]"


@cache
def _encoder(indent: int, depth: int) -> json.JSONEncoder:
    """Of what is so deep, on lines of their own."""
    comma = ",\n" + " " * (indent * depth)
    return json.JSONEncoder(separators=(comma, ": "), allow_nan=False)
