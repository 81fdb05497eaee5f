"""The standard streams of a process that may have been started without them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

_NAMES = ("stdin", "stdout", "stderr")


def occupy() -> tuple[int, ...]:
    """Puts the null device where a standard descriptor is closed (`>&-`). Returns which were.

    Else the next file that is opened would be taken for standard output. What is written to a
    closed standard output fails as before, and programs started from here find it closed.
    """
    closed = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Ascending, so that the lowest free descriptor is the one that is missing.
            os.open(os.devnull, os.O_RDWR if number == 2 else os.O_RDONLY)
            closed.append(number)
    return tuple(closed)


def exchange(given: Mapping[int, int]) -> None:
    """Gives a process other standard streams, by their numbers: descriptors, which are closed.

    Those that are not given are closed. Python's own objects are as of a process that begins so.
    """
    for number, name in enumerate(_NAMES):
        os.close(number)
        stream = getattr(sys, name)
        if number not in given:
            setattr(sys, name, None)
            continue
        os.dup2(given[number], number)
        os.close(given[number])
        if stream is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
        elif number:
            stream.reconfigure(line_buffering=number == 2 or os.isatty(number))


def provide() -> None:
    """Standard streams for a process that must not stumble over missing ones."""
    occupy()
    for number, name in enumerate(_NAMES):
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def flush() -> OSError | None:
    """Writes out what is left. Returns why standard output could not be written, if so.

    A stream that fails is led to the null device, so that Python does not fail on it once more.
    """
    failed = None
    for number in (1, 2):
        stream = getattr(sys, _NAMES[number])
        try:
            stream.flush()
        except OSError as error:
            failed = failed or (error if number == 1 else None)
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (AttributeError, ValueError):  # replaced or closed
            pass
    return failed
