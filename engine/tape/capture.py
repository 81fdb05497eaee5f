"""Captures every tape of a program, for tools that look at a run afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.diagnostics.site import Site, call_site
from engine.runtime import recording

if TYPE_CHECKING:
    from engine.runtime.kernel import Kernel
    from engine.tape.records import Record

# Called before a launch runs: kernel key, how many launches came before, the user's call.
OnLaunch = Callable[[str, int, "Site | None"], None]


@dataclass(slots=True)
class CapturedTape:
    """What one tape recorded between two resets. Outlives the tape."""

    index: int
    records: list[Record]


@dataclass(slots=True)
class Capture:
    """Everything captured so far. launches: how many launches ran, on a tape or not."""

    tapes: list[CapturedTape] = field(default_factory=list)
    launches: int = 0
    on_launch: OnLaunch | None = None

    @property
    def bytes(self) -> int:
        """Memory that the copies of inputs take up."""
        from engine.tape.memory import memory_of

        return memory_of([r for tape in self.tapes for r in tape.records]).inputs

    def _observe(self, kernel: Kernel, dim: tuple[int, ...]) -> None:
        del dim
        index = self.launches
        self.launches += 1
        if self.on_launch is not None:
            self.on_launch(kernel.key, index, call_site(2))


# Of the whole process, not of a context: tapes made in any thread are captured.
_current: Capture | None = None
_lock = threading.Lock()


def register(records: list[Record]) -> CapturedTape | None:
    """Tells the capture, if there is one, of a tape's (new) list of records."""
    with _lock:
        if _current is None:
            return None
        tape = CapturedTape(len(_current.tapes), records)
        _current.tapes.append(tape)
        return tape


@contextmanager
def capturing(on_launch: OnLaunch | None = None) -> Iterator[Capture]:
    """While active, every tape that is made is captured, with copies of all launch inputs.

    The captured records outlive their tapes, `Tape.reset` included.

    on_launch: called before each launch runs, also of launches off any tape.
    """
    global _current
    capture = Capture(on_launch=on_launch)
    with _lock:
        outer, _current = _current, capture
    recording.observers.append(capture._observe)
    try:
        yield capture
    finally:
        recording.observers.remove(capture._observe)
        with _lock:
            _current = outer
