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

_BLIND = 0.05  # seconds between two looks at a descriptor, where both cannot be waited for
_LONGEST = 2**31 - 1  # milliseconds that the system takes


def wait(process: subprocess.Popen[bytes], limit: float, other: int = -1) -> int:
    """The exit status of a process, as soon as it has one: `Popen.wait` looks every 50 ms.

    limit: in seconds. other: a descriptor; where it can be read from, the wait is over, too.
    Raises TimeoutExpired where it has none by then.
    """
    if sys.platform == "linux" and hasattr(os, "pidfd_open") and process.returncode is None:
        with contextlib.suppress(OSError):  # an old system, or too many files
            handle = os.pidfd_open(process.pid)
            try:
                poll = select.poll()  # not `select`, which knows few handles
                poll.register(handle, select.POLLIN)
                if other >= 0:
                    poll.register(other, select.POLLIN)
                poll.poll(min(1000 * limit, _LONGEST))
            finally:
                os.close(handle)
            limit = 0.01 if process.poll() is None else 1.0
    elif other >= 0:
        limit = min(limit, _BLIND)
    return process.wait(limit)
