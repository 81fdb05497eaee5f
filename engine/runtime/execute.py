"""Runs compiled kernels: the launch structure, its buffers, and errors that they report."""

from __future__ import annotations

import ctypes
import math
import struct
from functools import lru_cache

from engine.compile.host import ERRORS, Buffer, Entry, Launch, release
from engine.diagnostics import LaunchError
from engine.runtime.errors import fail

ERROR_JOURNAL, ERROR_INDEX = 2, 3
# dim[4], ndim, begin, end, error; then two buffers and a position, which start empty.
_HEAD = struct.Struct("<8q")
_BUFFER = ctypes.sizeof(Buffer)
_REST = bytes(ctypes.sizeof(Launch) - _HEAD.size)


class Journal:
    """Values that a recorded launch left for its adjoint. Frees its memory when it dies."""

    __slots__ = ("_state",)

    def __init__(self, state: Launch) -> None:
        self._state = state

    @property
    def nbytes(self) -> int:
        """Bytes of saved values."""
        return self._state.journal.size

    def lend(self, state: Launch) -> None:
        """Makes the values readable by a launch, which must not free them."""
        ctypes.memmove(ctypes.byref(state.journal), ctypes.byref(self._state.journal), _BUFFER)

    def __del__(self) -> None:
        release(self._state)


@lru_cache(maxsize=1024)
def _template(dim: tuple[int, ...]) -> bytes:
    sizes = dim + (1,) * (4 - len(dim))
    return _HEAD.pack(*sizes, len(dim), 0, math.prod(dim), 0) + _REST


def run(
    entry: Entry, dim: tuple[int, ...], blob: bytes, journal: Journal | None = None
) -> Journal | None:
    """Runs a kernel over its whole grid; gives what it wrote to its journal.

    journal: what an adjoint reads. Raises LaunchError: E205 for a grid with more threads
    than 32-bit indices count (nothing has run then); E209 where memory ran out, E401
    where the adjoint reads what no launch saved (outputs are undefined after both).
    """
    if 0 in dim:
        return None
    state = Launch.from_buffer_copy(_template(dim))
    if journal is not None:
        journal.lend(state)
    entry.call(blob, ctypes.byref(state))
    stack, written = state.stack.data, state.journal.data
    if journal is not None:
        ctypes.memset(ctypes.byref(state.journal), 0, _BUFFER)
        written = None
    error = state.error
    if stack:
        kept = Launch()
        ctypes.memmove(ctypes.byref(kept.journal), ctypes.byref(state.journal), _BUFFER)
        ctypes.memset(ctypes.byref(state.journal), 0, _BUFFER)
        release(state)
        state = kept
    left = Journal(state) if written else None
    if error:
        raise _stopped(entry, dim, error)
    return left


def _stopped(entry: Entry, dim: tuple[int, ...], error: int) -> LaunchError:
    """What a kernel's error number means to the user."""
    what = ERRORS.get(error, f"error {error}")
    name = entry.symbol.rpartition("_")[0]  # the rest is a hash
    if error == ERROR_INDEX:
        return fail("E205", f"kernel {name!r}: the launch is too large", f"{what}, got dim={dim}",
                    help="launch several smaller grids, or use more dimensions")  # fmt: skip
    if error == ERROR_JOURNAL:
        return fail("E401", f"the adjoint of kernel {name!r} stopped", what,
                    help="was memory of the kernel changed without the tape knowing?")  # fmt: skip
    return fail("E209", f"kernel {name!r} stopped: {what}",
                help="launch fewer threads at once on the tape")  # fmt: skip
