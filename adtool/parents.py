"""Ends a child process when its parent ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys


def die_with_parent() -> None:
    """On Linux: no child outlives an adtool that is killed outright."""
    if sys.platform == "linux":
        with contextlib.suppress(Exception):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def require(parent: int) -> None:
    """Ends this process where its parent was killed before `die_with_parent`."""
    if sys.platform == "linux" and os.getppid() != parent:
        os._exit(2)


def heed_interrupts() -> None:
    """An interrupt raises KeyboardInterrupt, and is not spoken of where Python drops that.

    It does so in callbacks: `importlib` has one for each import.
    """
    before = sys.unraisablehook

    def tell(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            before(dropped)

    sys.unraisablehook = tell
    signal.signal(signal.SIGINT, signal.default_int_handler)
