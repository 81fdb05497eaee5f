"""Runs stretches, on a tape or not."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from engine import config
from engine.runtime import events, reads
from engine.tape import access
from engine.tape.overwrites import mode
from engine.tape.records.foreign import ForeignRecord, Values
from engine.tape.tape import Tape


def run(record: ForeignRecord, results: Values, tape: Tape | None, began: float) -> None:
    """Writes what a stretch has computed to its outputs, and records it where a tape is active."""
    if events.everywhere:
        events.reading(record.inputs)
    if tape is None:
        for a, x in zip(record.outputs, results, strict=True):
            a.assign(x)
        return
    followers, overwrites, position = tape._followers(), tape._overwrites, tape._count
    for o in followers:
        o.tape_recording(tape, record.inputs, record.arrays)
    when = config.tape_snapshots
    captured = any(o.copies(tape, record.name) for o in followers)
    if when != "off" or captured:
        record.take_holds(when == "eager" or captured, mode() != "present")
    if tape._verifies():
        for a in record.outputs:
            access.written(a, record.name)
        for a in record.inputs:
            reads.mark_read(a)
    changes = [
        c for a in record.outputs for c in overwrites.writing(a, record.name, position, False)
    ]
    if mode() != "present":
        overwrites.watch(record)
    for a, x in zip(record.outputs, results, strict=True):
        a.storage.before_write(a.lo, a.hi)
        a._put(x)
    if captured:
        record.stretch.remember()
        record.results = [np.array(x) for x in results]
    tape._append(record, perf_counter() - began)
    overwrites.wrote(changes)
