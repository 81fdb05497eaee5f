"""Runs every launch that can be cut in parts, by 1, 2 and 7 threads, and compares the bits.

For `pytest --parts`: however small launches are, they are cut as large ones would be, and memory
of parts has anything in it. Where nothing is summed up, the launch as a whole has to give the same
bits too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codegen import beforehand
from engine.compile.backend import Outcome
from engine.compile.cpu import runner, schedule
from engine.compile.cpu.pool import Pool

THREADS = (1, 2, 7)
_in_parts = runner._in_parts
_whole = runner._whole


SMALL = {"LEAST": 0, "PART": 1, "SHARE": 0}  # for `schedule`: no launch is too small
LARGE = {name: getattr(schedule, name) for name in SMALL}


def install() -> None:
    """Makes it so, in this process."""
    beforehand.BLOCK = 4  # of threads, so that small launches have some
    divide(SMALL)
    runner._in_parts = compared
    Pool.memory = anything  # type: ignore[method-assign]


def anything(pool: Pool, size: int) -> NDArray[np.uint8]:
    """Memory in which no number is as a part wants it."""
    return np.full(size, 255, np.uint8)


def divide(thresholds: dict[str, int]) -> None:
    """Sets which launches are cut."""
    for name, value in thresholds.items():
        setattr(schedule, name, value)


@contextmanager
def cut(threads: int, thresholds: dict[str, int] = SMALL) -> Iterator[list[tuple[str, int]]]:
    """Cuts small launches too. Gives the forms that were, and in how many parts."""
    seen: list[tuple[str, int]] = []
    run, counted = runner._in_parts, runner.thread_count
    before = {name: getattr(schedule, name) for name in SMALL}

    def noted(how: Any, entry: Any, *rest: Any) -> Any:
        seen.append((entry.symbol.rpartition("_")[0], len(how.bounds) - 1))
        return run(how, entry, *rest)

    divide(thresholds)
    runner._in_parts, runner.thread_count = noted, lambda: threads
    try:
        yield seen
    finally:
        divide(before)
        runner._in_parts, runner.thread_count = run, counted


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
    exact = all(p.kind in ("min", "max") for p in how.private)
    if len(how.rounds) == 1 and exact and journal is None and not out.error:
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
