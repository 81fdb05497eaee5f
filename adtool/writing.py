"""Writes the user's files atomically: complete, or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from adtool import temporary
from adtool.exits import ToolError, unreadable
from adtool.render.formats import HEAD, is_report
from engine.reading import UnreadableKind, head

PLOTS = ("png", "svg", "pdf")  # the kinds of files that plots are written to
PLOTTING = ("matplotlib",)  # the packages that do it
_SOURCES = (".py", ".pyi", ".pyw")


def spare_sources(path: Path) -> None:
    """Raises ToolError where a report would take the place of a Python file."""
    if path.suffix in _SOURCES and path.exists():
        raise ToolError(f"`{path}` cannot be written: it is an existing Python file",
                        "name another file")  # fmt: skip


def spare_others(path: Path) -> None:
    """Raises ToolError where a report that settings ask for would replace what is none."""
    if not path.exists() and not path.is_symlink():
        return
    try:
        ours = is_report(head(path, HEAD))
    except UnreadableKind:
        ours = False
    except OSError as error:
        raise unreadable(path, error) from None
    if not ours:
        raise ToolError(
            f"`{path}` exists and is not a report of adtool: settings may not replace other files",
            "name another file in the settings, delete this one, or name it with --out",
        )


def unwritable(path: Path | str, error: OSError | str) -> ToolError:
    """The error that says so. Of a system's error only the words: it may name a partial file."""
    why = error if isinstance(error, str) else error.strerror or type(error).__name__
    if isinstance(error, OSError) and error.errno == errno.ENXIO:
        why = "no program reads the pipe"
    return ToolError(f"`{path}` cannot be written: {why}", "", "environment")


def require_place(
    path: Path | None, kinds: Sequence[str] = (), packages: Sequence[str] = ()
) -> str:
    """All that can be known of a file before the run that is to write it. Gives its kind.

    Every command calls this for every file that it is told to write, before anything is run.
    path: None where no file was asked for. kinds: the endings that the name may have; () for any.
    packages: what has to be installed.

    Returns:
        The ending of the name, in lower case, without its dot; "" without a path.

    Raises:
        ToolError: a format stands before the name, the ending is another one, a package is missing,
            the file is a Python file or a folder, or the folder is not there or takes no file.
    """
    if path is None:
        return ""
    if path == Path():
        raise ToolError("an empty name, or `.`, names no file to write", "name a file")
    kind = path.suffix[1:].lower()
    before, equals, name = str(path).partition("=")
    if equals and before in kinds:
        raise ToolError(
            f"`{path}` cannot be written: this command takes the name of a file, without a format",
            f"name it: --out {name or 'FILE'}",
        )
    if kinds and kind not in kinds:
        *most, last = (f".{k}" for k in kinds)
        raise ToolError(
            f"`{path}` cannot be written: its name has the wrong ending",
            f"name a {', '.join(most)} or {last} file" if most else f"name a {last} file",
        )
    spare_sources(path)
    if os.path.isdir(path):
        raise unwritable(path, "it is a folder")
    if not os.path.isdir(path.parent):
        raise unwritable(path, f"the folder `{path.parent}` does not exist")
    for name in packages:
        if find_spec(name) is None:
            raise ToolError(f"`{path}` cannot be written: it needs the package {name}",
                            f"install it: pip install {name}", "environment")  # fmt: skip
    _try(path)
    return kind


def _try(path: Path) -> None:
    """Raises ToolError where the folder takes no file, or no file of this name."""
    try:
        with suppress(FileNotFoundError):
            os.lstat(path)  # a name that is too long
        if os.path.exists(path) and not os.path.isfile(path):
            if not os.access(path, os.W_OK):
                raise unwritable(path, "it is not writable")
            return
        descriptor, name = temporary.file(path.parent.absolute(), ".adtool-try-")
    except OSError as error:
        raise unwritable(path, error) from None
    os.close(descriptor)
    temporary.remove(name)


@contextmanager
def partial_of(path: Path) -> Iterator[str]:
    """A file beside the one that is to be written, for `name_as`; it is gone after the block.

    Raises ToolError where there can be none.
    """
    name = ""
    try:
        descriptor, name = temporary.file(path.parent.absolute(), ".adtool-")
        os.close(descriptor)
    except OSError as error:
        raise unwritable(path, error) from None
    try:
        yield name
    finally:
        temporary.remove(name)


def name_as(partial: str, path: Path) -> None:
    """Gives a file that is whole its name, and the usual rights. Raises OSError."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(partial, 0o666 & ~mask)
    os.replace(partial, path)


def write_file(data: bytes, path: Path) -> None:
    """Writes the file in one step, so that no half of it is ever seen.

    A device is written to, and a pipe that some program reads. Raises ToolError where it cannot
    be written.
    """
    try:
        if path.exists() and not path.is_file():
            _write_into(path, data)
            return
        with partial_of(path) as partial:
            with open(partial, "wb") as file:
                file.write(data)
            name_as(partial, path)
    except OSError as error:
        raise unwritable(path, error) from None


def append(data: bytes, path: Path) -> None:
    """Adds to a file, which is made where there is none. Raises ToolError as `write_file`."""
    try:
        _write_into(path, data, os.O_APPEND | os.O_CREAT)
    except OSError as error:
        raise unwritable(path, error) from None


def _write_into(path: Path, data: bytes, flags: int = 0) -> None:
    """Writes to what is there, device or pipe. A pipe that nobody reads would be waited for."""
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_WRONLY | flags, 0o666)
    with open(descriptor, "wb") as file:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.set_blocking(descriptor, True)
        file.write(data)
