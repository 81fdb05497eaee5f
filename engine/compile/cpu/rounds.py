"""Runs the parts of a launch round by round in one call of compiled code.

It is told in 64-bit words, which `eng_pool_launch` (native/pool.cpp) reads: how many rounds; of
each, how many parts, and which; how many arrays of which each part has its own, and these.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import numpy as np

from engine.classes import dataclass
from engine.compile.cpu.pool import LINE
from engine.compile.cpu.schedule import Private, Schedule
from engine.lang.numbers import number_kind
from engine.lang.strided import row_major
from engine.lang.types import scalar_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engine.compile.cpu.dealing import Winners


KINDS = ("add", "min", "max")
TYPES = ("f4", "f8", "i4", "u4", "i8", "u8")


@dataclass(frozen=True)
class Rounds:
    """words: see above. sizes: bytes of the parts' own memory, array by array.

    winners: places in the memory, which is of `total` bytes, of what says who replaced numbers of
    an array last; with the array.
    """

    words: bytes
    sizes: tuple[int, ...]
    winners: tuple[tuple[int, Private], ...]
    total: int

    def won(self, memory: NDArray[np.uint8]) -> list[Winners]:
        """Who replaced numbers last, after a run that saved something."""
        from engine.compile.cpu.dealing import Winners  # late: few launches have any

        return [
            Winners(p.names, memory[at : at + math.prod(p.array.scalars)].reshape(p.array.scalars))
            for at, p in self.winners
        ]


def rounds(how: Schedule) -> Rounds | None:
    """What compiled code is told of a schedule; None where Python has to bring arrays together."""
    count = len(how.bounds) - 1
    words = [len(how.rounds)]
    for parts in how.rounds:
        words += [len(parts), *parts]
    words.append(len(how.private))
    steps = [_step(p) for p in how.private]
    if None in steps:
        return None
    sizes = [step * (count - 1) for step in steps]  # type: ignore[operator]
    total, at, winners = sum(sizes), 0, []
    for p, step, size in zip(how.private, steps, sizes, strict=True):
        won = -1
        if p.wins:
            won = total
            winners.append((won, p))
            total += math.prod(p.array.scalars)
        words += _own(p, at, step, won)  # type: ignore[arg-type]
        at += size
    return Rounds(struct.pack(f"<{len(words)}q", *words), tuple(sizes), tuple(winners), total)


def _type(p: Private) -> str:
    dtype = scalar_of(p.array.type).numpy
    return f"{number_kind(dtype)}{dtype.itemsize}"


def _step(p: Private) -> int | None:
    """Bytes from one part's own array to the next one's; None where Python deals with them."""
    a, dtype = p.array, scalar_of(p.array.type).numpy
    if p.kind not in KINDS or _type(p) not in TYPES:
        return None
    if a.address % dtype.itemsize or a.strides != row_major(a.shape, a.type.element.size):
        return None
    return -(-a.type.element.size * math.prod(a.shape) // LINE) * LINE


def _own(p: Private, start: int, step: int, won: int) -> list[int]:
    a = p.array
    kinds = KINDS.index(p.kind), TYPES.index(_type(p))
    head = [a.address, math.prod(a.scalars), *kinds, start, step, won]
    return [*head, len(p.at), *p.at, len(a.shape), *a.shape, *a.strides]
