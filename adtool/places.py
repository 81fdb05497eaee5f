"""Names files in messages: relative to the current folder where they are below it."""

from __future__ import annotations

import os
import re

from adtool.exits import ToolError

_DETOUR = f"{os.sep}..{os.sep}"


def short(file: str) -> str:
    """A path below the current folder, relative to it; without detours (`a/../b.py`)."""
    return below(here(), os.path.normpath(file) if _DETOUR in file else file)


def below(root: str, file: str) -> str:
    """A path below a folder (which ends in a separator, or is empty for none), relative to it."""
    return file[len(root) :] if root and file.startswith(root) else file


def shortened(text: str, root: str | None = None) -> str:
    """The same for the files that a sentence or a traceback names.

    root: the folder that they are named relative to, absolute; the current one for None.
    """
    start = here() if root is None else os.path.join(root, "") if root else ""
    if len(start) < 2:  # none, or that of all files
        return text
    return re.sub(rf"(?<![^\s\"'(`]){re.escape(start)}(?=[^\s\"')`])", "", text)


def folder() -> str:
    """The current folder. Raises ToolError where there is none."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise ToolError(
            "the current folder was removed",
            "change to an existing folder: cd FOLDER",
            "environment",
        ) from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ToolError(f"the current folder cannot be used: {why}", "", "environment") from None


def here() -> str:
    """The current folder with a separator at its end; empty where it is gone."""
    try:
        return os.path.join(os.getcwd(), "")
    except OSError:  # it was removed
        return ""
