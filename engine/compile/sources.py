"""A hash of the engine's own sources, which all compiled kernels depend on."""

from __future__ import annotations

import contextlib
import os
import time

from engine.classes import dataclass
from engine.compile.cache import Cache
from engine.hashing import hashed
from engine.late import STARTED

# What is younger than this may have been written since this process read it.
_YOUNG = 2.0
# How long what was seen of the files counts: they may be replaced while a program runs.
_AT_ONCE = 1.0
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What decides what a kernel compiles to, and what launches ask of it.
_ROOMS = ("ad", "alias", "builtins", "codegen", "compile", "diagnostics", "frontend", "ir", "lang",
          "runtime")  # fmt: skip
_ENDINGS = (".py", ".h", ".cpp")


_Files = list[tuple[str, os.stat_result]]


@dataclass(frozen=True)
class Stamp:
    """What the system says of files. key: a hash of it. latest: when one was changed last."""

    key: str
    files: _Files
    latest: float


class _Known:
    digest: str | None = None
    early: tuple[float, Stamp] | None = None


def prepare() -> None:
    """Looks at the files, so that a launch that comes at once need not. Raises OSError."""
    if _Known.digest is None and _Known.early is None:
        found = _stamp()
        # Not the hundreds of files: to let go of them takes as long as half of a look-up.
        _Known.early = time.monotonic(), Stamp(found.key, [], found.latest)


def digest(cache: Cache) -> str | None:
    """A hash of all sources; None where it cannot be told that they are those of this process.

    The cache keeps it by what the system says of the files.
    """
    if _Known.digest is None:
        with contextlib.suppress(OSError):
            _Known.digest = _digest(cache)
    return _Known.digest


def _stamp() -> Stamp:
    files: _Files = []
    _look(_ROOT, files, False)
    for room in _ROOMS:
        _look(f"{_ROOT}/{room}", files, True)
    files.sort()
    said = hashed()
    for path, i in files:
        one = (path, i.st_dev, i.st_ino, i.st_size, i.st_mtime_ns, i.st_ctime_ns)
        said.update(repr(one).encode())
    latest = max(max(i.st_mtime, i.st_ctime) for _, i in files)
    return Stamp(said.hexdigest(), files, latest)


def _digest(cache: Cache) -> str | None:
    early, _Known.early = _Known.early, None
    at_once = early is not None and time.monotonic() - early[0] < _AT_ONCE
    found = early[1] if early is not None and at_once else _stamp()
    if found.latest > STARTED - _YOUNG:
        return None
    known = cache.noted(found.key)
    if known is None:
        files = found.files or _stamp().files
        known = _read(files)
        if _stamp().key != found.key:
            return None  # what was read is of later ones, or of both
        cache.note(found.key, known)
    return known


def _look(folder: str, files: _Files, deep: bool) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_ENDINGS):
                files.append((entry.path, entry.stat()))
            elif deep and entry.is_dir() and entry.name != "__pycache__":
                _look(entry.path, files, True)


def _read(files: _Files) -> str:
    out = hashed()
    for path, _ in files:
        with open(path, "rb") as file:
            text = file.read()
        out.update(f"{os.path.relpath(path, _ROOT)}\0{len(text)}\0".encode() + text)
    return out.hexdigest()
