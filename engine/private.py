"""Folders and files owned by the user: the only way to read what was kept.

A kernel that is loaded is run, so nothing is loaded that another user may have written. A folder is
trusted (`private_folder`) where no other user can exchange anything on the way to it: every folder
from the root of the file system on belongs to the user or to root, and others may not write to it,
unless it is sticky, as `/tmp` is. A file in it is trusted (`opened`, `read_own`) where it is a
regular file of the user's own that others may not write to. It is opened without following links
and without waiting for pipes, and the open file is looked at, not the path.

What was looked at is what is used later by its path (by `dlopen`, by the compiler): in a trusted
folder, only the user and root can put another file in its place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Untrusted", "is_own", "opened", "own_folder", "private_folder", "read_own"]

# Elsewhere, files have neither owners nor modes that say who may write.
_POSIX = sys.platform != "win32"
_ALWAYS = 0
for _name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY"):
    _ALWAYS |= getattr(os, _name, 0)
_OTHERS = 0o022  # who may write beside the owner
_LINKS = 40  # that a path may lead over, as the system has it
_BY_DESCRIPTOR = os.utime in os.supports_fd
# What the system says where a file could not be opened because of what it is.
_REFUSED = {
    errno.ELOOP: "is a link",
    getattr(errno, "EMLINK", errno.ELOOP): "is a link",
    errno.ENXIO: "is not a regular file",
    errno.EISDIR: "is not a regular file",
    errno.EACCES: "cannot be read by you",
}


class Untrusted(OSError):
    """A folder or a file that may not be the user's own. path: which; why: what is wrong."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(errno.EPERM, why, path)
        self.path, self.why = path, why


def private_folder(path: str, make: bool = False) -> str:
    """A folder of the user's own, by its path without links.

    make: whether it, and folders on the way, are made where they are missing, for the user alone.
    Raises Untrusted where another user could change what is in it or exchange it, OSError where
    there is none.
    """
    if not _POSIX:
        if make:
            os.makedirs(path, exist_ok=True)
        return os.path.realpath(path)
    place, links = "/", 0
    info = os.lstat(place)
    todo = path.split("/")[::-1]
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if name == "..":
            place = os.path.dirname(place)
            info = os.lstat(place)
            continue
        if why := _exchangeable(place, info):
            raise Untrusted(place, why)
        below = os.path.join(place, name)
        info = _made(below) if make else os.lstat(below)
        if not stat.S_ISLNK(info.st_mode):
            if not stat.S_ISDIR(info.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), below)
            place = below
            continue
        if not _trusted(info.st_uid):
            raise Untrusted(below, f"is a link of another user (uid {info.st_uid})")
        links += 1
        if links > _LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(below)
        todo += target.split("/")[::-1]
        place = "/" if target.startswith("/") else place
        info = os.lstat(place)
    own_folder(place)
    return place


def own_folder(path: str) -> None:
    """Raises Untrusted for a folder that is a link, another user's, or open to others."""
    _check(path, os.lstat(path), stat.S_ISDIR, "folder")


def opened(path: str, most: int | None = None, flags: int = os.O_RDONLY) -> tuple[int, int]:
    """Opens a regular file of the user's own: its descriptor, and its size.

    most: bytes that it may have. flags: as of `os.open`.
    Raises OSError where there is none, Untrusted where it is something else or of others.
    """
    try:
        file = os.open(path, flags | _ALWAYS, 0o600)
    except OSError as e:
        if e.errno in _REFUSED:
            raise Untrusted(path, _REFUSED[e.errno]) from None
        raise
    try:
        info = os.fstat(file)
        _check(path, info, stat.S_ISREG, "regular file")
        if most is not None and info.st_size > most:
            raise Untrusted(path, f"is too large ({info.st_size:,} bytes, {most:,} at most)")
    except BaseException:
        os.close(file)
        raise
    return file, info.st_size


def read_own(path: str, most: int, touch: bool = False) -> bytes:
    """What is in a regular file of the user's own of `most` bytes. Raises as `opened` does.

    touch: whether it counts as used now, by its time.
    """
    file, size = opened(path, most)
    try:
        data = os.read(file, size + 1)
        while len(data) != size and (more := os.read(file, most + 1 - len(data))):
            data += more  # it may come in pieces
            if len(data) > most:
                raise Untrusted(path, f"is too large (more than {most:,} bytes)")
        if touch:
            with contextlib.suppress(OSError):
                os.utime(file if _BY_DESCRIPTOR else path)
        return data
    finally:
        os.close(file)


def is_own(path: str) -> bool:
    """Whether there is a regular file of the user's own, for what others open by its path."""
    try:
        _check(path, os.lstat(path), stat.S_ISREG, "regular file")
    except OSError:
        return False
    return True


def _check(path: str, info: os.stat_result, is_kind: Callable[[int], bool], kind: str) -> None:
    mode = info.st_mode
    if not is_kind(mode):
        raise Untrusted(path, "is a link" if stat.S_ISLNK(mode) else f"is not a {kind}")
    if not _POSIX:
        return
    if info.st_uid != os.geteuid():
        raise Untrusted(path, f"belongs to another user (uid {info.st_uid})")
    if mode & _OTHERS:
        raise Untrusted(path, _open_to_others(mode))


def _open_to_others(mode: int) -> str:
    return f"can be written by other users (mode {stat.S_IMODE(mode):03o})"


def _made(path: str) -> os.stat_result:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        return os.lstat(path)


def _exchangeable(path: str, info: os.stat_result) -> str:
    """Why other users could exchange what is in a folder on the way; empty where they cannot."""
    if not _trusted(info.st_uid):
        return f"belongs to another user (uid {info.st_uid})"
    mode = info.st_mode
    if not mode & _OTHERS or mode & stat.S_ISVTX:
        return ""
    if not mode & 0o002 and _is_of_one(info.st_gid):
        return ""
    return _open_to_others(mode)


def _trusted(uid: int) -> bool:
    return uid in (0, os.geteuid()) or uid == _unknown_owner()


def _unknown_owner() -> int | None:
    """Who owns the files of root where root is outside of this process's user namespace."""
    try:
        with open("/proc/self/uid_map", "rb") as file:
            known = [line.split()[1] for line in file]
        with open("/proc/sys/kernel/overflowuid", "rb") as file:
            return None if b"0" in known else int(file.read())
    except (OSError, ValueError, IndexError):
        return None


def _is_of_one(gid: int) -> bool:
    """Whether a group is the user's private one, as many systems give each user."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    own = gid == user.pw_gid and group.gr_name == user.pw_name
    return own and set(group.gr_mem) <= {user.pw_name}
