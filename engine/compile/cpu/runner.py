"""Runs compiled kernels on the CPU: the launch structure, its buffers, who frees them."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engine.compile.backend import NOTHING, STACK_LIMIT, Entry, Journal, Limits, Outcome


class Buffer(ctypes.Structure):
    """`eng_buf`: memory that kernels make grow, in bytes. Empty at first. limit: 0 for none."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("cap", ctypes.c_int64),
        ("limit", ctypes.c_int64),
    )
    data: int | None
    size: int
    cap: int
    limit: int


class Launch(ctypes.Structure):
    """`eng_launch`: what an entry point is told, and what it says.

    dim: the grid, row-major; the first `ndim` count. begin, end: linear thread indices.
    error: 0, or how it ended. stack, journal, output: owned by whoever made the structure;
    see `release`. output: messages, each a number and values in slots of 8 bytes.
    """

    _fields_ = (
        ("dim", ctypes.c_int64 * 4),
        ("ndim", ctypes.c_int64),
        ("begin", ctypes.c_int64),
        ("end", ctypes.c_int64),
        ("error", ctypes.c_int64),
        ("stack", Buffer),
        ("journal", Buffer),
        ("output", Buffer),
    )
    dim: ctypes.Array[ctypes.c_int64]
    ndim: int
    begin: int
    end: int
    error: int
    stack: Buffer
    journal: Buffer
    output: Buffer


# dim[4], ndim, begin, end, error; then buffers, which start empty.
_HEAD = struct.Struct("<8q")
_LIMITED = struct.Struct("<24xq")
_BUFFER = ctypes.sizeof(Buffer)
# Kernels allocate with the C library's functions.
free = ctypes.CDLL(None).free
free.argtypes = (ctypes.c_void_p,)
free.restype = None


class CpuJournal(Journal):
    """What a run wrote for another one to read."""

    __slots__ = ("_state",)

    def __init__(self, state: Launch) -> None:
        self._state = state

    @property
    def nbytes(self) -> int:
        return self._state.journal.size

    def words(self) -> NDArray[np.int64]:
        return np.frombuffer(contents(self._state.journal), np.int64)

    def lend(self, state: Launch) -> None:
        """Makes the values readable by a run, which must not free them."""
        ctypes.memmove(ctypes.byref(state.journal), ctypes.byref(self._state.journal), _BUFFER)

    def __del__(self) -> None:
        release(self._state)


def new_launch(dim: Sequence[int]) -> Launch:
    """A launch of all threads of a grid of 1 to 4 axes, with empty buffers and no limits."""
    return Launch.from_buffer_copy(_template(tuple(dim), Limits(0, 0)))


def contents(buffer: Buffer) -> bytes:
    """A copy of what is in a buffer."""
    return ctypes.string_at(buffer.data, buffer.size) if buffer.data else b""


def release(launch: Launch) -> None:
    """Frees the memory that kernels allocated for a launch. May be called again."""
    for buffer in (launch.stack, launch.journal, launch.output):
        _drop(buffer)


@lru_cache(maxsize=1024)
def _template(dim: tuple[int, ...], limits: Limits) -> bytes:
    sizes = dim + (1,) * (4 - len(dim))
    head = _HEAD.pack(*sizes, len(dim), 0, math.prod(dim), 0)
    return head + b"".join(map(_LIMITED.pack, (limits.stack, limits.journal, 0)))


def run(
    entry: Entry,
    dim: tuple[int, ...],
    args: bytes,
    limits: Limits,
    threads: tuple[int, int] | None,
    journal: Journal | None,
    spare: Callable[[], Entry] | None,
) -> Outcome:
    """See `Backend.run`."""
    state = Launch.from_buffer_copy(_template(dim, limits))
    if threads is not None:
        state.begin, state.end = threads
    if isinstance(journal, CpuJournal):
        journal.lend(state)
    entry.code(args + entry.bound if entry.bound else args, ctypes.byref(state))
    if state.error == STACK_LIMIT and spare is not None:
        # The form that saves less goes on from the first thread that was abandoned.
        state.error = 0
        other = spare()
        other.code(args + other.bound if other.bound else args, ctypes.byref(state))
    return _outcome(state, journal)


def _outcome(state: Launch, journal: Journal | None) -> Outcome:
    if journal is not None:
        ctypes.memset(ctypes.byref(state.journal), 0, _BUFFER)
    if not (state.error or state.stack.data or state.journal.data or state.output.data):
        return NOTHING
    error, stack, output = state.error, state.stack.cap, contents(state.output)
    left = None
    if state.journal.data:
        left = CpuJournal(state)
        _drop(state.stack)
        _drop(state.output)
    else:
        release(state)
    return Outcome(error, left, output, stack)


def _drop(buffer: Buffer) -> None:
    if buffer.data:
        free(buffer.data)
    buffer.data, buffer.size, buffer.cap = None, 0, 0
