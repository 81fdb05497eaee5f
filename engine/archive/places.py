"""Places in source files, with files by number."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from engine.archive.data import NOWHERE, ArchiveError, Place
from engine.diagnostics import UNKNOWN, Span

T = TypeVar("T")

_LARGEST = 1 << 31
# It goes into `#line` directives, and to terminals.
_FILE = re.compile(r"[^\x00-\x1f\x7f\"\u2028\u2029]{1,4096}")


class FileTable:
    """Numbers files, and names them as `rename` says."""

    def __init__(self, rename: Callable[[str], str]) -> None:
        self.files: list[str] = []
        # As the program knew them, in the order of `files`.
        self.originals: list[str] = []
        self._known: dict[str, int] = {}
        self._rename = rename

    def name(self, file: str) -> str:
        """The name that a file has in the archive."""
        return self.files[self._number(file)]

    def _number(self, file: str) -> int:
        found = self._known.get(file)
        if found is None:
            name = re.sub(r'[\x00-\x1f\x7f"\u2028\u2029]', "?", self._rename(file))[:4096] or "?"
            while name in self.files:  # two files that would be named alike
                name += "'"
            found = self._known[file] = len(self.files)
            self.files.append(name)
            self.originals.append(file)
        return found

    def place(self, span: Span | None) -> Place:
        """A place; `NOWHERE` for none."""
        if span is None or span == UNKNOWN:
            return NOWHERE
        return self._number(span.file), span.line, span.col, span.end_line, span.end_col

    def within(self, value: T) -> T:
        """Data with all places in it renamed."""
        return _mapped(value, lambda s: replace(s, file=self.name(s.file)))


class FileReader:
    """Makes places of numbers. Raises ArchiveError."""

    def __init__(self, files: Sequence[str]) -> None:
        for f in files:
            if _FILE.fullmatch(f) is None:
                raise ArchiveError(f"{f[:40]!r} is not a file name")
        self._files = files

    def span(self, place: Place) -> Span | None:
        """A place; None for nowhere."""
        file, *numbers = place
        if file == -1:
            return None
        if not 0 <= file < len(self._files):
            raise ArchiveError(f"there is no file {file}")
        if not all(0 <= x < _LARGEST for x in numbers):
            raise ArchiveError("a line or column is out of range")
        return Span(self._files[file], *numbers)

    def known(self, value: T) -> T:
        """Data, in which all places are in files that are known."""

        def same(span: Span) -> Span:
            if span.file not in self._files and span != UNKNOWN:
                raise ArchiveError(f"{span.file[:40]!r} is not among the files")
            return span

        return _mapped(value, same)


def _mapped(value: T, f: Callable[[Span], Span]) -> T:
    found: Any = _changed(value, f)
    return found  # type: ignore[no-any-return]


def _changed(value: Any, f: Callable[[Span], Span]) -> Any:
    if isinstance(value, Span):
        return f(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_changed(v, f) for v in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {x.name: _changed(getattr(value, x.name), f) for x in fields(value)}
        return replace(value, **changed)
    return value
