"""Faults of the target's launches, noted as they happen, so that no ending loses them."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from adtool import codec, files
from engine import Fault
from engine.classes import dataclass

if TYPE_CHECKING:
    from engine import Capture, CapturedTape


@dataclass(frozen=True, slots=True)
class Seen:
    """A fault, as it was seen first.

    launch: the number of the launch among all of the run. count: in how many launches it was
    seen. tape, index: the tape that the launch is on and its number there, -1 for none.
    """

    fault: Fault
    launch: int
    count: int = 1
    tape: int = -1
    index: int = -1


@dataclass(frozen=True, slots=True)
class _Page:
    faults: tuple[Seen, ...] = ()


# The only log that is told, while something runs that is no part of what others watch.
_only: ContextVar[FaultLog | None] = ContextVar("only", default=None)


@contextmanager
def only(log: FaultLog) -> Iterator[None]:
    """Within the block no other log is told of faults: what runs there is not the program's."""
    token = _only.set(log)
    try:
        yield
    finally:
        _only.reset(token)


class FaultLog:
    """The child's end: is told of each fault, and writes the new ones to a file at once.

    folder: where to; None where who looks for faults asks for them by `seen`.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / files.FAULTS
        self._owner = os.getpid()
        self._seen: dict[Hashable, Seen] = {}
        self._last: dict[Hashable, int] = {}
        self.capture: Capture | None = None

    def __call__(self, fault: Fault) -> None:
        if _only.get() not in (None, self):
            return
        number = self.capture.launches - 1 if self.capture is not None else -1
        key = _key(fault)
        known = self._seen.get(key)
        if known is None:
            self._seen[key] = Seen(fault, number)
            self._write()
        elif self._last[key] != number:
            self._seen[key] = replace(known, count=known.count + 1)
        self._last[key] = number

    @property
    def seen(self) -> tuple[Seen, ...]:
        """What is known by now."""
        return tuple(self._seen.values())

    def close(self) -> None:
        """Writes what is known at the end: counts, and where on the tapes."""
        if not self._seen:
            return
        tapes = [t for t in self.capture.tapes if t.records] if self.capture is not None else []
        for key, seen in self._seen.items():
            tape, index = _place(tapes, seen)
            self._seen[key] = replace(seen, tape=tape, index=index)
        self._write()

    def _write(self) -> None:
        if self._path is None or os.getpid() != self._owner:  # a fork of the target
            return
        with suppress(OSError):
            self._path.write_text(codec.dumps(_Page(tuple(self._seen.values()))), encoding="ascii")


def _key(f: Fault) -> Hashable:
    return f.kind, f.kernel, f.form, f.span, f.access, f.name, f.other_span


def _place(tapes: Sequence[CapturedTape], seen: Seen) -> tuple[int, int]:
    """The first launch of the fault's kernel on a tape that was the one, or -1."""
    for number, tape in enumerate(tapes):
        index = -1
        for record, launches in zip(tape.records, tape.numbers, strict=True):
            kernel = record.kernel
            index += kernel is not None
            if kernel is not None and kernel.key == seen.fault.kernel:
                if launches == seen.launch + 1:
                    return number, index
    return -1, -1


def read(folder: Path) -> tuple[Seen, ...]:
    """The parent's end: what was noted, nothing where nothing was."""
    with suppress(OSError, UnicodeDecodeError, codec.CodecError):
        return codec.loads(_Page, files.text(folder / files.FAULTS)).faults
    return ()
