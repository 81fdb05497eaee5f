"""Whether a file is a capture. Light: it is asked for every target."""

from __future__ import annotations

import os
import stat

MAGIC = "adtool-capture"


def is_capture(path: str) -> bool:
    """Whether a file begins as captures do, or is named like one."""
    try:
        with open(path, "rb", opener=at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return False
            head = file.read(30 + len(MAGIC))
    except OSError:
        return path.endswith(".adt") and not os.path.isdir(path)
    return path.endswith(".adt") or (head[:4] == b"PK\3\4" and head[30:] == MAGIC.encode())


def at_once(path: str, flags: int) -> int:
    """Opens a file, and a pipe too: one that nobody writes to would be waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
