"""Tells whether a file is a capture, without loading the engine."""

from __future__ import annotations

import os

from engine.reading import UnreadableKind, head

MAGIC = "adtool-capture"


def is_capture(path: str) -> bool:
    """Whether a file begins as captures do, or is named like one."""
    try:
        begin = head(path, 30 + len(MAGIC))
    except UnreadableKind:
        return False
    except OSError:
        return path.endswith(".adt") and not os.path.isdir(path)
    return path.endswith(".adt") or (begin[:4] == b"PK\3\4" and begin[30:] == MAGIC.encode())
