"""The driver: everything that runs a compiled kernel, in any form, goes through here.

What a run needs beside its arguments is this module's own: the launch structure and its
buffers, which threads run when, the limits on what they save, the form of an adjoint that
takes over where a thread would save too much, and what errors and messages mean.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine import config
from engine.compile.host import ERROR_STACK, ERRORS, Buffer, Entry, Launch, release
from engine.compile.pipeline import Variants
from engine.diagnostics import Diagnostic
from engine.diagnostics.site import call_span
from engine.runtime.errors import KernelStopped, size_text
from engine.runtime.output import Failure, discard, raise_failures, tell

# What can be run: see `engine.compile.pipeline`. Nobody asks for the checkpointed adjoint.
Form = Literal["forward", "recorded", "adjoint", "tangent", "accesses"]
Names = frozenset[str]
Threads = tuple[int, int]

ERROR_JOURNAL, ERROR_INDEX, ERROR_JOURNAL_LIMIT, ERROR_ASSERT = 2, 3, 5, 6
_NONE: Names = frozenset()
# dim[4], ndim, begin, end, error; then buffers, which start empty.
_HEAD = struct.Struct("<8q")
_LIMITED = struct.Struct("<24xq")
_BUFFER = ctypes.sizeof(Buffer)


class Journal:
    """What a run wrote for another one to read. Frees its memory when it dies."""

    __slots__ = ("_state",)

    def __init__(self, state: Launch) -> None:
        self._state = state

    @property
    def nbytes(self) -> int:
        """Bytes of saved values."""
        return self._state.journal.size

    def words(self) -> NDArray[np.int64]:
        """A copy of what a run of the form `accesses` wrote; see `engine.ad.accesses`."""
        written = self._state.journal
        return np.frombuffer(ctypes.string_at(written.data or 0, written.size), np.int64)

    def _lend(self, state: Launch) -> None:
        """Makes the values readable by a run, which must not free them."""
        ctypes.memmove(ctypes.byref(state.journal), ctypes.byref(self._state.journal), _BUFFER)

    def __del__(self) -> None:
        release(self._state)


@dataclass(frozen=True, slots=True)
class Execution:
    """What a run left.

    journal: what it wrote for its adjoint, None where nothing. stack_bytes: the memory that
    the saved values of a thread took up (of an adjoint; freed by now).
    """

    journal: Journal | None = None
    stack_bytes: int = 0


_NOTHING = Execution()


def run(
    variants: Variants,
    form: Form,
    dim: tuple[int, ...],
    args: bytes,
    *,
    wrt: Names = _NONE,
    journaled: Names = _NONE,
    journal: Journal | None = None,
    journal_limit: int | None = None,
    threads: Threads | None = None,
    quiet: bool = False,
    done: Callable[[Journal | None], None] | None = None,
) -> Execution:
    """Runs one form of a kernel over its grid; compiles it where that was not done yet.

    Args:
        variants: the kernel.
        form: `forward`; `recorded` (as `forward`, and writes the journal that the adjoint
            for `wrt` and `journaled` reads, if that needs one); `adjoint`; `tangent`;
            `accesses` (as `forward`, and lists what each thread touches in its journal).
        dim: the grid.
        args: the arguments as kernels read them (see `engine.runtime.pack`); for an adjoint
            the gradients of `wrt` follow, for a tangent the tangents of `wrt`.
        wrt: names of array parameters that have a gradient, or a tangent.
        journaled: names of those whose reads an adjoint takes from the journal.
        journal: what the recorded run of the same threads left, for an adjoint.
        journal_limit: bytes that the run may write to its journal, 0 for any number; None
            is `config.journal_limit_bytes`.
        threads: the linear indices to run, begin and end; None for the whole grid.
        quiet: drops the kernel's messages, and with them failed expectations; else they are
            printed after the run.
        done: called with the journal where the run came to its end, also if E210 is raised
            for a failed expectation then.

    Raises KernelStopped, a LaunchError: E205 for a grid with more threads than 32-bit indices
    count (nothing has run then); E209 where memory ran out, or what threads or the launch may
    save of it (what the run writes is undefined then); E401 where an adjoint reads what no
    launch saved (the same); E210 for a failed assertion. LaunchError E210 for a failed
    expectation.
    """
    if form == "adjoint":
        return _run_adjoint(variants, dim, args, wrt, journaled, journal, threads, quiet)
    entry = _entry(variants, form, wrt, journaled)
    return _run_forward(entry, dim, args, journal_limit, threads, quiet, done)


class Executable:
    """A form that runs forwards, resolved once: for launches, which have no time to look it up."""

    __slots__ = ("_entry",)

    def __init__(
        self, variants: Variants, form: Form, wrt: Names = _NONE, journaled: Names = _NONE
    ) -> None:
        self._entry = _entry(variants, form, wrt, journaled)

    def run(
        self, dim: tuple[int, ...], args: bytes,
        done: Callable[[Journal | None], None] | None = None,
    ) -> None:  # fmt: skip
        """Does what `run` does over the whole grid."""
        _run_forward(self._entry, dim, args, None, None, False, done)


def _entry(variants: Variants, form: Form, wrt: Names, journaled: Names) -> Entry:
    if form == "recorded":
        return variants.recorded(wrt, journaled) or variants.forward()
    if form == "tangent":
        return variants.tangent(wrt)
    return variants.accesses() if form == "accesses" else variants.forward()


def _run_forward(
    entry: Entry,
    dim: tuple[int, ...],
    args: bytes,
    journal_limit: int | None,
    threads: Threads | None,
    quiet: bool,
    done: Callable[[Journal | None], None] | None,
) -> Execution:
    if 0 in dim:
        if done is not None:
            done(None)
        return _NOTHING
    state = _state(dim, journal_limit, threads)
    failures = _call(entry, dim, args, state, quiet)
    left = Journal(state) if state.journal.data else None
    if state.error:
        raise _stopped(entry, dim, state.error)
    if done is not None:
        done(left)
    if failures:
        raise_failures(entry, dim, failures)
    return _NOTHING if left is None else Execution(left)


def _run_adjoint(
    variants: Variants,
    dim: tuple[int, ...],
    args: bytes,
    wrt: Names,
    journaled: Names,
    journal: Journal | None,
    threads: Threads | None,
    quiet: bool,
) -> Execution:
    if 0 in dim:
        return _NOTHING
    entry = variants.adjoint(wrt, journaled)
    state = _state(dim, None, threads)
    if journal is not None:
        journal._lend(state)
    try:
        _call(entry, dim, args, state, quiet)
        if state.error == ERROR_STACK:
            # The form that saves less goes on from the first thread that was abandoned.
            state.error = 0
            entry = variants.checkpointed(wrt, journaled)
            _call(entry, dim, args, state, quiet)
        if state.error:
            raise _stopped(entry, dim, state.error)
        stack = state.stack.cap
        return Execution(None, stack) if stack else _NOTHING
    finally:
        if journal is not None:
            ctypes.memset(ctypes.byref(state.journal), 0, _BUFFER)
        release(state)


@lru_cache(maxsize=1024)
def _template(dim: tuple[int, ...], stack_limit: int, journal_limit: int) -> bytes:
    sizes = dim + (1,) * (4 - len(dim))
    head = _HEAD.pack(*sizes, len(dim), 0, math.prod(dim), 0)
    return head + b"".join(map(_LIMITED.pack, (stack_limit, journal_limit, 0)))


def _state(dim: tuple[int, ...], journal_limit: int | None, threads: Threads | None) -> Launch:
    limit = config.journal_limit_bytes if journal_limit is None else journal_limit
    state = Launch.from_buffer_copy(_template(dim, config.stack_limit_bytes, limit))
    if threads is not None:
        state.begin, state.end = threads
    return state


def _call(
    entry: Entry, dim: tuple[int, ...], args: bytes, state: Launch, quiet: bool
) -> list[Failure]:
    """Runs threads and prints their messages; gives failed tests, of which one may end it."""
    entry.call(args + entry.bound if entry.bound else args, ctypes.byref(state))
    if not entry.messages:
        return []
    if quiet:
        discard(state.output)
        return []
    failures = tell(entry, state.output)
    if state.error == ERROR_ASSERT:
        raise_failures(entry, dim, failures)
    return failures


def _stopped(entry: Entry, dim: tuple[int, ...], error: int) -> KernelStopped:
    """What a kernel's error number means to the user."""
    what = ERRORS.get(error, f"error {error}")
    name = entry.symbol.rpartition("_")[0]  # the rest is a hash

    def stopped(code: str, message: str, *notes: str, help: str = "") -> KernelStopped:
        return KernelStopped(Diagnostic(code, message, call_span(), help, notes), reason=what)

    if error == ERROR_INDEX:
        return stopped(
            "E205", f"kernel {name!r}: the launch is too large", f"{what}, got dim={dim}",
            help="launch several smaller grids, or use more dimensions",
        )  # fmt: skip
    if error == ERROR_JOURNAL:
        return stopped(
            "E401", f"the adjoint of kernel {name!r} stopped", what,
            help="was memory of the kernel changed without the tape knowing?",
        )  # fmt: skip
    if error == ERROR_ASSERT:
        return stopped("E210", f"kernel {name!r}: {what}")
    limit = {
        ERROR_STACK: ("stack_limit_bytes", config.stack_limit_bytes),
        ERROR_JOURNAL_LIMIT: ("journal_limit_bytes", config.journal_limit_bytes),
    }.get(error)
    if limit is not None:
        return stopped("E209", f"kernel {name!r} stopped: {what}",
                       f"config.{limit[0]} is {size_text(limit[1])}",
                       help=f"raise config.{limit[0]}, or split the work")  # fmt: skip
    return stopped("E209", f"kernel {name!r} stopped: {what}",
                   help="launch fewer threads at once on the tape")  # fmt: skip
