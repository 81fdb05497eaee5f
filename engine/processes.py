"""Waiting for child processes."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

__all__ = ["wait"]

_LONGEST = 2**31 - 1  # milliseconds that the system takes


def wait(process: subprocess.Popen[bytes], limit: float) -> int:
    """The exit status of a process, as soon as it has one: `Popen.wait` looks every 50 ms.

    limit: in seconds. Raises TimeoutExpired after it.
    """
    if sys.platform == "linux" and hasattr(os, "pidfd_open") and process.returncode is None:
        with contextlib.suppress(OSError):  # an old system, or too many files
            handle = os.pidfd_open(process.pid)
            try:
                poll = select.poll()  # not `select`, which knows few handles
                poll.register(handle, select.POLLIN)
                poll.poll(min(1000 * limit, _LONGEST))
            finally:
                os.close(handle)
            limit = 0.01 if process.poll() is None else 1.0
    return process.wait(limit)
