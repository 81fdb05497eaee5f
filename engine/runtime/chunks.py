"""Copies of memory in pieces: what has not changed since the last copy shares its pieces.

A roll-out that keeps all its states in one array, and hands that to every launch, changes
little of it each time. Copies of it cost what has changed.
"""

from __future__ import annotations

from typing import Any, ClassVar
from weakref import ref

import numpy as np

from engine import config
from engine.runtime.launch_errors import size_text

SIZE = 1 << 14  # bytes; pieces begin at multiples of it

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Lost(Exception):
    """A copy was not made; the text says why."""


class Chunk:
    """A piece of a copy. Counts towards `config.snapshot_limit_bytes` while it lives."""

    __slots__ = ("__weakref__", "data")

    # Bytes that all pieces take up at present. Not of the module: pieces die after it.
    held: ClassVar[int] = 0

    def __init__(self, data: Bytes) -> None:
        limit = config.snapshot_limit_bytes
        if Chunk.held + data.nbytes > limit:
            raise Lost(
                f"copies of what launches read would exceed {size_text(limit)} "
                "(engine.config.snapshot_limit_bytes)"
            )
        self.data: Bytes
        try:
            self.data = data.copy()
        except MemoryError:
            raise Lost("no memory was left for a copy") from None
        Chunk.held += data.nbytes

    def __del__(self) -> None:
        data = getattr(self, "data", None)
        if data is not None:
            type(self).held -= data.nbytes


def held() -> int:
    """Bytes that copies take up at present."""
    return Chunk.held


class Copier:
    """Makes copies of parts of one block of memory. Remembers pieces while a copy has them."""

    __slots__ = ("_last", "hi", "lo")

    def __init__(self, lo: int, hi: int) -> None:
        self.lo = lo
        self.hi = hi
        self._last: dict[int, ref[Chunk]] = {}

    def widened(self, lo: int, hi: int) -> tuple[int, int]:
        """The range of whole pieces around addresses `lo` to `hi`."""
        return max(self.lo, lo - lo % SIZE), min(self.hi, hi + -hi % SIZE)

    def copy(self, memory: Bytes, start: int) -> tuple[Chunk, ...]:
        """Pieces of `memory`, which begins at address `start` and holds whole pieces.

        Raises Lost where the limit is reached or memory runs out.
        """
        out = []
        at, end = 0, memory.nbytes
        while at < end:
            number = (start + at) // SIZE
            stop = min(end, (number + 1) * SIZE - start)
            now = memory[at:stop]
            last = self._last.get(number)
            chunk = None if last is None else last()
            if chunk is None or chunk.data.tobytes() != now.tobytes():
                chunk = Chunk(now)
                self._last[number] = ref(chunk)
            out.append(chunk)
            at = stop
        return tuple(out)
