"""Planes of zeroed memory, most of them parts of one block.

A tape of thousands of launches has as many arrays, each with memory of its own: to clear, copy or
multiply thousands of small planes one by one takes longer than its launches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.cached import cached_property
from engine.classes import dataclass

Array = NDArray[Any]
# The number of a stretch of addresses, and bytes here per byte of the arrays there.
Key = tuple[int, int]

_ALIGNED = 64  # bytes
_numbers = count()


@dataclass(frozen=True)
class Block:
    """Which planes are parts of one block: by their keys where they begin and end, in bytes."""

    parts: Mapping[Key, tuple[int, int]]

    @cached_property
    def size(self) -> int:
        """Bytes of the whole."""
        return max((end for _, end in self.parts.values()), default=0)


def block_of(sizes: Iterable[tuple[Key, int]]) -> Block:
    """A block for planes of so many bytes, in this order. Those that come again count once."""
    parts: dict[Key, tuple[int, int]] = {}
    at = 0
    for key, size in sizes:
        if key not in parts:
            parts[key] = at, at + size
            at += -(-size // _ALIGNED) * _ALIGNED
    return Block(parts)


class Planes:
    """Zeroed memory by key, made when needed. None is ever put in the place of another."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._number = next(_numbers)
        self._known: dict[Key, Array] = {}
        self._whole: Array | None = None
        self._loose: dict[Key, Array] = {}  # no parts of the block
        # Of the last one with the same block: which, how many planes both had, what is common.
        self._met: tuple[int, int, int, list[tuple[int, int]]] | None = None

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Key, size: int) -> Array:
        """The plane, of so many bytes."""
        plane = self._known.get(key)
        if plane is None:
            place = self._block.parts.get(key)
            if place is None:
                plane = self._loose[key] = np.zeros(size, np.uint8)
            else:
                plane = self._made()[place[0] : place[1]]
            self._known[key] = plane
        return plane

    def _made(self) -> Array:
        if self._whole is None:
            self._whole = np.zeros(self._block.size, np.uint8)
        return self._whole

    def take(self, other: Planes) -> None:
        """Becomes a copy of planes in the same block."""
        if other._whole is not None:
            np.copyto(self._made(), other._whole)
        elif self._whole is not None:
            self._whole.fill(0)
        for key, plane in other._known.items():
            mine = self.get(key, len(plane))
            if key in self._loose:
                np.copyto(mine, plane)

    def zeros(self) -> Planes:
        """As many planes, in which all is zero."""
        out = Planes(self._block)
        for key, plane in self._known.items():
            out.get(key, len(plane))
        return out

    def clear(self) -> None:
        """Sets all to zero."""
        if self._whole is not None:
            self._whole.fill(0)
        for plane in self._loose.values():
            plane.fill(0)

    def dot(self, other: Planes) -> float:
        """The inner product, as numbers of float64, of what both have."""
        pairs: list[tuple[Array, Array]] = []
        if self._block is other._block and self._whole is not None and other._whole is not None:
            pairs = [(self._whole[a:b], other._whole[a:b]) for a, b in self._common(other)]
            pairs += [(p, other._loose[k]) for k, p in self._loose.items() if k in other._loose]
        else:
            pairs = [(p, other._known[k]) for k, p in self._known.items() if k in other._known]
        total = 0.0
        with np.errstate(all="ignore"):
            for planes in pairs:
                x, y = (m[: m.size // 8 * 8].view(np.float64) for m in planes)
                total += float(np.einsum("i,i->", x, y))
        return total

    def _common(self, other: Planes) -> list[tuple[int, int]]:
        """Stretches of the block that belong to planes which both have."""
        now = (other._number, len(self), len(other))
        if self._met is None or self._met[:3] != now:
            found: list[tuple[int, int]] = []
            last: Key | None = None
            for key, (begin, end) in self._block.parts.items():
                if key not in self._known or key not in other._known:
                    last = None
                    continue
                if last is not None:  # what is between two planes is zero
                    found[-1] = found[-1][0], end
                else:
                    found.append((begin, end))
                last = key
            self._met = (*now, found)
        return self._met[3]
