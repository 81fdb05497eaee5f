"""Adjoints that read a cotangent where it lies, instead of a copy.

A backward pass copies a cotangent over a gradient, where the adjoint of the launch that wrote the
array reads it, and clears it. Where each thread reads the one at its own index, it is copied for
some threads at a time, right before they run: it goes to memory once less, and is read there once
less. Where the gradient is known to be zero, as it is after such a pass, its memory is not touched
at all: the copies are in memory that stays near. What comes of it is the same, bit for bit.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

import numpy as np

from engine.classes import dataclass
from engine.compile.backend import Entry, Limits, Outcome, Seed
from engine.compile.cpu import runner
from engine.compile.cpu.loops import place_of
from engine.compile.cpu.pool import pool, thread_count
from engine.compile.cpu.schedule import KEPT, schedule
from engine.compile.threads import Placed, Threads
from engine.lang.strided import row_major

NEAR = 1 << 18  # bytes of cotangents that are copied at once
_BLOCK = 256  # threads: blocks of them must not be cut
_HEAD = struct.Struct("<12q")  # `seeded_t` of native/seeded.h
_OWN = frozenset(["read", "store", "take", "add"])
_PLACES = 64  # threads that may run at once
_PAGE = 4096


class _Room:
    """Memory near by for `_PLACES` threads, of so many bytes each.

    Before and after it is as much as the gradients have that it stands for. No memory is used up
    until it is touched, and only what is in the middle is.
    """

    def __init__(self, step: int, reach: int) -> None:
        self.step, self.reach = step, reach
        self._memory = np.empty(2 * (reach + _PAGE) + _PLACES * step, np.uint8)
        start: int = self._memory.ctypes.data + reach
        self.near = start + -start % _PAGE
        self.taken = (ctypes.c_uint8 * _PLACES)()


_rooms: list[_Room] = []  # the last one


def _room(step: int, reach: int) -> _Room | None:
    for found in _rooms:
        if found.step >= step and found.reach >= reach:
            return found
    try:
        made = _Room(step, reach)
    except (MemoryError, ValueError, OverflowError):
        return None
    _rooms[:] = [made]
    return made


def run(
    entry: Entry, dim: tuple[int, ...], args: bytes, limits: Limits,
    spare: Callable[[], Entry] | None, seed: Seed,
) -> tuple[Outcome, bool] | None:  # fmt: skip
    """Runs a launch of an adjoint. See `Backend.run_seeded`."""
    args += entry.bound
    threads = entry.threads
    if threads is None:
        return None
    known = threads.schedules
    key = args, seed.array, dim
    found = known.get(key, False)
    if found is False:
        if len(known) >= KEPT:
            known.clear()
        found = known[key] = _own(threads, seed.array, dim, args)
    if not isinstance(found, _Own):
        return None
    gradient = found.gradient
    how = schedule(threads, dim, args)
    if how is None or how.told is None:
        return None
    workers = pool()
    if workers is None:
        return None
    size = gradient.type.element.size
    some = max(NEAR // size // _BLOCK, 1) * _BLOCK
    low, high = gradient.ends
    room = _room(some * size, high - low) if seed.blank else None
    code, left = ctypes.cast(entry.code, ctypes.c_void_p).value, ctypes.c_int64(0)
    near = (0, 0, 0, 0)
    if room is not None:
        count = min(thread_count(), _PLACES)
        near = (room.near, ctypes.addressof(room.taken), count, room.step)
    asks = 0 if found.cleared else ctypes.addressof(left)
    head = _HEAD.pack(code, gradient.address, seed.source, size, some, len(args), gradient.at, asks,
                      *near)  # fmt: skip
    runner.prepare(entry, dim, args)
    seed.begin()
    came = runner.run_seeded(how, entry, dim, args, limits, spare, (workers.seeded, head + args))
    return came, came.error == 0 and not left.value


@dataclass(frozen=True)
class _Own:
    """A gradient of which each thread touches the element at its own index.

    No two threads write to one element of any array: these would add up in another order.
    cleared: whether it certainly leaves zero there.
    """

    gradient: Placed
    cleared: bool


def _own(threads: Threads, array: str, dim: tuple[int, ...], args: bytes) -> _Own | None:
    name, found = threads.gradients.get(array), threads.collected
    if name is None or not found.known or found.stops:
        return None
    mine = [a for a in found.accesses if a.array == name]
    own = [(d, 0) for d in range(len(dim))]
    if any(a.kind not in _OWN or [*map(place_of, a.index)] != own for a in mine):
        return None
    if any(g.sharing not in ("shared", "owned") for g in threads.classes_of(dim, args).groups):
        return None
    (gradient,) = (a for a in threads.arrays(args) if a.name == name)
    plain = row_major(gradient.shape, gradient.type.element.size)
    if gradient.shape != dim or gradient.strides != plain:
        return None
    cleared = {a.kind for a in mine} == {"take"} and threads.fills(name, dim, args, "take")
    return _Own(gradient, cleared)
