"""Small launches in sequence with constant arguments, as one call of compiled code.

What they write is announced by whoever has them run.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence

from engine.accel import launcher
from engine.compile.backend import NOTHING, Limits, Outcome, Step
from engine.compile.cpu import runner, schedule

# Operations (about a nanosecond each) after which Python looks for Ctrl-C, and what is taken for a
# launch of which nothing is known.
SLICE, UNKNOWN, LEAST = 4_000_000, 500_000, 100
_NUMBER = struct.Struct("<q")


class Write:
    """How memory is filled or copied: what a `CachedLaunch` is of a kernel."""

    __slots__ = ("_code", "cost")

    def __init__(self, code: int, nbytes: int) -> None:
        self._code = code
        self.cost = nbytes // 4

    def batch_parts(self) -> tuple[int, bytes, bytes, int]:
        """See `CachedLaunch.batch_parts`."""
        return self._code, runner.template((1,), Limits(0, 0)), b"", 0


def filling(address: int, item: bytes, count: int) -> Step | None:
    """Elements that all become the same; None where that cannot be, or not yet."""
    functions = launcher.maker.functions
    if functions is None:
        return None
    args = struct.pack("<3q", address, count, len(item)) + item
    return Write(functions.fill, len(item) * count), args, None


def copying(to: int, of: int, nbytes: int) -> Step | None:
    """Bytes that are copied; None where that cannot be, or not yet."""
    functions = launcher.maker.functions
    if functions is None:
        return None
    return Write(functions.copy, nbytes), struct.pack("<3q", to, of, nbytes), None


class Batch:
    """Runs launches. limits: those of all of them."""

    __slots__ = ("_at", "_ends", "_kept", "_many", "_most", "_steps", "limits")

    def __init__(self, steps: Sequence[Step], limits: Limits, many: Callable[..., object]) -> None:
        self.limits = limits
        self._steps = steps
        self._many = many
        self._kept: list[object] = []
        words, self._ends, cost = [], [], 0
        self._most = 0
        begins: dict[bytes, int] = {}
        for number, (cached_launch, args, _) in enumerate(steps):
            code, template, bound, work = cached_launch.batch_parts()
            if template not in begins:
                begins[template] = self._address(template)
            words += [code, self._address(args + bound), begins[template]]
            self._most = max(self._most, work)
            cost += UNKNOWN if cached_launch.cost is None else max(cached_launch.cost, LEAST)
            if cost >= SLICE or number == len(steps) - 1:
                self._ends.append(number + 1)
                cost = 0
        memory = (ctypes.c_int64 * len(words))(*words)
        self._kept.append(memory)
        self._at = ctypes.addressof(memory)

    def _address(self, data: bytes) -> int:
        memory = ctypes.create_string_buffer(data, max(len(data), 1))
        self._kept.append(memory)
        return ctypes.addressof(memory)

    def fits(self) -> bool:
        """Whether none of them is to be cut: tests set what is."""
        return self._most < schedule.LEAST

    def run(self, tell: Callable[[int, Outcome], object], done: list[int]) -> None:
        """Runs all of them, whose writes are announced.

        tell: told of each that leaves something, by its number; where it raises, no more run.
        done: holds how many have run.
        """
        first, cell = 0, ctypes.c_int64(0)
        progress = ctypes.addressof(cell)
        for end in self._ends:
            while first < end:
                try:
                    came = self._many(self._at, first, end, progress)
                finally:  # Ctrl-C is told of here, after what has run
                    done[0] = cell.value
                if came is True:
                    first = end
                else:
                    assert isinstance(came, bytes)
                    (first,) = _NUMBER.unpack_from(came)
                    left = self._left(first, came)
                    if left is not NOTHING:
                        tell(first, left)
                    first += 1
                    done[0] = cell.value = first

    def _left(self, number: int, came: bytes) -> Outcome:
        cached_launch, args, spare = self._steps[number]
        args += cached_launch.batch_parts()[2]
        state = runner.LaunchState.from_buffer_copy(came, _NUMBER.size)
        return runner.ended(state, args, None, self.limits, spare)


def batch(steps: Sequence[Step], limits: Limits) -> Batch | None:
    """Launches as one; None where that cannot be, or not yet."""
    functions = launcher.maker.functions
    if functions is None:
        launcher.maker.ask()
        return None
    return Batch(steps, limits, functions.many)
