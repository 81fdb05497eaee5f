"""Counts the processes that a target forks, whose tapes cannot be seen from its own process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_count = 0
_counts = False
_registered = False


@contextmanager
def counting() -> Iterator[None]:
    """Counts them meanwhile."""
    global _count, _counts, _registered
    if not _registered:  # once: it cannot be undone
        os.register_at_fork(after_in_parent=_forked)
        _registered = True
    _count, _counts = 0, True
    try:
        yield
    finally:
        _counts = False


def counted() -> int:
    """How many there were."""
    return _count


def _forked() -> None:
    global _count
    if _counts and not _by_multiprocessing():
        _count += 1


def _by_multiprocessing() -> bool:
    """Whether `multiprocessing` forks now, which counts its own processes."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "multiprocessing.popen_fork":
            return True
        frame = frame.f_back
    return False
