"""Reports the progress of checks on the status page, with times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from adtool.job import CheckOptions
from adtool.report import Duration
from adtool.status import StatusWriter

if TYPE_CHECKING:
    from engine import CapturedTape


class CheckProgress:
    """Counts the steps of all tapes together. A step is a launch, or a tape as a whole."""

    def __init__(
        self, page: StatusWriter, tapes: Sequence[CapturedTape], options: CheckOptions
    ) -> None:
        self._page = page
        self._launches = [_launches(t, n, options) for n, t in enumerate(tapes)]
        whole = options.checks_whole
        self._total = sum(len(x) + whole for x in self._launches if x)
        self._before = 0  # steps of the tapes that are done
        self._tape = 0
        self._since = time.monotonic()
        self._running: tuple[int, str] | None = None  # launch and kernel
        self.durations: list[Duration] = []

    def begin(self, tape: int) -> None:
        """Says that the checks of a tape begin."""
        self._tape = tape
        self._say(0, self._launches[tape][0] if self._launches[tape] else -1, "")
        self._since = time.monotonic()
        self._running = None

    def __call__(self, done: int, total: int, kernel: str) -> None:
        """Takes what the engine tells of one tape."""
        now = time.monotonic()
        if self._running is not None:
            launch, name = self._running
            self.durations.append(Duration(self._tape, launch, name, now - self._since))
        self._since = now
        known = self._launches[self._tape]
        launch = known[done] if done < len(known) else -1
        self._running = (launch, kernel) if done < total else None
        if self._running is None:
            self._before += total
            done = 0
        self._say(done, launch, kernel)

    def among_all(self, tape: int, launch: int, done: int, kernel: str) -> None:
        """Says what is checked where the order is not that of the tapes. done: launches begun."""
        self._page.check(tape, len(self._launches), launch, done, self._total, kernel)

    def of_functions(self, tapes: int) -> Callable[[int, int, str], None]:
        """Takes what is told of functions of frameworks. tapes: how many were checked before."""

        def told(done: int, total: int, name: str) -> None:
            self._page.check(tapes, tapes + 1, -1, self._total + done, self._total + total, name)

        return told

    def slowest(self, count: int) -> tuple[Duration, ...]:
        """The steps that took longest, the slowest first."""
        return tuple(sorted(self.durations, key=lambda d: -d.seconds)[:count])

    def _say(self, done: int, launch: int, kernel: str) -> None:
        self._page.check(
            self._tape, len(self._launches), launch, self._before + done, self._total, kernel
        )


def _launches(tape: CapturedTape, number: int, options: CheckOptions) -> list[int]:
    """The numbers of the launches of a tape that are checked."""
    wanted = options.launches_of(number)
    if wanted is None:
        return []
    kernels = [r.kernel.key for r in tape.records if r.kernel is not None]
    return [
        i for i, k in enumerate(kernels)
        if not options.deselects(k) and (not wanted or i in wanted)
    ]  # fmt: skip
