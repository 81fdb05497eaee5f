"""Names of the files that parent and child process share in the run's private folder."""

from __future__ import annotations

from pathlib import Path

from engine.reading import read

JOB = "job.json"
STATUS = "status"
RESULT = "result.json"
CRASH = "crash.txt"
JACOBIAN = "jacobian.json"
PLOT = "plot"
DERIVATIVES = "derivatives.json"
LISTING = "listing.json"
FAULTS = "faults"
TRACES = "traces.json"
AGAIN = "again"  # why all runs of a process are to start anew

_MOST = 16 << 30  # bytes


def content(path: Path) -> bytes:
    """What the child has written. The target may have put something else in its place.

    Raises OSError, also for what is no regular file.
    """
    return read(path, _MOST)


def text(path: Path) -> str:
    """The same of what is ASCII. Raises UnicodeDecodeError, too."""
    return content(path).decode("ascii")
