"""A recorded tape as data: its operations, and how its backward pass is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine import config
from engine.classes import dataclass
from engine.runtime.array import array
from engine.runtime.storage import Hold
from engine.tape.capture import CapturedTape
from engine.tape.captured_pass import Other
from engine.tape.outline import Outline
from engine.tape.records import Record
from engine.tape.tape import Tape


@dataclass(frozen=True)
class RecordedTape:
    """Records, and what is known of the backward pass through them.

    seeded: the arrays that get a cotangent; none: those that nothing on the tape reads.
    restored: whether launches are differentiated at what they read, where the tape overwrote
    that. changed, read: contents that inputs had by then, by position among the records and
    parameter (see `engine.tape.captured_pass.Backward`). ran: whether there was a backward pass.
    """

    records: Sequence[Record]
    seeded: Sequence[array | Outline]
    restored: bool
    changed: Mapping[tuple[int, int], Hold]
    read: Mapping[tuple[int, int], Other]
    ran: bool


def recorded_tape(tape: Tape | CapturedTape) -> RecordedTape:
    """What is known of a tape. The backward pass of a live one may have been long ago."""
    restored = config.overwrites != "present"
    if isinstance(tape, Tape):
        seeded = list(tape._seeded.values())
        return RecordedTape(list(tape.records), seeded, restored, {}, {}, bool(seeded))
    b = tape.first_backward
    if b is not None:
        records = tape.records[: b.records]
        return RecordedTape(records, b.seeded, b.restored, b.changed, b.read, True)
    return RecordedTape(tape.records, (), restored, {}, {}, False)
