"""Adjoints that take a cotangent from where it lies, and not from where it was copied before.

A backward pass copies a cotangent over a gradient, where the adjoint of the launch that wrote the
array reads it, and clears it. Where each thread reads the one at its own index, it is copied for
some threads at a time, right before they run: it goes to memory once less, and is read there once
less. What comes of it is the same, bit for bit.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

from engine.compile.backend import Entry, Limits, Outcome
from engine.compile.cpu import runner
from engine.compile.cpu.loops import place_of
from engine.compile.cpu.pool import pool
from engine.compile.cpu.schedule import schedule
from engine.compile.threads import Placed, Threads
from engine.lang.strided import row_major

NEAR = 1 << 17  # bytes of cotangents that are copied at once
_BLOCK = 256  # threads: blocks of them must not be cut
_HEAD = struct.Struct("<5q24x")  # `seeded_t` of native/pool.cpp
_OWN = frozenset(["read", "store", "take", "add"])


def run(
    entry: Entry, dim: tuple[int, ...], args: bytes, limits: Limits,
    spare: Callable[[], Entry] | None, array: str, source: int,
) -> Outcome | None:  # fmt: skip
    """Runs a launch of an adjoint; None where that cannot be, and nothing has happened.

    array: a parameter of the kernel. source: the address of what its gradient has to be when the
    launch begins, element by element in the order of rows; no array of the launch shares memory
    with it.
    """
    args += entry.bound
    threads = entry.threads
    gradient = None if threads is None else _own(threads, array, dim, args)
    if threads is None or gradient is None:
        return None
    how = schedule(threads, dim, args)
    # Threads that add to one element would add up in another order.
    if how is None or not how.free or how.private or how.told is None:
        return None
    workers = pool()
    if workers is None:
        return None
    size = gradient.type.element.size
    some = max(NEAR // size // _BLOCK, 1) * _BLOCK
    code = ctypes.cast(entry.code, ctypes.c_void_p).value
    head = _HEAD.pack(code, gradient.address, source, size, some)
    return runner.run_seeded(how, entry, dim, args, limits, spare, (workers.seeded, head + args))


def _own(threads: Threads, array: str, dim: tuple[int, ...], args: bytes) -> Placed | None:
    """The gradient of an array, of which each thread touches the element at its own index."""
    name, found = threads.gradients.get(array), threads.collected
    if name is None or not found.known or found.stops:
        return None
    for a in found.accesses:
        if a.array == name and (
            a.kind not in _OWN or [*map(place_of, a.index)] != [(d, 0) for d in range(len(dim))]
        ):
            return None
    (gradient,) = (a for a in threads.arrays(args) if a.name == name)
    plain = row_major(gradient.shape, gradient.type.element.size)
    return gradient if gradient.shape == dim and gradient.strides == plain else None
