"""The memory that a tape takes."""

from __future__ import annotations

from collections.abc import Sequence

from engine.classes import dataclass
from engine.runtime.storage import Hold
from engine.tape.records import LaunchRecord, Record


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes beside arrays and their gradients.

    inputs: copies of what operations read and others overwrote (`config.overwrites`,
    `config.tape_snapshots`, `config.snapshot_limit_bytes`).
    journals: values that launches saved because they overwrite them themselves
    (`config.journal_limit_bytes` each). stack: the largest stack of the last backward
    pass, for the loop values of one thread (`config.stack_limit_bytes`); freed after it.
    """

    inputs: int
    journals: int
    stack: int


def memory_of(records: Sequence[Record], more: Sequence[Hold] = ()) -> MemoryUse:
    """The memory of some records, and of further holds."""
    launches = [r for r in records if isinstance(r, LaunchRecord)]
    holds = [*more, *(h for r in records for h in r.snapshots)]
    # Copies share the pieces that did not change between them.
    held = {id(c): c.nbytes for h in holds for c in h.chunks}
    return MemoryUse(
        inputs=sum(held.values()),
        journals=sum(r.journal_bytes for r in launches),
        stack=max((r.stack_bytes for r in launches), default=0),
    )
