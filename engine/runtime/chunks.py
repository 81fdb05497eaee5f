"""Copies of memory in pieces: what has not changed since the last copy shares its pieces.

A roll-out that keeps all its states in one array, and hands that to every launch, changes
little of it each time. Copies of it cost what has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar
from weakref import ref

from engine import config
from engine.runtime.launch_errors import size_text

SIZE = 1 << 14  # bytes; pieces begin at multiples of it


class Lost(Exception):
    """A copy was not made; the text says why."""


class Chunk:
    """A piece of a copy. Counts towards `config.snapshot_limit_bytes` while it lives."""

    __slots__ = ("__weakref__", "data")

    # Bytes that all pieces take up at present. Not of the module: pieces die after it.
    held: ClassVar[int] = 0

    def __init__(self, data: bytes) -> None:
        limit = config.snapshot_limit_bytes
        if Chunk.held + len(data) > limit:
            raise Lost(
                f"copies of what launches read would exceed {size_text(limit)} "
                "(engine.config.snapshot_limit_bytes)"
            )
        self.data = data
        Chunk.held += len(data)

    def __del__(self) -> None:
        data = getattr(self, "data", None)
        if data is not None:
            type(self).held -= len(data)


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

    def copy(self, read: Callable[[int, int], bytes], start: int, end: int) -> tuple[Chunk, ...]:
        """The pieces of whole ones, from address `start` to `end`. read: by address and size.

        Raises Lost where the limit is reached or memory runs out.
        """
        out = []
        at = start
        while at < end:
            number = at // SIZE
            stop = min(end, (number + 1) * SIZE)
            try:
                now = read(at, stop - at)
            except MemoryError:
                raise Lost("no memory was left for a copy") from None
            last = self._last.get(number)
            chunk = None if last is None else last()
            if chunk is None or chunk.data != now:
                chunk = Chunk(now)
                self._last[number] = ref(chunk)
            out.append(chunk)
            at = stop
        return tuple(out)
