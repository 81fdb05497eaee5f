"""Tells whether a text is JSON of a given type, without building the value.

What does not fit is refused before its data take any memory: Python's objects take several times
their text. Strict where `adtool.codec` is, which reads the text afterwards; looser elsewhere
(words and numbers that are not allowed).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from engine.autograd import Fact

_SPACE = re.compile(r"[ \t\n\r]*")
_INT = re.compile(r"-?(?:0|[1-9][0-9]*)(?![0-9.eE])")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"true|false|null")
_SHOWN = 40

Walker = Callable[[str, int], int]  # from where a value begins to where it ends


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """The types of a dataclass's fields. A program may have a module of its module's name."""
    module = __import__(kind.__module__, globals(), None, ("",))
    return get_type_hints(kind, vars(module))


class Unfit(Exception):
    """Something that does not fit. path: where, the innermost place first."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.path: list[str] = []


def fit(kind: Any, text: str) -> None:
    """Walks through a text that is to be JSON of a type. Raises Unfit, or RecursionError."""
    end = _spaces(text, _walker(kind)(text, _spaces(text, 0)))
    if end != len(text):
        raise Unfit(f"not JSON: extra data at character {end}")


@cache
def _walker(kind: Any) -> Walker:
    if is_dataclass(kind):
        return _of_dataclass(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _string if all(isinstance(a, str) for a in args) else _value
    if origin in (Union, UnionType):
        (rest,) = (a for a in args if a is not NoneType)
        return _of_optional(_walker(rest))
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return _of_list(args[0])
        return _of_list(*args, count=len(args))
    if kind is Fact:
        return _value  # of several classes: it is looked at when it is read
    return {float: _float, int: _int, str: _string, bool: _bool, NoneType: _none}[kind]


def _of_dataclass(kind: Any) -> Walker:
    hints = hints_of(kind)
    required = [
        f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING
    ]
    inner: dict[str, Walker] = {}  # made when it is first needed: types may name themselves

    def walk(text: str, at: int) -> int:
        if text[at : at + 1] != "{":
            raise _wrong("an object", text, at)
        if not inner:
            inner.update((f.name, _walker(hints[f.name])) for f in fields(kind))
        seen: set[str] = set()
        end = _object(text, at, inner, seen)
        for name in required:
            if name not in seen:
                raise Unfit(f"`{name}` is missing")
        return end

    return walk


def _object(text: str, at: int, inner: dict[str, Walker], seen: set[str]) -> int:
    """An object with walkers for some of its names, and which of those it has."""
    at = _spaces(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        name, at = _scanned(text, at)
        at = _spaces(text, at)
        if text[at : at + 1] != ":":
            raise _wrong("`:`", text, at)
        at = _spaces(text, at + 1)
        walker = inner.get(name)
        if walker is not None:
            seen.add(name)
        try:
            at = (walker or _value)(text, at)
        except Unfit as found:
            found.path.append(f".{name[:_SHOWN]}")
            raise
        at = _spaces(text, at)
        mark = text[at : at + 1]
        if mark == "}":
            return at + 1
        if mark != ",":
            raise _wrong("`,` or `}`", text, at)
        at = _spaces(text, at + 1)


def _of_list(*items: Any, count: int = -1) -> Walker:
    walkers: list[Walker] = []

    def walk(text: str, at: int) -> int:
        if text[at : at + 1] != "[":
            raise _wrong("a list", text, at)
        if not walkers:
            walkers.extend(map(_walker, items))
        return _list(text, at, walkers, count)

    return walk


def _list(text: str, at: int, walkers: list[Walker], count: int) -> int:
    """A list of so many values, each with its walker; of any number of the same kind for -1."""
    at = _spaces(text, at + 1)
    seen = 0
    if text[at : at + 1] == "]":
        if count > 0:
            raise Unfit(f"expected a list of {count}, got one of 0")
        return at + 1
    while True:
        if seen == count:
            raise Unfit(f"expected a list of {count}, got more")
        try:
            at = walkers[0 if count < 0 else seen](text, at)
        except Unfit as found:
            found.path.append(f"[{seen}]")
            raise
        seen += 1
        at = _spaces(text, at)
        mark = text[at : at + 1]
        if mark == "]":
            if -1 < count != seen:
                raise Unfit(f"expected a list of {count}, got one of {seen}")
            return at + 1
        if mark != ",":
            raise _wrong("`,` or `]`", text, at)
        at = _spaces(text, at + 1)


def _of_optional(walker: Walker) -> Walker:
    return lambda text, at: at + 4 if text.startswith("null", at) else walker(text, at)


def _value(text: str, at: int) -> int:
    """A value of any kind: under a name that means nothing here."""
    mark = text[at : at + 1]
    if mark == "{":
        return _object(text, at, {}, set())
    if mark == "[":
        return _list(text, at, [_value], -1)
    if mark == '"':
        return _string(text, at)
    found = _WORD.match(text, at)
    return found.end() if found else _matched(_NUMBER, "a value", text, at)


def _string(text: str, at: int) -> int:
    return _scanned(text, at)[1]


def _float(text: str, at: int) -> int:
    if text[at : at + 1] == '"':  # "nan", "inf"
        return _string(text, at)
    return _matched(_NUMBER, "a number", text, at)


def _int(text: str, at: int) -> int:
    return _matched(_INT, "int", text, at)


def _bool(text: str, at: int) -> int:
    found = _WORD.match(text, at)
    if found is None or found[0] == "null":
        raise _wrong("bool", text, at)
    return found.end()


def _none(text: str, at: int) -> int:
    if not text.startswith("null", at):
        raise _wrong("null", text, at)
    return at + 4


def _matched(pattern: re.Pattern[str], what: str, text: str, at: int) -> int:
    found = pattern.match(text, at)
    if found is None:
        raise _wrong(what, text, at)
    return found.end()


def _scanned(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise _wrong("str", text, at)
    try:
        found: tuple[str, int] = scanstring(text, at + 1, True)
    except JSONDecodeError as error:
        raise Unfit(f"not JSON: {error}") from None
    return found


def _spaces(text: str, at: int) -> int:
    if text[at : at + 1] in " \t\n\r":
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
    return at


def _wrong(expected: str, text: str, at: int) -> Unfit:
    if at >= len(text):
        return Unfit(f"not JSON: it ends where {expected} is expected")
    shown = text[at : at + _SHOWN] + ("..." if len(text) > at + _SHOWN else "")
    return Unfit(f"expected {expected}, got {shown!r}")
