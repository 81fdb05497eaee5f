"""Replaces or changes files as another user could, for tests of their readers."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

OTHER = 65533  # the number of a user, whom no system has


def _given_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(path, OTHER, -1, follow_symlinks=False)


def _instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        path.unlink()
        make(path)

    return plant


def _linked(path: Path) -> None:
    moved = path.rename(path.with_name(f"{path.name}.moved"))
    path.symlink_to(moved)


def _device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # endless zeros
    except PermissionError:
        pytest.skip("only root can make devices")


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _sized(size: Callable[[int], int]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        data = path.read_bytes()
        path.unlink()  # what this process has loaded of it stays whole
        path.write_bytes(data)
        os.truncate(path, size(len(data)))

    return plant


# By name: what is done to a file, and words of what is said of it. None: the file is the user's
# own and merely damaged, of which nothing is said.
KINDS: dict[str, tuple[Callable[[Path], None], str | None]] = {
    "of another user": (_given_away, "belongs to another user"),
    "its group may write": (lambda path: path.chmod(0o620), "can be written by other users"),
    "all may write": (lambda path: path.chmod(0o602), "can be written by other users"),
    "a link": (_linked, "is a link"),
    "a link to nothing": (_instead(lambda path: path.symlink_to("nowhere")), "is a link"),
    "a pipe": (_instead(lambda path: os.mkfifo(path, 0o600)), "is not a regular file"),
    "a folder": (_instead(lambda path: path.mkdir(0o700)), "is not a regular file"),
    "a device": (_instead(_device), "is not a regular file"),
    "a socket": (_instead(_socket), "is not a regular file"),
    "empty": (_sized(lambda size: 0), None),
    "cut short": (_sized(lambda size: size // 2), None),
    "huge": (_sized(lambda size: 1 << 40), "is too large"),  # of which the disk holds nothing
}


def _moved(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        path.rename(path.with_name(f"{path.name}.moved"))
        make(path)

    return plant


# The same of a folder: whoever may change it can exchange what is in it.
FOLDERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "of another user": (_given_away, "belongs to another user"),
    "its group may write": (lambda path: path.chmod(0o770), "can be written by other users"),
    "all may write": (lambda path: path.chmod(0o707), "can be written by other users"),
    "all may write, sticky": (lambda path: path.chmod(0o1777), "can be written by other users"),
    "a link": (_linked, "is a link"),
    "a pipe": (_moved(lambda path: os.mkfifo(path, 0o600)), "is not a folder"),
    "a file": (_moved(lambda path: path.write_bytes(b"")), "is not a folder"),
}
