"""Small launches of one kernel over one grid, with the constant work done once.

Such a launch has no parts and, as most end, leaves nothing: its launch structure is then as it was
before, and serves the next one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from engine import config
from engine.accelerator import accelerator
from engine.compile.backend import NOTHING, Entry, Limits, Marks, Outcome
from engine.compile.cpu import runner, schedule
from engine.compile.threads import Threads

# An entry point as a function that takes arguments as they are: half the time of a checked call.
_SOON = 500  # operations
_UNCHECKED = ctypes.CFUNCTYPE(None)


class CachedLaunch:
    """Runs a kernel over a grid that is not cut.

    stack, journal: the limits of all its runs. cost: operations of one, None where that is unknown.
    """

    __slots__ = (
        "_bound",
        "_call",
        "_entry",
        "_idle",
        "_layout",
        "_limits",
        "_marks",
        "_runs_until_native",
        "_template",
        "_work",
        "address",
        "cost",
        "journal",
        "stack",
        "threads",
        "words",
    )  # fmt: skip

    def __init__(
        self, entry: Entry, dim: tuple[int, ...], limits: Limits, threads: Threads | None,
        layout: tuple[int, ...] | None, work: int, marks: Marks | None,
    ) -> None:  # fmt: skip
        self.stack, self.journal = limits
        self._limits = limits
        self.threads = threads
        self._entry = entry  # whose library has to stay
        call = _UNCHECKED(self._code)
        call.argtypes = None  # type: ignore[assignment]
        self._call = call
        self._bound = entry.bound
        self._template = runner.template(dim, limits)
        self._layout = layout
        self._work = work
        most = None if entry.threads is None else entry.threads.most
        self.cost: int | None = (work or None) if most is None else prod(dim) * most
        # Of many runs: what native functions are told of it, and where.
        self.words: object = None
        self.address: int | None = None
        self._marks = marks
        self._runs_until_native = config.native_after  # runs before one goes without Python
        # Structures that no thread uses: a list gives and takes one at a time.
        self._idle: list[tuple[bytearray, object]] = []

    def batch_parts(self) -> tuple[int, bytes, bytes, int]:
        """The code's address, its launch structure, the arguments that follow those of a run.

        Also the work that decides whether it is cut.
        """
        return self._code, self._template, self._bound, self._work

    @property
    def _code(self) -> int:
        return ctypes.cast(self._entry.code, ctypes.c_void_p).value or 0

    @property
    def any_arguments(self) -> bool:
        """Whether it is the short way for all arguments alike."""
        return self._layout is None

    def run(self, args: bytes, spare: Callable[[], Entry] | None) -> Outcome | None:
        """What `Backend.run` gives; None where that has to be asked, and nothing has run."""
        if self._work >= schedule.LEAST:
            return None  # as tests set it
        if self._layout is not None and self.threads.layout(args) != self._layout:  # type: ignore[union-attr]
            return None
        if self._bound:
            args += self._bound
        try:
            state = self._idle.pop()
        except IndexError:
            memory = bytearray(self._template)
            state = memory, ctypes.byref((ctypes.c_char * len(memory)).from_buffer(memory))
        self._call(args, state[1])
        if state[0] == self._template:
            self._idle.append(state)
            self._runs_until_native -= 1
            if self._runs_until_native <= 0:
                self.request_native()
            return NOTHING
        return runner.ended(
            runner.LaunchState.from_buffer(state[0]), args, None, self._limits, spare
        )

    def outcome_of(
        self, values: list[Any], args: bytes, came: bytes, spare: Callable[[], Entry] | None
    ) -> Outcome:
        """What came of a run without Python that left something: its launch structure."""
        marks = self._marks
        if marks is not None and marks.gradients:
            args += b"".join([values[i]._grad._packed for i in marks.places])
        state = runner.LaunchState.from_buffer_copy(came)
        return runner.ended(state, args + self._bound, None, self._limits, spare)

    def _ends_soon(self) -> bool:
        """Whether a run is over before another thread of Python could begin."""
        threads = self._entry.threads
        few = self.cost is not None and self.cost <= _SOON
        return few and threads is not None and threads.ends_soon and not self._entry.messages

    def request_native(self) -> None:
        """Has runs from now on done without Python, if that can be and `config` allows it."""
        self._runs_until_native = max(config.native_after, 1)
        accelerator.repeated(self)

    @property
    def may_be_native(self) -> bool:
        """Whether native launches may take it, and do not yet."""
        return self._marks is not None and self._layout is None and self.address is None

    def native_parts(self) -> tuple[int, bytes, bytes, Sequence[int], bool]:
        """What native launches need of it: see `engine.accel.launcher.run_words`."""
        assert self._marks is not None
        return self._code, self._template, self._bound, self._marks.places, self._ends_soon()


def cached_launch(
    entry: Entry, dim: tuple[int, ...], args: bytes, limits: Limits, marks: Marks | None
) -> CachedLaunch | None:
    """The short way to run launches like this one; None where there is none."""
    made = _made(entry, dim, args, limits, marks)
    if made is not None and config.native_after == 0:
        made.request_native()
    return made


def _made(
    entry: Entry, dim: tuple[int, ...], args: bytes, limits: Limits, marks: Marks | None
) -> CachedLaunch | None:
    total = prod(dim)
    if not 0 < total < runner.LARGE:
        return None
    threads = entry.threads
    if threads is None or total < 2:
        return CachedLaunch(entry, dim, limits, None, None, 0, marks)
    if threads.most is not None:
        work = total * threads.most
        if work >= schedule.LEAST:
            return None
        return CachedLaunch(entry, dim, limits, None, None, work, marks)
    work = total * threads.classes_of(dim, args).cost
    if work >= schedule.LEAST:
        return None
    # What its loops cost, extents and integers say alone.
    return CachedLaunch(entry, dim, limits, threads, threads.layout(args), work, marks)
