"""The text of a Python function, taken when its decorator runs.

Files change while a program runs: they are edited, reloaded, written anew. So a decorator notes
which texts the function's file has had so far, and lowering takes the one whose compiled form is
the function's own code. That comparison is left out where it is sure to succeed: for a file that
nobody has touched since the program began. Text without a file (`<string>`, a notebook cell) is
never believed by its name alone.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from engine.classes import dataclass
from engine.late import STARTED
from engine.reading import getlines

# Texts of one file that are remembered.
_MAX_VERSIONS = 8
# Where a call begins and ends in the text of its function.
Place = tuple[int, int, int | None, int | None]
FUTURE = 0
for _name in __future__.all_feature_names:
    FUTURE |= getattr(__future__, _name).compiler_flag


class Version:
    """One text of a file, and the functions in it. Equality is identity."""

    __slots__ = ("_codes", "file", "lines")

    def __init__(self, file: str, lines: list[str]) -> None:
        self.file = file
        self.lines = lines
        self._codes: dict[int, dict[tuple[str, int], list[CodeType]]] = {}

    def _functions(self, code: CodeType) -> list[CodeType]:
        """The functions of that name and line."""
        flags = code.co_flags & FUTURE
        if flags not in self._codes:
            found: dict[tuple[str, int], list[CodeType]] = {}
            for c in _compiled("".join(self.lines), self.file, flags):
                found.setdefault((c.co_name, c.co_firstlineno), []).append(c)
            self._codes[flags] = found
        return self._codes[flags].get((code.co_name, code.co_firstlineno), [])

    def holds(self, code: CodeType) -> bool:
        """Whether the text compiles to this function."""
        return code in self._functions(code)

    def resembles(self, code: CodeType) -> bool:
        """Whether it may be the text of a function that an import hook has added to."""
        return any(
            set(c.co_varnames) <= set(code.co_varnames)
            and set(c.co_names) <= set(code.co_names)
            and set(map(repr, _plain(c))) <= set(map(repr, _plain(code)))
            for c in self._functions(code)
        )


def _plain(code: CodeType) -> list[object]:
    return [c for c in code.co_consts if not isinstance(c, CodeType)]


def _compiled(text: str, file: str, flags: int) -> Iterator[CodeType]:
    """Every function of a text."""
    try:
        allowed = flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        pending = [compile(text, file, "exec", flags=allowed, dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while pending:
        code = pending.pop()
        yield code
        pending += [c for c in code.co_consts if isinstance(c, CodeType)]


def place_of(node: ast.Call) -> Place:
    """The place of a call: the same each time that the text is read."""
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


@dataclass(frozen=True, slots=True)
class FunctionText:
    """What a decorator knows of a function's text.

    versions: of its file, the newest first. sure: whether the newest needs no comparison.
    hooked: whether the module came from an import hook, which may change the code. statics:
    what its calls of `static` gave then, by their places (see `declared_text`).
    """

    code: CodeType
    versions: tuple[Version, ...]
    sure: bool = False
    hooked: bool = False
    statics: Mapping[Place, object] = field(default_factory=dict, compare=False)

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.code.co_filename

    @property
    def newest(self) -> Version | None:
        """The text that the file had when the decorator ran."""
        return self.versions[0] if self.versions else None

    @property
    def has_file(self) -> bool:
        """Whether the name is that of a file, which has one text at a time."""
        return not _is_unnamed(self.file)

    @property
    def lines(self) -> list[str] | None:
        """Lines of the file as the function was compiled from; None where none fit."""
        if self.sure:
            return self.versions[0].lines
        for fits in (Version.holds, Version.resembles)[: 1 + self.hooked]:
            for version in self.versions:
                if fits(version, self.code):
                    return version.lines
        return None


# The texts that files have had, the newest last.
_versions: dict[str, list[Version]] = {}


def function_text(func: Callable[..., Any]) -> FunctionText | None:
    """What is known of a function's text now; None for what is no Python function."""
    func = inspect.unwrap(func)
    code = getattr(func, "__code__", None)
    if code is None:
        return None
    names = getattr(func, "__globals__", {})
    file = code.co_filename
    known = _versions.setdefault(file, [])
    lines = _source_lines(file, names)
    if lines and not (known and known[-1].lines is lines):
        if not (known and known[-1].lines == lines):
            known.append(Version(file, lines))
            del known[:-_MAX_VERSIONS]
    unnamed = _is_unnamed(file)
    loader = names.get("__loader__")
    hooked = loader is not None and not unnamed and type(loader) is not SourceFileLoader
    sure = len(known) == 1 and not unnamed and not _touched(file)
    return FunctionText(code, tuple(reversed(known)), sure, hooked)


def _is_unnamed(file: str) -> bool:
    return file.startswith("<") and file.endswith(">")


def _touched(file: str) -> bool:
    """Whether a file was written after the program began."""
    entry = linecache.cache.get(file)
    when = entry[1] if entry is not None and len(entry) > 1 else None
    return isinstance(when, (int, float)) and when >= STARTED


def _source_lines(file: str, names: dict[str, Any]) -> list[str]:
    """Lines of a file as it is now; empty where there are none."""
    linecache.checkcache(file)
    lines = getlines(file, names)
    if lines or file != "<string>" or names.get("__name__") != "__main__":
        return lines
    if "__file__" in names:  # a script, which another program may run by `python -c`
        return lines
    text = command_line_text(sys.orig_argv)
    if text is None:
        return []
    lines = [line + "\n" for line in text.splitlines()]
    # Diagnostics and tracebacks read their snippets from here.
    linecache.cache[file] = (len(text), None, lines, file)
    return lines


# Options of Python that take a value, in the same word or the next.
_VALUED = "mWXc"
_VALUED_LONG = ("--check-hash-based-pycs",)


def command_line_text(words: list[str]) -> str | None:
    """The text behind `python -c`, which older Pythons do not enter in linecache."""
    rest = iter(words[1:])
    for word in rest:
        if word in _VALUED_LONG:
            next(rest, None)
        elif word.startswith("--"):
            continue
        elif not word.startswith("-") or word == "-":
            return None  # a script
        else:
            for k, letter in enumerate(word[1:], 2):
                if letter in _VALUED:
                    value = word[k:] or next(rest, None)
                    if letter in "mc":
                        return value if letter == "c" else None
                    break
    return None
