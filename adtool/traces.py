"""What a run's tapes recorded, handed from the child process to its parent as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from adtool import codec
from engine.autograd import TapeTrace, trace
from engine.classes import dataclass

if TYPE_CHECKING:
    from engine import CapturedTape


@dataclass(frozen=True, slots=True)
class Traces:
    """The tapes of a run, numbered as `adtool check` does. recorded: how many there were."""

    tapes: tuple[TapeTrace, ...]
    recorded: int

    def tape(self, number: int) -> TapeTrace | None:
        """The tape of a number; None where it was not kept, or is not there."""
        return next((t for t in self.tapes if t.tape == number), None)


def write(captured: Sequence[CapturedTape], limit: int, path: Path) -> None:
    """Writes what tapes with records hold. Where that cannot be, there is no file."""
    tapes = [t for t in captured if t.records]
    kept, left = [], limit
    for number, tape in enumerate(tapes):
        if left <= 0:
            break
        found = replace(trace(tape, left), tape=number)
        left -= len(found.operations)
        kept.append(found)
    text = codec.brief(Traces(tuple(kept), len(tapes)))
    with suppress(OSError):
        path.write_text(text, encoding="ascii")
