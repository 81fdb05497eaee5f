"""ScopedTimer: times a block, and names the part of a tape that is recorded in it."""

from __future__ import annotations

import builtins
from time import perf_counter
from typing import Any

from engine.runtime import events


class ScopedTimer:
    """`with ScopedTimer("name"):` prints how long the block took.

    Args:
        name: what is timed.
        active: False makes it do nothing.
        print: whether to print the time.
        detailed: prints a profile of Python functions too.
        dict: the time in milliseconds is appended to `dict[name]`.
        skip_tape: True opens no scope on the active tape.
    """

    def __init__(
        self,
        name: str,
        active: bool = True,
        print: bool = True,
        detailed: bool = False,
        dict: dict[str, list[float]] | None = None,
        use_nvtx: bool = False,
        color: int | str = "",
        synchronize: bool = False,
        cuda_filter: int = 0,
        report_func: Any = None,
        skip_tape: bool = False,
    ) -> None:
        del use_nvtx, color, synchronize, cuda_filter, report_func
        self.name = name
        self.active = active
        self.print = print
        self.detailed = detailed
        self.dict = dict
        self.elapsed = 0.0
        self._skip_tape = skip_tape
        self._tape: events.Recorder | None = None
        self._profile: Any = None

    def __enter__(self) -> ScopedTimer:
        if not self.active:
            return self
        self._tape = None if self._skip_tape else events.tape()
        if self._tape is not None:
            self._tape.record_scope_begin(self.name)
        if self.detailed:
            import cProfile

            self._profile = cProfile.Profile()
            self._profile.enable()
        self._start = perf_counter()
        return self

    def __exit__(self, *exc: object) -> None:
        if not self.active:
            return
        self.elapsed = (perf_counter() - self._start) * 1000.0
        if self._profile is not None:
            self._profile.disable()
            self._profile.print_stats(sort="tottime")
        if self._tape is not None:
            self._tape.record_scope_end()
        if self.dict is not None:
            self.dict.setdefault(self.name, []).append(self.elapsed)
        if self.print:
            builtins.print(f"{self.name} took {self.elapsed:.2f} ms")
