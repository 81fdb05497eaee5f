"""Whether a file is a capture. Light: it is asked for every target."""

from __future__ import annotations

import os
import sys

from engine.reading import UnreadableKind, at_once, require_regular

MAGIC = "adtool-capture"


def is_capture(path: str) -> bool:
    """Whether a file begins as captures do, or is named like one."""
    try:
        with open(path, "rb", opener=at_once) as file:
            require_regular(file.fileno(), sys.maxsize)
            head = file.read(30 + len(MAGIC))
    except UnreadableKind:
        return False
    except OSError:
        return path.endswith(".adt") and not os.path.isdir(path)
    return path.endswith(".adt") or (head[:4] == b"PK\3\4" and head[30:] == MAGIC.encode())
