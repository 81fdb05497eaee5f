"""Source texts that a capture holds; files of this machine are never used in their place.

A capture names files as its program knew them. If `linecache` looked for them, lines of any file
of this machine would be shown, and a device or a pipe would be read for ever.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import adtool
from engine.reading import getlines

_NAMES = ("file", "call_file", "defined")
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(str(adtool.__file__))))
_OWN = tuple(os.path.join(_HOME, package, "") for package in ("adtool", "engine"))


def tell(name: str, text: str) -> None:
    """Has `linecache` know a file of a capture. The tool's own files stay what they are."""
    if not _is_own(name):
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)


def bar(names: Iterable[str | None]) -> None:
    """Has `linecache` look for no files of these names: what is not told has no lines."""
    for name in names:
        if name and not _is_told(name) and not _is_own(name):
            linecache.cache[name] = (0, None, [], name)


def bar_in(value: object) -> None:
    """The same for all files that data names."""
    found: set[str] = set()
    _collect(value, found)
    bar(found)


def told(name: str) -> list[str] | None:
    """The lines of a file that is not looked for; None for others."""
    return getlines(name) if _is_told(name) else None


def _is_told(name: str) -> bool:
    entry = linecache.cache.get(name)
    return entry is not None and len(entry) > 1 and entry[1] is None


def _is_own(name: str) -> bool:
    return os.path.abspath(name).startswith(_OWN)


def _collect(value: object, found: set[str]) -> None:
    todo: list[Any] = [value]
    while todo:
        x = todo.pop()
        if isinstance(x, tuple):
            todo += [v for v in x if type(v) not in _PLAIN]
            if len(x) == 2 and isinstance(x[0], str) and isinstance(x[1], int):
                found.add(x[0])  # a place: file and line
        elif is_dataclass(x) and not isinstance(x, type):
            for name in _names(type(x)):
                v = getattr(x, name)
                if name in _NAMES and isinstance(v, str):
                    found.add(v)
                elif type(v) not in _PLAIN:
                    todo.append(v)


_PLAIN = (int, str, float, bool, type(None))


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))
