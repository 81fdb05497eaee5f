"""Replaces the content of program files for one check, without writing them.

Nothing else of the program changes: names, places and the search for modules stay as they are.
"""

from __future__ import annotations

import importlib.machinery
import linecache
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from engine.classes import dataclass
from engine.reading import decoded, read


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A file with its content, each byte as the character of its number."""

    file: str
    content: str

    @property
    def data(self) -> bytes:
        """The content."""
        return self.content.encode("latin-1")


_contents: ContextVar[dict[str, bytes] | None] = ContextVar("overlay", default=None)


def overlaid(file: str, data: bytes) -> Overlaid:
    """A file with another content."""
    return Overlaid(file, data.decode("latin-1"))


def content(path: str) -> bytes | None:
    """What a file is to hold in place of what it holds; None where it is as on disk."""
    known = _contents.get()
    return known.get(_key(path)) if known else None


def lines(path: str) -> list[str]:
    """The lines of a Python file. Raises OSError, SyntaxError, UnicodeDecodeError."""
    data = content(path)
    return decoded(read(path) if data is None else data)


def enter(name: str, data: bytes) -> None:
    """Has this process know a text that no file holds, by a name such as `<stdin>`, from now on."""
    _contents.set({**(_contents.get() or {}), _key(name): data})
    # What is no text is told by who compiles it.
    with suppress(SyntaxError, UnicodeDecodeError):
        _tell(name, data)


def _key(path: str) -> str:
    """What a file is known by here: its real path. A name that is no file's stays as it is."""
    return path if path.startswith("<") else os.path.realpath(path)


@contextmanager
def told(files: Sequence[Overlaid]) -> Iterator[None]:
    """Within the block, these files are known with these contents to whoever looks at sources."""
    if not files:
        yield
        return
    before = {f.file: linecache.cache.pop(f.file, None) for f in files}
    token = _contents.set({_key(f.file): f.data for f in files})
    try:
        for f in files:
            _tell(f.file, f.data)
        yield
    finally:
        _contents.reset(token)
        for name, entry in before.items():
            linecache.cache.pop(name, None)
            if entry is not None:
                linecache.cache[name] = entry


def install(files: Sequence[Overlaid]) -> None:
    """Has this process import these files with these contents, from now on."""
    if not files:
        return
    known = {os.path.realpath(f.file): f.data for f in files}
    _contents.set(known)
    loader: Any = importlib.machinery.SourceFileLoader
    read, stats = loader.get_data, loader.path_stats

    def get_data(self: Any, path: Any) -> Any:
        data = known.get(os.path.realpath(path))
        if data is None:
            return read(self, path)
        _tell(str(path), data)
        return data

    def path_stats(self: Any, path: Any) -> Any:
        if os.path.realpath(path) in known:
            raise OSError("its compiled form has other content")
        return stats(self, path)

    loader.get_data, loader.path_stats = get_data, path_stats
    for f in files:
        _tell(f.file, f.data)


def _tell(name: str, data: bytes) -> None:
    kept = [line if line.endswith("\n") else line + "\n" for line in decoded(data)]
    # Without a time, which would have it compared with the file.
    linecache.cache[name] = (len(data), None, kept, name)
