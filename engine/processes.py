"""Starts child processes and waits for them."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.forks import no_fork

if TYPE_CHECKING:
    import subprocess

__all__ = ["output", "started", "wait"]

_LONGEST = 2**31 - 1  # milliseconds that the system takes


def started(command: Sequence[str], **given: Any) -> subprocess.Popen[Any]:
    """`subprocess.Popen`, with no fork of another thread amid it. Raises OSError.

    A fork would have the writing ends of its pipes for as long as it lives, and who reads the
    others would wait for that.
    """
    import subprocess

    with no_fork:
        return subprocess.Popen(command, **given)


def output(command: Sequence[str], limit: float | None = None, check: bool = True) -> str:
    """What a program writes to standard output, as text; it reads nothing.

    Raises OSError, ValueError where the command has a null byte, TimeoutExpired after `limit`
    seconds, and with check=True CalledProcessError where its exit status is not 0.
    """
    import subprocess

    process = started(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, errors="replace",
    )  # fmt: skip
    with process:
        try:
            said: str = process.communicate(timeout=limit)[0]
        except BaseException:
            process.kill()
            raise
    if check and process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, said)
    return said


def wait(process: subprocess.Popen[bytes], limit: float) -> int:
    """The exit status of a process, as soon as it has one: `Popen.wait` looks every 50 ms.

    limit: in seconds. Raises TimeoutExpired where it has none by then.
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
