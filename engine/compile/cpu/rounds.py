"""The parts of a launch in one call of compiled code: round by round, and what each has of its own.

It is told in 64-bit words, which `eng_pool_launch` (native/pool.cpp) reads: how many rounds; of
each, how many parts, and which; how many arrays of which each part has its own, and these.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from engine.classes import dataclass
from engine.compile.cpu.pool import LINE
from engine.compile.cpu.schedule import Private, Schedule
from engine.lang.numbers import number_kind
from engine.lang.types import scalar_of, shape_of


@dataclass(frozen=True)
class Rounds:
    """words: see above. sizes: bytes of the parts' own memory, array by array."""

    words: bytes
    sizes: tuple[int, ...]


def rounds(how: Schedule) -> Rounds | None:
    """What compiled code is told of a schedule; None where Python has to bring arrays together."""
    count = len(how.bounds) - 1
    words = [len(how.rounds)]
    for parts in how.rounds:
        words += [len(parts), *parts]
    words.append(len(how.private))
    sizes: list[int] = []
    for p in how.private:
        step = own_step(p)
        if step is None:
            return None
        words += _own(p, sum(sizes), step)
        sizes.append(step * (count - 1))
    return Rounds(struct.pack(f"<{len(words)}q", *words), tuple(sizes))


def own_step(p: Private) -> int | None:
    """Bytes from one part's own array to the next one's; None where they are not simply added."""
    a, dtype = p.array, scalar_of(p.array.type).numpy
    if p.kind != "add" or number_kind(dtype) not in "fiu" or dtype.itemsize not in (4, 8):
        return None
    if a.address % dtype.itemsize or list(a.strides) != _strides(a.shape, a.type.element.size):
        return None
    return -(-a.type.element.size * math.prod(a.shape) // LINE) * LINE


def _own(p: Private, start: int, step: int) -> list[int]:
    a, dtype = p.array, scalar_of(p.array.type).numpy
    size = math.prod(a.shape) * math.prod(shape_of(a.type.element))
    head = [a.address, size, dtype.itemsize, int(number_kind(dtype) == "f"), start, step]
    return [*head, len(p.at), *p.at, len(a.shape), *a.shape, *a.strides]


def _strides(shape: Sequence[int], size: int) -> list[int]:
    out: list[int] = []
    for n in reversed(shape):
        out.insert(0, size)
        size *= n
    return out
