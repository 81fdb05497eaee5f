"""The engine's own sources as one hash: what kernels compile to depends on all of them."""

from __future__ import annotations

import contextlib
import hashlib
import os

from engine.compile.cache import Cache
from engine.late import STARTED

# What is younger than this may have been written since this process read it.
_YOUNG = 2.0
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What decides what a kernel compiles to, and what launches ask of it.
_ROOMS = ("ad", "alias", "builtins", "codegen", "compile", "diagnostics", "frontend", "ir", "lang",
          "runtime")  # fmt: skip
_ENDINGS = (".py", ".h", ".cpp")


class _Known:
    digest: str | None = None


def digest(cache: Cache) -> str | None:
    """A hash of all sources; None where it cannot be told that they are those of this process.

    The cache keeps it by what the system says of the files.
    """
    if _Known.digest is None:
        with contextlib.suppress(OSError):
            _Known.digest = _digest(cache)
    return _Known.digest


def _digest(cache: Cache) -> str | None:
    files: list[tuple[str, os.stat_result]] = []
    _look(_ROOT, files, False)
    for room in _ROOMS:
        _look(f"{_ROOT}/{room}", files, True)
    if max(max(info.st_mtime, info.st_ctime) for _, info in files) > STARTED - _YOUNG:
        return None
    files.sort()
    stamp = hashlib.sha256()
    for path, i in files:
        said = (path, i.st_dev, i.st_ino, i.st_size, i.st_mtime_ns, i.st_ctime_ns)
        stamp.update(repr(said).encode())
    key = stamp.hexdigest()
    known = cache.noted(key)
    if known is None:
        known = _read(files)
        cache.note(key, known)
    return known


def _look(folder: str, files: list[tuple[str, os.stat_result]], deep: bool) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_ENDINGS):
                files.append((entry.path, entry.stat()))
            elif deep and entry.is_dir() and entry.name != "__pycache__":
                _look(entry.path, files, True)


def _read(files: list[tuple[str, os.stat_result]]) -> str:
    out = hashlib.sha256()
    for path, _ in files:
        with open(path, "rb") as file:
            text = file.read()
        out.update(f"{os.path.relpath(path, _ROOT)}\0{len(text)}\0".encode() + text)
    return out.hexdigest()
