"""Decides which files a fix may change, and writes them."""

from __future__ import annotations

import os
import stat
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from adtool import interrupts, places, temporary
from adtool.exits import ToolError
from adtool.writing import unwritable
from engine.classes import dataclass
from engine.reading import read

_FOREIGN = {"site-packages", "dist-packages"}


@dataclass(frozen=True, slots=True)
class Change:
    """A file that gets another content. file: as the program knows it."""

    file: str
    before: bytes
    after: bytes


def refusal(file: str) -> str:
    """Why a file is not to be changed; empty where it may be.

    Only Python files below the current folder are the user's to change here, and of these not
    what is installed.
    """
    path, here = os.path.realpath(file), os.path.realpath(places.folder())
    if not os.path.isfile(path):
        return "it is not a file"
    if not path.endswith((".py", ".pyw")):
        return "it is not a Python file"
    if not path.startswith(os.path.join(here, "")):
        return "it is not below the current folder"
    installed = [os.path.join(os.path.realpath(p), "") for p in sysconfig.get_paths().values()]
    if _FOREIGN & set(Path(path).parts) or path.startswith(tuple(installed)):
        return "it belongs to an installed package"
    if not os.stat(path).st_mode & 0o222:  # to root, too
        return "it is read-only"
    if not os.access(path, os.W_OK) or not os.access(os.path.dirname(path), os.W_OK):
        return "it is not writable"
    return ""


def write(changes: Sequence[Change]) -> None:
    """Writes the files, each in one step and with its mode; a link's file, not the link.

    All are prepared before the first takes its place.
    Raises ToolError, with nothing written, where one is not what it was, or cannot be written.
    """
    ready: list[tuple[str, str]] = []
    file = ""
    try:
        for change in changes:
            file = change.file
            ready.append(_prepared(change))
        for change, (_, path) in zip(changes, ready, strict=True):
            file = change.file
            _require_unchanged(change, path)
        with interrupts.holding():  # all, or none
            for change, (name, path) in zip(changes, ready, strict=True):
                file = change.file
                os.replace(name, path)
    except OSError as error:
        raise unwritable(os.path.relpath(file), error) from None
    finally:
        for name, _ in ready:
            temporary.remove(name)


def _prepared(change: Change) -> tuple[str, str]:
    path = os.path.realpath(change.file)
    _require_unchanged(change, path)
    mode = stat.S_IMODE(os.stat(path).st_mode)
    descriptor, name = temporary.file(os.path.dirname(path), ".adtool-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
    except BaseException:
        temporary.remove(name)
        raise
    return name, path


def _require_unchanged(change: Change, path: str) -> None:
    if read(path) != change.before:
        raise ToolError(
            f"`{os.path.relpath(path)}` changed during the check: nothing was written",
            "run it again", "environment",
        )  # fmt: skip
