"""The limit on memory for copies of what launches read, and sizes in words."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

_SHARE = 4  # of the memory there is
_SMALL = 8
CAPTURED = 16 << 30  # bytes of arrays of a capture, unless a quarter of the memory is less
_GROUP = ("memory.max", "memory/memory.limit_in_bytes")  # of control groups, new and old


def limit(given: float | None, default: int) -> int:
    """Bytes: the user's wish in GiB, else the default, but no more than a quarter of all."""
    if given is not None:
        return int(min(given * (1 << 30), sys.maxsize))
    return min([default, *(n // _SHARE for n in _available())])


def is_small() -> bool:
    """Whether this process has taken at most an eighth of the memory there is."""
    unit = 1 if sys.platform == "darwin" else 1 << 10
    taken = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return all(_SMALL * taken <= n for n in _available())


def in_words(count: float) -> str:
    """A number of bytes for people."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << power:
            return f"{count / (1 << power):.1f} {unit}"
    return f"{count:.0f} bytes"


def _available(groups: Path = Path("/sys/fs/cgroup")) -> list[int]:
    """Limits on this process's memory, in bytes, as far as the system tells."""
    found = []
    with suppress(ValueError, OSError, AttributeError):  # not on this system
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in _GROUP:
        try:
            text = (groups / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return [n for n in found if n > 0]
