"""Copies of memory in chunks: unchanged chunks are shared with the last copy.

A roll-out that keeps all its states in one array, and hands that to every launch, changes
little of it each time. Copies of it cost what has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar
from weakref import ref

from engine import config
from engine.runtime.launch_errors import size_text

SIZE = 1 << 14  # bytes of a piece, at most; pieces begin at multiples of their size
LEAST = 256


class Lost(Exception):
    """A copy was not made; the text says why."""


class Chunk:
    """A piece of a copy. Counts towards `config.snapshot_limit_bytes` while it lives."""

    __slots__ = ("__weakref__", "data")

    # Bytes that all pieces take up at present. Not of the module: pieces die after it; in a list,
    # since to set what belongs to a class makes Python look up anew all that does.
    total: ClassVar[list[int]] = [0]

    def __init__(self, data: bytes) -> None:
        _count(self.total, len(data))
        self.data = data

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes up."""
        return len(self.data)

    def __del__(self) -> None:
        data = getattr(self, "data", None)
        if data is not None:
            self.total[0] -= len(data)


class FarChunk(Chunk):
    """A piece that is another device's memory, and is read when somebody asks for it."""

    __slots__ = ("_read", "_size")

    def __init__(self, read: Callable[[], bytes], size: int) -> None:
        _count(self.total, size)
        self._read = read
        self._size = size

    @property
    def data(self) -> bytes:  # type: ignore[override]
        return self._read()

    @property
    def nbytes(self) -> int:
        return self._size

    def __del__(self) -> None:
        self.total[0] -= getattr(self, "_size", 0)


def _count(total: list[int], size: int) -> None:
    limit = config.snapshot_limit_bytes
    if total[0] + size > limit:
        raise Lost(
            f"copies of arrays that launches read would exceed {size_text(limit)} "
            "(engine.config.snapshot_limit_bytes)"
        )
    total[0] += size


def held() -> int:
    """Bytes that copies take up at present."""
    return Chunk.total[0]


class Copier:
    """Makes copies of parts of one block of memory. Remembers pieces while a copy has them.

    Small parts are copied in pieces of about their own size, so that a row costs what it holds;
    large ones in pieces of SIZE.
    """

    __slots__ = ("_last", "_lo", "_nbytes")

    def __init__(self, lo: int, nbytes: int) -> None:
        self._lo = lo
        self._nbytes = nbytes
        self._last: dict[tuple[int, int], ref[Chunk]] = {}

    def copy(
        self, reader: Callable[[int, int], Callable[[int, int], bytes]], lo: int, hi: int
    ) -> tuple[int, int, tuple[Chunk, ...]]:
        """Whole pieces around addresses `lo` to `hi`: where they begin and end, and they.

        reader: gives, for two addresses, what reads between them, by address and size. Raises Lost
        where the limit is reached or memory runs out.
        """
        size = _piece(hi - lo)
        base, last = self._lo, self._last
        at = first = (lo - base) - (lo - base) % size
        end = min(self._nbytes, hi - base + -(hi - base) % size)
        out = []
        try:
            read = reader(base + first, base + end)
            while at < end:
                now = read(base + at, min(size, end - at))
                known = last.get((at, size))
                chunk = None if known is None else known()
                if chunk is None or chunk.data != now:
                    chunk = Chunk(now)
                    last[at, size] = ref(chunk)
                out.append(chunk)
                at += size
        except MemoryError:
            raise Lost("no memory was left for a copy") from None
        return base + first, base + end, tuple(out)


def _piece(nbytes: int) -> int:
    """The size of the pieces of a part of so many bytes."""
    return SIZE if nbytes >= SIZE else max(LEAST, 1 << (nbytes - 1).bit_length())
