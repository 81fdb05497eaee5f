"""Temporary files and folders that no signal leaves behind (`adtool.interrupts`)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from adtool import interrupts


@contextmanager
def folder(prefix: str = "adtool-") -> Iterator[Path]:
    """A temporary folder that only the user can read. Raises OSError where there can be none."""
    with interrupts.holding():
        made = Path(tempfile.mkdtemp(prefix=prefix))
        interrupts.undo(made, lambda: shutil.rmtree(made, ignore_errors=True))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        interrupts.settled(made)


def file(beside: str | Path, prefix: str) -> tuple[int, str]:
    """A new, private file in a folder: its descriptor and its name. `remove` is to follow.

    Raises OSError.
    """
    with interrupts.holding():
        descriptor, name = tempfile.mkstemp(dir=beside, prefix=prefix)
        interrupts.undo(name, lambda: os.unlink(name))
    return descriptor, name


def remove(name: str) -> None:
    """Removes such a file, unless it has another name by now."""
    with suppress(OSError):
        os.unlink(name)
    interrupts.settled(name)
