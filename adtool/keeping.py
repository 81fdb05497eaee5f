"""Opens the file that a checked run is kept in for `.adtool/last`, before the engine is loaded."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from adtool import temporary
from adtool.job import Keep
from adtool.places import here
from engine.private import own_folder

FOLDER = ".adtool"
NAME = "last"
# What is kept of every run must cost next to nothing.
_BYTES, _RECORDS = 4 << 20, 200
_PART = ".last-"  # begins the names of files that are not whole yet
_STALE = 86400.0  # seconds after which such a file is of a run that was killed


@contextmanager
def keeping() -> Iterator[Keep | None]:
    """A file beside that of the last run, for the next one; None where none can be written."""
    name = ""
    with suppress(OSError, ValueError):
        name = _made(Path(FOLDER))
    try:
        yield Keep(name, _BYTES, _RECORDS, here()) if name else None
    finally:
        if name:
            temporary.remove(name)


def _made(folder: Path) -> str:
    """A new file in a folder that is the user's alone. Raises OSError, also where it is not."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        # The folder is made by runs, and belongs into no repository.
        (folder / ".gitignore").write_text("*\n", encoding="ascii")
    own_folder(str(folder))  # nothing is written through what is of others
    _clean(folder)
    descriptor, name = temporary.file(folder.absolute(), _PART)
    os.close(descriptor)
    return name


def _clean(folder: Path) -> None:
    """Removes what runs that were killed have left."""
    for path in folder.glob(f"{_PART}*"):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > _STALE:
                path.unlink()
