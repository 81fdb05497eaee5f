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


def indented(data: Any, indent: int) -> str:
    """What `json.dumps(data, indent=indent, allow_nan=False)` gives.

    data: of dicts with texts as keys, lists, and plain values; lists that come again are written
    once. Raises ValueError for NaN and infinities.
    """
    return _text(data, indent, 0, {})


def _text(data: Any, indent: int, depth: int, known: dict[tuple[int, int], str]) -> str:
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
        inner = f",{between}".join(
            [f"{text_of(k)}: {_text(x, indent, depth + 1, known)}" for k, x in data.items()]
        )
    else:
        inner = f",{between}".join([_text(x, indent, depth + 1, known) for x in data])
    start, end = "{}" if of_dict else "[]"
    text = f"{start}{between}{inner}{outer}{end}"
    if not of_dict:
        known[id(data), depth] = text
    return text


@cache
def _encoder(indent: int, depth: int) -> json.JSONEncoder:
    """Of what is so deep, on lines of their own."""
    comma = ",\n" + " " * (indent * depth)
    return json.JSONEncoder(separators=(comma, ": "), allow_nan=False)
