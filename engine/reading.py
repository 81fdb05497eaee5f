"""Reads files of the user: regular files only, of bounded size, without waiting.

While a program runs, its files may become anything: a pipe, which would be waited for without an
end, or a link to a device of endless zeros. So all that reads sources reads them by this module.
`linecache`, from which tracebacks have their lines, is told what was read, and then looks for
nothing itself.
"""

from __future__ import annotations

import errno
import io
import linecache
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "LIMIT", "UnreadableKind", "at_once", "decoded", "getline", "getlines", "head", "pin", "read",
    "require_regular",
]  # fmt: skip

_PART = 1 << 20  # bytes that are read at once: as many as are asked for take memory
LIMIT = 16 << 20  # bytes of a source; of larger ones there is no text


class UnreadableKind(OSError):
    """What a name leads to is no regular file, or is too large."""


def at_once(path: str, flags: int) -> int:
    """Opens a file for `open`; a pipe too, which else would be waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def require_regular(descriptor: int, limit: int = LIMIT) -> None:
    """Raises UnreadableKind unless an open file is a regular one, and not larger."""
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        raise UnreadableKind(errno.EINVAL, "it is not a regular file")
    if about.st_size > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> UnreadableKind:
    return UnreadableKind(errno.EFBIG, f"it is larger than {limit >> 20} MiB")


def head(path: str | os.PathLike[str], size: int) -> bytes:
    """The first bytes of a regular file, however large. Raises OSError as `read`."""
    with io.open(path, "rb", opener=at_once) as file:  # noqa: UP020  (as in `read`)
        require_regular(file.fileno(), sys.maxsize)
        return file.read(size)


def read(path: str | os.PathLike[str], limit: int = LIMIT) -> bytes:
    """The contents of a regular file. Raises OSError; UnreadableKind for what is none."""
    # A test may have put another `open` in place while its tapes are checked.
    with io.open(path, "rb", opener=at_once) as file:  # noqa: UP020
        require_regular(file.fileno(), limit)
        parts, size = [], 0  # it may grow meanwhile, or not know its size
        while part := file.read(_PART):
            parts.append(part)
            size += len(part)
            if size > limit:
                raise _too_large(limit)
    return b"".join(parts)


def decoded(data: bytes) -> list[str]:
    """The lines of a Python file, as Python reads it. Raises SyntaxError, UnicodeDecodeError."""
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).readlines()


def getlines(file: str, module_globals: dict[str, Any] | None = None) -> list[str]:
    """As `linecache.getlines`: lines of a Python file, none where they cannot be had."""
    entry = linecache.cache.get(file)
    if entry is None or len(entry) == 1:
        loaded = entry is not None or "__loader__" in (module_globals or ())
        _enter(file, [] if loaded or os.path.isabs(file) else sys.path)
    return linecache.getlines(file, module_globals)


def getline(file: str, line: int) -> str:
    """As `linecache.getline`: one line, counted from 1; empty where there is none."""
    lines = getlines(file)
    return lines[line - 1] if 1 <= line <= len(lines) else ""


def pin(files: Iterable[str]) -> None:
    """Has `linecache` never open what is no regular file, whatever asks it then."""
    for file in files:
        try:
            about = os.stat(file)
        except (OSError, ValueError):
            continue
        if not stat.S_ISREG(about.st_mode) or about.st_size > LIMIT:
            linecache.cache[file] = (0, None, [], file)


def _enter(file: str, folders: Sequence[str]) -> None:
    """Enters a file's lines, where there is such a file, as `linecache` would.

    folders: where a relative name is looked for, too.
    """
    if not file or (file[0] == "<" and file[-1] == ">"):
        return
    for place in (file, *(os.path.join(f, file) for f in folders if isinstance(f, str))):
        try:
            about = os.stat(place)
            lines = decoded(read(place))
        except UnreadableKind:
            lines = []
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, SyntaxError):  # of bytes that are no text, too
            return
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        linecache.cache[file] = (about.st_size, about.st_mtime, lines, place)
        return
