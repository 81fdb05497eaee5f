"""Files that the user asked for."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from adtool import temporary
from adtool.captures.sniff import at_once
from adtool.exits import ToolError, because
from adtool.render.formats import HEAD, is_report


def spare_sources(path: Path) -> None:
    """Raises ToolError where a report would take the place of a Python file."""
    if path.suffix in (".py", ".pyi", ".pyw") and path.exists():
        raise ToolError(f"`{path}` is a Python file that is there: a report would overwrite it",
                        "name another file")  # fmt: skip


def spare_others(path: Path) -> None:
    """Raises ToolError where a report that settings ask for would replace what is none."""
    if not path.exists() and not path.is_symlink():
        return
    try:
        with open(path, "rb", opener=at_once) as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            head = file.read(HEAD) if regular else b"?"
    except OSError as error:
        raise ToolError(f"`{path}` cannot be read: {because(error)}", "", "environment") from None
    if not is_report(head):
        raise ToolError(
            f"`{path}` is there, and no report of adtool: settings replace no other file",
            "name another file in the settings, remove this one, or name it by --output",
        )


def name_as(partial: str, path: Path) -> None:
    """Gives a file that is whole its name, and the usual rights. Raises OSError."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(partial, 0o666 & ~mask)
    os.replace(partial, path)


def write_file(data: bytes, path: Path) -> None:
    """Writes the file in one step, so that no half of it is ever seen.

    Raises ToolError where it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_bytes(data)
            return
        descriptor, name = temporary.file(path.parent, ".adtool-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            name_as(name, path)
        finally:
            temporary.remove(name)
    except OSError as error:
        raise ToolError(f"`{path}` cannot be written: {because(error)}", "",
                        "environment") from None  # fmt: skip
