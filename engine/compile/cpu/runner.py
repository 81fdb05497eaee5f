"""Runs compiled kernels on the CPU: the launch structure, its buffers, and their release."""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.compile.backend import (
    JOURNAL_LIMIT,
    NOT_MADE,
    NOTHING,
    STACK_LIMIT,
    Entry,
    Journal,
    Limits,
    Outcome,
)
from engine.compile.cpu.lender import LEND
from engine.compile.cpu.pool import DONE, LEFT, NO_MEMORY, Pool, pool, thread_count
from engine.compile.cpu.schedule import Schedule, schedule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engine.compile.cpu.dealing import Winners
    from engine.compile.cpu.rounds import Rounds


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


class LaunchState(ctypes.Structure):
    """`eng_launch`: what an entry point is told, and what it says.

    dim: the grid, row-major; the first `ndim` count. begin, end: linear thread indices.
    error: 0, or how it ended. stack, journal, output: owned by whoever made the structure;
    see `release`. output: messages, each a number and values in slots of 8 bytes. free: 1 where
    threads are known to do the same in any order, 0 where not, -1 to run one after the other.
    lend: see `engine.compile.cpu.lender`. form: see `engine.compile.cpu.forms`.
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
        ("free", ctypes.c_int64),
        ("lend", ctypes.c_void_p),
        ("form", ctypes.c_void_p),
    )
    dim: ctypes.Array[ctypes.c_int64]
    ndim: int
    begin: int
    end: int
    error: int
    stack: Buffer
    journal: Buffer
    output: Buffer
    free: int
    lend: int | None
    form: int | None


# dim[4], ndim, begin, end, error; then buffers, which start empty.
_HEAD = struct.Struct("<8q")
_ENDS, _ENDS_AT = struct.Struct("<2q"), 40  # begin and end in it
_ERROR, _LEFT = 7, [7, 8, 10, 12, 16]  # words: the error; what a run leaves, in the buffers too
_LIMITED = struct.Struct("<24xq")
_END = struct.Struct("<qQQ")  # free, lend and form
_FREE, _FREE_AT = struct.Struct("<q"), _HEAD.size + 3 * _LIMITED.size
_NONE = np.empty(0, np.uint8)
_BUFFER, _BYTE = ctypes.sizeof(Buffer), ctypes.c_char
LARGE = 300_000  # threads
# Whether threads run in blocks, where they may. Tests compare both ways.
BLOCKS = True
# Kernels allocate with the C library's functions.
free = ctypes.CDLL(None).free
free.argtypes = (ctypes.c_void_p,)
free.restype = None


class CpuJournal(Journal):
    """What a run wrote for another one to read: of each of its parts, in their order.

    bounds: the threads of each part, as in `Schedule.bounds`. winners: what the values say that
    replaced others, of arrays of which each part had its own, holds within the part alone.
    """

    __slots__ = ("_parts", "bounds", "winners")

    def __init__(
        self, parts: Sequence[LaunchState], bounds: tuple[int, ...], winners: Sequence[Winners] = ()
    ) -> None:
        self._parts = parts
        self.bounds = bounds
        self.winners = winners

    @property
    def nbytes(self) -> int:
        return sum(p.journal.size for p in self._parts)

    def taken(self, adjoint: Entry) -> frozenset[str]:
        """Names of the gradients of an adjoint that are dealt out to its parts."""
        if not self.winners:
            return frozenset()
        from engine.compile.cpu.dealing import gradients

        assert adjoint.threads is not None
        return gradients(self.winners, adjoint.threads)

    def words(self) -> NDArray[np.int64]:
        return np.frombuffer(b"".join(contents(p.journal) for p in self._parts), np.int64)

    def lend(self, states: Sequence[LaunchState]) -> None:
        """Makes the values readable by a run of the same parts, which must not free them."""
        for mine, state in zip(self._parts, states, strict=True):
            ctypes.memmove(ctypes.byref(state.journal), ctypes.byref(mine.journal), _BUFFER)

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        if ends():
            return  # the process does it, and what is called here may be gone
        for p in self._parts:
            release(p)


def new_launch(dim: Sequence[int]) -> LaunchState:
    """A launch of all threads of a grid of 1 to 4 axes, with empty buffers and no limits."""
    return LaunchState.from_buffer_copy(template(tuple(dim), Limits(0, 0)))


def contents(buffer: Buffer) -> bytes:
    """A copy of what is in a buffer."""
    return ctypes.string_at(buffer.data, buffer.size) if buffer.data else b""


def release(launch: LaunchState) -> None:
    """Frees the memory that kernels allocated for a launch. May be called again."""
    for buffer in (launch.stack, launch.journal, launch.output):
        _drop(buffer)


@lru_cache(maxsize=1024)
def template(dim: tuple[int, ...], limits: Limits) -> bytes:
    """The launch structure of a launch that has not begun."""
    sizes = dim + (1,) * (4 - len(dim))
    head = _HEAD.pack(*sizes, len(dim), 0, math.prod(dim), 0)
    return head + b"".join(_LIMITED.pack(_fitted(n)) for n in (*limits, 0)) + _END.pack(0, LEND, 0)


def _fitted(limit: int) -> int:
    """A limit as 64 bits hold it: settings may mean that there is none by any large number."""
    return max(-(1 << 63), min(limit, (1 << 63) - 1))


@lru_cache(maxsize=256)
def _templates(dim: tuple[int, ...], limits: Limits, bounds: tuple[int, ...], free: int) -> bytes:
    """The launch structures of the parts of a launch."""
    one = bytearray(template(dim, limits))
    _FREE.pack_into(one, _FREE_AT, free)
    out = []
    for begin, end in pairwise(bounds):
        _ENDS.pack_into(one, _ENDS_AT, begin, end)
        out.append(bytes(one))
    return b"".join(out)


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
    args += entry.bound
    # `is None` first: to ask for the class takes longer, and few launches have a journal.
    given, taken = None, frozenset[str]()
    if journal is not None:
        assert isinstance(journal, CpuJournal)
        given, taken = journal.bounds, journal.taken(entry)
    many = given is not None and len(given) > 2
    if entry.threads is not None and threads is None and (many or given is None):
        found = schedule(entry.threads, dim, args, given, taken)
        if found is not None:
            prepare(entry, dim, args)
            return _uninterrupted(_in_parts, found, entry, dim, args, limits, journal, spare)
    if many:
        # The parts of the journal, the last one first, as an adjoint's threads go.
        every = tuple(range(len(given or ()) - 1))
        back = Schedule(given or (), tuple((k,) for k in reversed(every)))
        prepare(entry, dim, args)
        return _uninterrupted(_in_parts, back, entry, dim, args, limits, journal, spare)
    if math.prod(dim) < LARGE:
        return _whole(entry, dim, args, limits, threads, journal, spare)
    # What it saved would be lost, and never freed.
    prepare(entry, dim, args)
    return _uninterrupted(_whole, entry, dim, args, limits, threads, journal, spare)


def prepare(entry: Entry, dim: tuple[int, ...], args: bytes) -> None:
    """Makes what a launch needs before any of it has run, while it may be interrupted."""
    known = entry.code, len(dim), args
    if _prepared.get(id(entry.code)) == known:
        return
    probe = LaunchState.from_buffer_copy(template(dim, _NO_LIMITS))
    probe.end = probe.begin
    call(entry, args, probe)
    if len(_prepared) >= _BRIEFLY:
        _prepared.clear()
    _prepared[id(entry.code)] = known


# Kernels with the axes and the arguments of their last launches. They live as long as it does.
_prepared: dict[int, tuple[Any, int, bytes]] = {}
_BRIEFLY = 64
_NO_LIMITS = Limits(0, 0)


def call(entry: Entry, args: bytes, state: LaunchState) -> None:
    """Runs threads of a kernel, whose form for any arrays is made where it is needed."""
    entry.code(args, ctypes.byref(state))
    if state.error == NOT_MADE:
        _made(state)(args, ctypes.byref(state))


def _made(state: LaunchState) -> Callable[[bytes, Any], None]:
    """The entry point of a kernel whose form for any arrays is there now."""
    from engine.compile.cpu.forms import made  # late: most launches need none

    assert state.form is not None
    code = made(state.form)
    state.error, state.form = 0, None
    return code


def _uninterrupted(run: Callable[..., Outcome], *args: Any) -> Outcome:
    from engine.compile.cpu.interrupts import uninterrupted  # late: small launches need none

    return uninterrupted(run, *args)


def _whole(
    entry: Entry,
    dim: tuple[int, ...],
    args: bytes,
    limits: Limits,
    threads: tuple[int, int] | None,
    journal: Journal | None,
    spare: Callable[[], Entry] | None,
) -> Outcome:
    state = LaunchState.from_buffer_copy(template(dim, limits))
    if threads is not None:
        state.begin, state.end = threads
    if journal is not None:
        assert isinstance(journal, CpuJournal)
        journal.lend((state,))
    entry.code(args, ctypes.byref(state))
    return ended(state, args, journal, limits, spare)


def ended(
    state: LaunchState, args: bytes, journal: Journal | None, limits: Limits,
    spare: Callable[[], Entry] | None,
) -> Outcome:  # fmt: skip
    """What came of a launch that ran as a whole, and may have to go on."""
    if state.error == NOT_MADE:
        _made(state)(args, ctypes.byref(state))
    if state.error == STACK_LIMIT and spare is not None:
        # The form that saves less goes on from the first thread that was abandoned.
        state.error = 0
        call(spare(), args, state)
    if journal is None and not (
        state.error or state.stack.data or state.journal.data or state.output.data
    ):
        return NOTHING
    return _outcome((state,), (state.begin, state.end), journal, limits)


def _in_parts(
    how: Schedule,
    entry: Entry,
    dim: tuple[int, ...],
    args: bytes,
    limits: Limits,
    journal: Journal | None,
    spare: Callable[[], Entry] | None,
) -> Outcome:
    count = len(how.bounds) - 1
    structures = bytearray(_templates(dim, limits, how.bounds, int(how.free) if BLOCKS else -1))
    n = thread_count()
    workers, done, memory = pool(), 0, None
    taken, dealt = frozenset[str](), []
    if isinstance(journal, CpuJournal):
        journal.lend(list((LaunchState * count).from_buffer(structures)))
        taken = journal.taken(entry)
    if not taken and workers is not None and how.told is not None:
        done, memory = _at_once(workers, how.told, entry.code, args, structures, count, n)
        if done == DONE:
            return NOTHING
    states = (LaunchState * count).from_buffer(structures)
    words = np.frombuffer(structures, np.int64).reshape(count, -1)
    if done == LEFT:
        assert how.told is not None and memory is not None
        asked = journal is None and any(s.journal.data for s in states)
        won = how.told.won(memory) if asked and how.told.winners else ()
        return _outcome(list(states), how.bounds, journal, limits, won)
    from engine.compile.cpu.copies import blocks
    from engine.compile.cpu.dealing import deal
    from engine.compile.cpu.private import Merged

    mine: Sequence[Any] = [None] * len(how.private)
    if memory is not None and how.told is not None:
        mine = [memory[a:b] for a, b in pairwise((0, *accumulate(how.told.sizes)))]
    merged = [Merged(p, count - 1, m) for p, m in zip(how.private, mine, strict=True)]
    if taken and entry.threads is not None:
        assert isinstance(journal, CpuJournal)
        dealt = deal(journal.winners, entry.threads, args, count)
    lent = [*merged, *(d.lent for d in dealt)]
    given = blocks(lent, args, count) if lent else args
    stride = len(args) if lent else 0
    workers = workers if n > 1 else None
    winners: list[Winners] = []
    for number, parts in enumerate(how.rounds[done:]):
        if number > 0 or memory is None:
            _run_parts(workers, entry, given, stride, states, parts, n)
        errors = words[:, _ERROR]
        if not errors.any():
            continue
        left = [k for k in parts if errors[k] == STACK_LIMIT]
        if left and spare is not None:
            for k in left:
                states[k].error = states[k].stack.cap = states[k].stack.size = 0
            other = spare()
            prepare(other, dim, args)
            # It reads arrays again that the other form did not: a proof of its own.
            assert other.threads is not None
            its = schedule(other.threads, dim, args, how.bounds, taken)
            # Its rounds and copies are those that have begun.
            free_of_order = its == how
            for k in left:
                states[k].free = int(free_of_order and how.free) if BLOCKS else -1
            todo = left if free_of_order else left[::-1]
            _run_parts(workers if free_of_order else None, other, given, stride, states, todo, n)
        if errors.any():
            break
    else:
        # Only a run that saves something has an adjoint that asks.
        saves = journal is None and bool(merged) and any(s.journal.data for s in states)
        told = [m.merge(saves) for m in merged]
        winners = [w for w in told if w is not None]
    for d in dealt:
        d.put_back()
    if journal is None and not words[:, _LEFT].any():
        return NOTHING
    return _outcome(list(states), how.bounds, journal, limits, winners)


def _at_once(
    workers: Pool, told: Rounds, code: Any, args: bytes, structures: bytearray,
    count: int, threads: int,
) -> tuple[int, NDArray[np.uint8] | None]:  # fmt: skip
    """Has compiled code run a launch: what it gives, and the parts' own memory, if any has run."""
    launches = ctypes.byref(_BYTE.from_buffer(structures))
    memory = workers.memory(told.total) if told.total else None
    at = None if memory is None else memory.ctypes.data
    came = workers.launch(code, args, launches, count, told.words, at, threads)
    if came == DONE:
        if memory is not None:
            workers.keep(memory)
        return came, None
    if came == NO_MEMORY:
        return 0, None
    return came, _NONE if memory is None else memory


def _run_parts(
    workers: Pool | None, entry: Entry, blocks: bytes, stride: int,
    states: ctypes.Array[LaunchState], parts: Sequence[int], threads: int,
) -> None:  # fmt: skip
    if workers is not None:
        wanted = (ctypes.c_int64 * len(parts))(*parts)
        workers.run(entry.code, blocks, stride, states, wanted, threads)
        return
    for k in parts:
        block = blocks[k * stride : (k + 1) * stride] if stride else blocks
        entry.code(block, ctypes.byref(states[k]))
        if states[k].error not in (0, STACK_LIMIT):
            return
        if states[k].stack.data:
            free(states[k].stack.data)
            states[k].stack.data = None


def _outcome(
    states: Sequence[LaunchState], bounds: tuple[int, ...], journal: Journal | None, limits: Limits,
    winners: Sequence[Winners] = (),
) -> Outcome:  # fmt: skip
    if journal is not None:
        for s in states:
            ctypes.memset(ctypes.byref(s.journal), 0, _BUFFER)
    error = next((s.error for s in states if s.error), 0)
    saved = sum(s.journal.size for s in states)
    if not error and 0 < limits.journal < saved:
        error = JOURNAL_LIMIT
    stack = max(s.stack.cap for s in states)
    output = b"".join([contents(s.output) for s in states])
    if not (error or stack or saved or output):
        return NOTHING
    left = None
    if saved:
        left = CpuJournal(states, bounds, winners)
        for s in states:
            _drop(s.stack)
            _drop(s.output)
    else:
        for s in states:
            release(s)
    return Outcome(error, left, output, stack)


def _drop(buffer: Buffer) -> None:
    # Out of the structure first: an interruption must leave nothing that is freed twice.
    data = buffer.data
    buffer.data, buffer.size, buffer.cap = None, 0, 0
    if data:
        free(data)
