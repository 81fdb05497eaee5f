"""Runs every launch that can be cut in parts, by 1, 2 and 7 threads, and compares the bits.

For `pytest --parts`: however small launches are, they are cut as large ones would be. Where
nothing is summed up, the launch as a whole has to give the same bits too.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from engine.compile.backend import Outcome
from engine.compile.cpu import runner, schedule

THREADS = (1, 2, 7)
_in_parts = runner._in_parts
_whole = runner._whole


def install() -> None:
    """Makes it so, in this process."""
    schedule.LEAST, schedule.PART, schedule.SHARE = 0, 1, 0
    runner._in_parts = compared


def compared(
    how: Any, entry: Any, dim: Any, args: Any, limits: Any, journal: Any, spare: Any
) -> Any:
    """What `_in_parts` gives, if it is the same for any number of threads."""
    before = memory(entry, args)
    runs = []
    out = Outcome()
    for count in THREADS:
        put(before)
        runner.thread_count = lambda count=count: count
        out = _in_parts(how, entry, dim, args, limits, journal, spare)
        runs.append(told(out) if out.error else (told(out), memory(entry, args)))
    assert runs[0] == runs[1] == runs[2], f"{entry.symbol}: threads decide over the result"
    if len(how.rounds) == 1 and not how.private and journal is None and not out.error:
        after = memory(entry, args)
        put(before)
        whole = _whole(entry, dim, args, limits, None, None, spare)
        same = [data for _, data in memory(entry, args)] == [data for _, data in after]
        assert same and whole.output == out.output, f"{entry.symbol}: parts decide over the result"
        put(after)
    return out


def memory(entry: Any, args: bytes) -> list[tuple[int, bytes]]:
    """All that the arrays of a launch span."""
    spans = [a.ends for a in entry.threads.arrays(args) if not a.empty]
    return [(low, ctypes.string_at(low, high - low)) for low, high in spans]


def put(spans: list[tuple[int, bytes]]) -> None:
    for at, data in spans:
        now = np.frombuffer(ctypes.string_at(at, len(data)), np.uint8)
        if now.tobytes() != data:  # what is not written may be read-only
            ctypes.memmove(at, data, len(data))


def told(out: Outcome) -> Any:
    if out.error:  # what was written until then is undefined
        return out.error
    # Half of a slot may hold nothing: what is in the journal shows in the adjoint's results.
    return out.output, out.journal.nbytes if out.journal is not None else 0
