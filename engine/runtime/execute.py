"""Runs compiled kernels: the launch structure, its buffers, and errors that they report."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from functools import lru_cache

from engine import config
from engine.compile.host import ERROR_STACK, ERRORS, Buffer, Entry, Launch, release
from engine.diagnostics import LaunchError
from engine.runtime.errors import fail, size_text
from engine.runtime.output import Failure, raise_failures, tell

ERROR_JOURNAL, ERROR_INDEX, ERROR_JOURNAL_LIMIT, ERROR_ASSERT = 2, 3, 5, 6
# dim[4], ndim, begin, end, error; then buffers, which start empty.
_HEAD = struct.Struct("<8q")
_LIMITED = struct.Struct("<24xq")
_BUFFER = ctypes.sizeof(Buffer)


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
def _template(dim: tuple[int, ...], stack_limit: int, journal_limit: int) -> bytes:
    sizes = dim + (1,) * (4 - len(dim))
    head = _HEAD.pack(*sizes, len(dim), 0, math.prod(dim), 0)
    return head + b"".join(map(_LIMITED.pack, (stack_limit, journal_limit, 0)))


def _state(dim: tuple[int, ...]) -> Launch:
    return Launch.from_buffer_copy(
        _template(dim, config.stack_limit_bytes, config.journal_limit_bytes)
    )


def run(
    entry: Entry,
    dim: tuple[int, ...],
    blob: bytes,
    done: Callable[[Journal | None], None] | None = None,
) -> Journal | None:
    """Runs a kernel over its whole grid; gives what it wrote to its journal.

    Messages of the kernel are printed after it. done: called with the result where the
    launch ran to its end, also if it then raises E210.
    Raises LaunchError: E205 for a grid with more threads than 32-bit indices count
    (nothing has run then); E209 where memory, or what the journal may take of it, ran
    out (outputs are undefined then); E210 for a failed test in the kernel.
    """
    if 0 in dim:
        if done is not None:
            done(None)
        return None
    state = _state(dim)
    failures = _call(entry, dim, blob, state)
    left = Journal(state) if state.journal.data else None
    if state.error:
        raise _stopped(entry, dim, state.error)
    if done is not None:
        done(left)
    if failures:
        raise_failures(entry, dim, failures)
    return left


def run_adjoint(
    entry: Entry,
    dim: tuple[int, ...],
    blob: bytes,
    journal: Journal | None = None,
    spare: Callable[[], Entry] | None = None,
) -> int:
    """Runs an adjoint over its whole grid; gives the bytes of stack that it allocated.

    journal: what the launch wrote. spare: gives the form of the adjoint that saves less;
    it takes over at the first thread whose saved values exceed `config.stack_limit_bytes`.
    Raises LaunchError: E205 as above; E209 where memory ran out, or the limit is
    exceeded all the same; E401 where the adjoint reads what no launch saved. Gradients
    are undefined after the last two.
    """
    if 0 in dim:
        return 0
    state = _state(dim)
    if journal is not None:
        journal.lend(state)
    try:
        _call(entry, dim, blob, state)
        if state.error == ERROR_STACK and spare is not None:
            state.error = 0
            entry = spare()
            _call(entry, dim, blob, state)
        if state.error:
            raise _stopped(entry, dim, state.error)
        return state.stack.cap
    finally:
        if journal is not None:
            ctypes.memset(ctypes.byref(state.journal), 0, _BUFFER)
        release(state)


def _call(entry: Entry, dim: tuple[int, ...], blob: bytes, state: Launch) -> list[Failure]:
    """Runs threads and prints their messages; gives failed tests, of which one may end it."""
    entry.call(blob, ctypes.byref(state))
    failures = tell(entry, state.output) if entry.messages else []
    if state.error == ERROR_ASSERT:
        raise_failures(entry, dim, failures)
    return failures


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
    limit = {
        ERROR_STACK: ("stack_limit_bytes", config.stack_limit_bytes),
        ERROR_JOURNAL_LIMIT: ("journal_limit_bytes", config.journal_limit_bytes),
    }.get(error)
    if limit is not None:
        return fail("E209", f"kernel {name!r} stopped: {what}",
                    f"config.{limit[0]} is {size_text(limit[1])}",
                    help=f"raise config.{limit[0]}, or split the work")  # fmt: skip
    return fail("E209", f"kernel {name!r} stopped: {what}",
                help="launch fewer threads at once on the tape")  # fmt: skip
