"""What a capture notes of a backward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from engine import config
from engine.classes import dataclass
from engine.runtime.array import array
from engine.runtime.storage import Hold
from engine.tape.outline import Outline, outline
from engine.tape.records import Record
from engine.tape.restoration import Restoration, contents, differ, differing, present

# Numbers of an array that are not what was expected: which, and their values.
Other: TypeAlias = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward pass as it was run: from which arrays, and at which contents.

    records: how many there were on the tape by then.
    restored: whether it used what launches read then, where the tape overwrote that.
    changed: where it did not, what inputs held by then that had changed since their launch, by
    the launch's position among the records and the parameter's index; where an input is
    missing, it held what it had held. read: where it did, what adjoints read of inputs that
    was not what these had held: which numbers, and their values.
    """

    records: int
    seeded: tuple[Outline, ...]
    restored: bool
    changed: Mapping[tuple[int, int], Hold]
    read: Mapping[tuple[int, int], Other]


def ran(
    records: Sequence[Record], seeded: Sequence[array],
    restored: Mapping[int, Sequence[Restoration]],
) -> Backward:  # fmt: skip
    """Notes that a backward pass from some arrays is about to run.

    restored: what it restores, by position among the records.
    """
    if config.overwrites == "present":
        restoring, changed, read = False, _changed(records), {}
    else:
        restoring, changed, read = True, {}, _read(records, restored)
    return Backward(len(records), tuple(outline(a) for a in seeded), restoring, changed, read)


def _read(
    records: Sequence[Record], restored: Mapping[int, Sequence[Restoration]]
) -> dict[tuple[int, int], Other]:
    out: dict[tuple[int, int], Other] = {}
    for position, record in enumerate(records):
        r = record.launch
        if r is None:
            continue
        held = r.holds.items()
        changed = [(i, hold) for i, hold in held if not r.values[i].storage.unchanged(hold)]
        if not changed:
            continue
        reads, known = r.reads(), {x.index: x for x in restored.get(position, ())}
        for i, hold in changed:
            if i not in reads:
                continue
            a = r.values[i]
            if i not in known:
                where = differing(a, hold)
                if where is not None:
                    out[position, i] = (where, present(a)[where])
                continue
            was = contents(a, hold)
            if was is not None:
                now = known[i].contents()
                where = differ(now, was)
                if where.any():
                    out[position, i] = (where, now[where])
    return out


def _changed(records: Sequence[Record]) -> dict[tuple[int, int], Hold]:
    changed: dict[tuple[int, int], Hold] = {}
    known: dict[tuple[int, int, int], Hold] = {}
    for position, record in enumerate(records):
        r = record.launch
        if r is None:
            continue
        for i, hold in r.holds.items():
            a = r.values[i]
            memory = a.storage
            if memory.unchanged(hold):
                continue
            key = (id(memory), a.lo, a.hi)
            if key not in known:
                known[key] = memory.hold(a.lo, a.hi, eager=True)
            if known[key] is not hold:
                changed[position, i] = known[key]
    return changed
