"""The memory that a tape takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine import config
from engine.classes import dataclass
from engine.runtime.storage import Hold
from engine.tape.records import Record


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


def own_memory(records: Sequence[Record], more: Sequence[Hold] = ()) -> MemoryUse:
    """The memory of a tape without the copies that only a capture asks for.

    A program has the others without it too: those of what was overwritten, as it is configured.
    """
    if config.tape_snapshots == "eager":
        return memory_of(records, more)
    restores = config.overwrites != "present"
    return memory_of(records, more, lambda h: not h.spare if restores else h.origin is None)


def memory_of(
    records: Sequence[Record], more: Sequence[Hold] = (),
    counts: Callable[[Hold], bool] = lambda _: True,
) -> MemoryUse:  # fmt: skip
    """The memory of some records, and of further holds. counts: of these, which do."""
    holds = [*more, *(h for r in records for h in r.snapshots)]
    # Copies share the pieces that did not change between them.
    held = {id(c): c.nbytes for h in holds if counts(h) for c in h.chunks}
    return MemoryUse(
        inputs=sum(held.values()),
        journals=sum(r.journal_bytes for r in records),
        stack=max((r.stack_bytes for r in records), default=0),
    )
