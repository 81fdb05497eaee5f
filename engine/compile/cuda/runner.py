"""Runs compiled kernels on a GPU: the launch structure, frames of saved values, errors.

Frames have one size. Where the text of a kernel says how much its threads save, that is it. Else it
is guessed: an adjoint's threads that need more have had no effect, and are run again with larger
frames, fewer at a time; a recorded launch has, and all that it changed is put back before.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.classes import dataclass
from engine.codegen.apart import SUFFIX, WIDE
from engine.codegen.cuda import local_stack
from engine.codegen.winners import MOST
from engine.compile.backend import (
    IN_ORDER,
    JOURNAL_LIMIT,
    NO_MEMORY,
    NOTHING,
    STACK_LIMIT,
    TOO_LARGE,
    Entry,
    Journal,
    Limits,
    Outcome,
    Restless,
    shape,
)
from engine.compile.cuda import apart, winners
from engine.compile.cuda.gpu import parameters
from engine.compile.cuda.order import check_order, needs_order, restless

if TYPE_CHECKING:
    from engine.compile.cuda import Code, Cuda
    from engine.compile.cuda.gpu import Gpu
    from engine.compile.cuda.winners import Won

BLOCK = 256  # CUDA threads of a block
_LARGEST_BLOCK = 1024
FEW = 4096  # threads whose launch takes one form whatever it is given
_MOST_BLOCKS = 1 << 30
FIRST = 1024  # bytes of frames whose size is a guess, at first
GROWTH = 8  # how much larger the next ones are
FRAMES = 1 << 30  # bytes of all frames of stacks together, where one is not larger by itself
_PER_SM = 2048  # CUDA threads that run at once on one multiprocessor, at most
_ROOM = (1 << 14, 1 << 22)  # pairs of words for messages: the least, and the most
_ORDERLY = Outcome(journal=IN_ORDER)


class Frames(ctypes.Structure):
    """`eng_frames`."""

    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_int64))


class Messages(ctypes.Structure):
    """`eng_messages`."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("used", ctypes.c_void_p), ("room", ctypes.c_int64)
    )  # fmt: skip


class Claims(ctypes.Structure):
    """`eng_claims`."""

    _fields_ = (("base", ctypes.c_uint64), ("words", ctypes.c_void_p))


class Launch(ctypes.Structure):
    """`eng_launch` of the CUDA dialect."""

    _fields_ = (
        ("dim", ctypes.c_int64 * 4), ("ndim", ctypes.c_int64), ("begin", ctypes.c_int64),
        ("end", ctypes.c_int64), ("error", ctypes.c_void_p), ("ended", ctypes.c_void_p),
        ("again", ctypes.c_int64), ("stack", Frames), ("beyond", ctypes.c_int64),
        ("journal", Frames), ("output", Messages), ("wide", ctypes.c_int64),
        ("in_order", ctypes.c_int64), ("claims", Claims * MOST),
    )  # fmt: skip
    begin: int
    end: int
    error: int
    ended: int
    again: int
    stack: Frames
    beyond: int
    journal: Frames
    output: Messages
    wide: int
    in_order: int
    claims: ctypes.Array[Claims]


@dataclass(frozen=True)
class Memory:
    """Memory of the device, as long as this lives."""

    owner: object
    address: int
    nbytes: int


class CudaJournal(Journal):
    """Frames of threads from `begin` on, `count` of them, of `size` bytes each.

    won: who won what several threads fought for.
    """

    __slots__ = ("_gpu", "begin", "count", "in_order", "memory", "size", "won")

    def __init__(
        self, gpu: Gpu, memory: Memory, size: int, begin: int, count: int, won: Won, in_order: bool
    ) -> None:
        self._gpu = gpu
        self.memory = memory
        self.size = size
        self.begin = begin
        self.count = count
        self.won = won
        self.in_order = in_order

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes

    def words(self) -> NDArray[np.int64]:
        found = self._gpu.read(self.memory.address, self.count * self.size).view(np.int64)
        frames = found.reshape(self.count, -1)
        return np.concatenate([f[1 : 1 + f[0] // 8] for f in frames])


def run(
    backend: Cuda,
    entry: Entry,
    dim: tuple[int, ...],
    args: bytes,
    limits: Limits,
    threads: tuple[int, int] | None,
    journal: Journal | None,
    spare: Callable[[], Entry] | None,
) -> Outcome:
    """See `Backend.run`."""
    code: Code = entry.code
    total = math.prod(dim)
    begin, end = (0, total) if threads is None else threads
    if begin >= end:
        return NOTHING
    if too_large(code, dim, end):
        return Outcome(TOO_LARGE)
    made = Run(backend, entry, dim, args, begin, end, limits, journal)
    if not code.facts.context:
        made.launch(code)
        return made.left
    try:
        return made.with_context(entry, journal, spare)
    except MemoryError:
        return Outcome(NO_MEMORY)


def _won(entry: Entry, dim: tuple[int, ...], args: bytes, journal: Journal | None) -> Won:
    """What is known of minima and maxima after a launch, or by what an earlier one left."""
    if isinstance(journal, CudaJournal):
        return journal.won
    return winners.won(entry, dim, args) if entry.code.facts.writes else winners.NOTHING


def restless_of(
    entry: Entry, dim: tuple[int, ...], args: bytes, journal: Journal | None
) -> Restless | None:
    """See `Backend.restless`."""
    return restless(entry.threads, dim, args, _won(entry, dim, args, journal))


def is_many(count: int, at_once: int) -> bool:
    """Whether a GPU has enough to do where CUDA threads run several threads each."""
    return count >= at_once


def too_large(code: Code, dim: tuple[int, ...], end: int) -> bool:
    """Whether the indices of threads are more than the kernel can count."""
    axes = dim[: code.facts.axes]
    return max(axes, default=0) > apart.MOST or (code.linear and end > apart.MOST)


class Run:
    """One launch on its way.

    in_order: one CUDA thread runs its threads, one after the other. one_block: one block of CUDA
    threads, which adds up what all add to one element in an order of its own, always the same.
    """

    in_order = one_block = False

    def __init__(
        self, backend: Cuda, entry: Entry, dim: tuple[int, ...], args: bytes, begin: int, end: int,
        limits: Limits, journal: Journal | None = None,
    ) -> None:  # fmt: skip
        args += entry.bound
        code: Code = entry.code
        self.backend = backend
        self.gpu = backend.gpu
        self.dim = dim
        self.args = args
        self.block = ctypes.create_string_buffer(args, max(len(args), 8))
        self.count = end - begin
        self.limits = limits
        asked = entry.in_order()
        followed = journal is not None and journal.in_order
        # To look how arrays lie takes longer than a few threads gain by it.
        whole = begin == 0 and end == math.prod(dim)
        seen = code.apart.useful and whole and (asked or followed or self.count >= FEW)
        self.form = apart.form_of(entry, dim, args) if seen else apart.ANY
        sizes = (ctypes.c_int64 * 4)(*dim, *[1] * (4 - len(dim)))
        self.state = Launch(sizes, len(dim), begin, end, backend.scratch)
        self.won = _won(entry, dim, args, journal)
        if self.count > 1:
            if code.is_adjoint and entry.threads is not None and not followed:
                check_order(entry.symbol, entry.threads, dim, args, self.won)
            if asked or followed:
                self._take_order(entry)
        # What is left of a launch that saves nothing.
        self.left = _ORDERLY if asked and not code.is_adjoint else NOTHING

    def _take_order(self, entry: Entry) -> None:
        """Finds out whether one thread has to run it, or one block, which adds up by a tree."""
        code: Code = entry.code
        saves_little = not code.facts.context or local_stack(code.frames) is not None
        if self.form and code.apart.sums and saves_little:
            sums = frozenset(k for k, _ in code.apart.sums)
            alone = restless(entry.threads, self.dim, self.args, self.won, sums)
            if alone is None:
                self.one_block = restless(entry.threads, self.dim, self.args, self.won) is not None
                return
        self.in_order = needs_order(entry, self.dim, self.args, self.won)

    def memory(self, nbytes: int, zero: bool = False) -> Memory:
        """Memory for this launch. It may be given back before that is over: to its stream."""
        owner, address = self.backend.allocate(0, nbytes, zero)
        return Memory(owner, address, nbytes)

    def launch(self, code: Code, blocks: int = _MOST_BLOCKS, block: int = 0) -> None:
        """All threads, by so many blocks at most, of so many threads."""
        self.gpu.launch(*self.ready(code, blocks, block))

    def ready(
        self, code: Code, blocks: int = _MOST_BLOCKS, block: int = 0
    ) -> tuple[Any, int, int, Any]:
        """What `Gpu.launch` gets."""
        count, suffix = self.count, ""
        if self.in_order:
            self.state.in_order = 1
            function = self.backend.function(code)
            return function, 1, 1, parameters(self.block, self.state)
        if not block:
            asked, most = shape.get() or (BLOCK, 0)
            block = min(-(-max(asked, 1) // 32) * 32, _LARGEST_BLOCK)
            blocks = min(blocks, most) if most > 0 else blocks
        if self.one_block:  # no other size of blocks, which would be another order
            blocks, block = 1, BLOCK
        pointers: list[ctypes.c_void_p] = []
        if self.form and code.apart.useful:
            suffix = SUFFIX
            pointers = [ctypes.c_void_p.from_buffer(self.block, at) for at in code.pointers]
            filled = self.gpu.properties.sm_count * (_PER_SM // block)
            if code.apart.sums:  # each block adds to memory once
                blocks = min(blocks, filled)
            rows = self.form == apart.WIDE and not self.one_block
            if rows and is_many(count, filled * block):
                self.state.wide, count = 1, -(-count // WIDE)
        blocks = min(blocks, -(-count // block))
        function = self.backend.function(code, suffix)
        return function, blocks, block, parameters(self.block, self.state, *pointers)

    def with_context(
        self, entry: Entry, journal: Journal | None, spare: Callable[[], Entry] | None
    ) -> Outcome:
        """A launch whose threads save something, or say something."""
        code: Code = entry.code
        state, words = self.state, code.frames.words
        head = self.memory(16, zero=True)  # the error, and how much was said
        state.error = head.address
        room, said = 0, None
        if words:
            room = min(max(_ROOM[0], self.count * words), _ROOM[1])
            said = self.memory(16 * room)
            state.output = Messages(said.address, head.address + 8, room)
        if isinstance(journal, CudaJournal):
            assert (journal.begin, journal.count) == (state.begin, self.count)
            state.journal = Frames(journal.memory.address, journal.size)
        left: CudaJournal | None = None
        if code.facts.writes:
            errors, used, left = self._recorded(entry, head)
        else:
            errors, used = self._saved(code, head, spare)
        error, output = errors.bit_length() - 1 if errors else 0, b""
        if used and said is not None:
            output = self._output(said, min(used, room))
            error = error or (NO_MEMORY if used > room else 0)
        stack = max(state.stack.bytes - state.beyond, 0) or code.frames.stack or 0
        came = left or self.left.journal
        if not (error or output or came or stack):
            return NOTHING
        return Outcome(error, None if error else came, output, stack)

    def _ended(self, head: Memory) -> tuple[int, int]:
        """The bits of errors, and how many pairs of words were said; waits for the launch."""
        errors, used = self.gpu.read(head.address, 16).view(np.uint64)
        return int(errors), int(used)

    def _output(self, said: Memory, used: int) -> bytes:
        """What threads said, one after the other in their order."""
        pairs = self.gpu.read(said.address, 16 * used).view(np.uint64).reshape(-1, 2)
        order = np.argsort(pairs[:, 0], kind="stable")
        out: bytes = pairs[order, 1].tobytes()
        return out

    # ---- stacks

    def _saved(
        self, code: Code, head: Memory, spare: Callable[[], Entry] | None
    ) -> tuple[int, int]:
        """Runs a kernel whose threads have a stack. Those that exceed it are run again."""
        state = self.state
        if local_stack(code.frames) is not None:
            self.launch(code)
            # Nothing can end a thread whose stack is large enough.
            quiet = not (code.facts.reads or code.frames.words or state.again)
            return (0, 0) if quiet else self._ended(head)
        if not state.ended:
            self.kept = self.memory(self.count, zero=True)
            state.ended = self.kept.address
        state.beyond = _rounded(code.frames.beyond)
        for size in _sizes(code.frames.stack, self.limits.stack):
            size += state.beyond
            block = BLOCK if size * BLOCK <= FRAMES // 16 else 32
            blocks = min(self.gpu.properties.sm_count * (_PER_SM // block),
                         max(FRAMES // (size * block), 1), -(-self.count // block))  # fmt: skip
            if self.in_order:
                blocks = block = 1
            try:
                frames = self.memory(blocks * block * size)
            except MemoryError:
                break
            state.stack = Frames(frames.address, size)
            self.launch(code, blocks, block)
            errors, used = self._ended(head)
            if errors != 1 << STACK_LIMIT:
                return errors, used
            self.gpu.clear(head.address, 8)
            state.again = STACK_LIMIT
        if spare is not None:  # the form that saves less goes on with those threads
            self.form = apart.ANY  # what is known is known of the other one
            return self._saved(spare().code, head, None)
        return 1 << (STACK_LIMIT if state.again else NO_MEMORY), 0

    # ---- journals

    def _recorded(self, entry: Entry, head: Memory) -> tuple[int, int, CudaJournal | None]:
        """Runs a kernel that writes a journal, with frames that are large enough."""
        code: Code = entry.code
        known, guesses = code.frames.journal, self.backend.guesses
        limit = self.limits.journal
        most = max(limit // self.count // 8 * 8 - 8, 0) if limit > 0 else 0
        first = guesses.get(code.symbol) if known is None else known
        before: list[tuple[int, Memory]] | None = None
        claims = winners.Claimed(self, entry, self.won)
        errors = used = 0
        for size in _sizes(first, most, known is not None, limit > 0):
            if known is None and before is None:
                before = self._written(entry)
            for address, kept in before or ():
                if errors:
                    self.gpu.move(address, kept.address, kept.nbytes)
            if errors:
                self.gpu.clear(head.address, 16)
                self.gpu.clear(int.from_bytes(self.args[-8:], "little"), code.notes)
            frames = self.memory((size + 8) * self.count)
            self.state.journal = Frames(frames.address, size + 8)
            claims.clear()
            self.launch(code)
            if known is not None and size >= known and not code.frames.words:
                errors = used = 0  # nothing can end a thread, and nobody need wait
            else:
                errors, used = self._ended(head)
            if not errors:
                guesses[code.symbol] = size
                claims.crown()
                return 0, used, CudaJournal(
                    self.gpu, frames, size + 8, self.state.begin, self.count, self.won,
                    self.left.journal is not None,
                )  # fmt: skip
            if errors != 1 << JOURNAL_LIMIT:
                break
        return errors, used, None

    def _written(self, entry: Entry) -> list[tuple[int, Memory]]:
        """Copies of all that a launch may change, each with its address."""
        code: Code = entry.code
        assert entry.threads is not None
        spans = {a.ends for a in entry.threads.arrays(self.args)
                 if a.name in code.facts.written and not a.empty}  # fmt: skip
        out = []
        for lo, hi in sorted(spans):
            kept = self.memory(hi - lo)
            self.gpu.move(kept.address, lo, hi - lo)
            out.append((lo, kept))
        return out


def _rounded(size: int) -> int:
    return -(-size // 8) * 8


def _sizes(
    first: int | None, limit: int, enough: bool = True, limited: bool | None = None
) -> Iterator[int]:
    """Sizes of frames to try, each larger than the one before.

    first: what is needed if `enough`, else a guess. limit: 0 for none, unless `limited`.
    """
    limited = limit > 0 if limited is None else limited
    size = FIRST if first is None else _rounded(first)
    while limited is False or size < limit:
        yield size
        if enough and first is not None:
            return
        size *= GROWTH
    yield _rounded(limit)
