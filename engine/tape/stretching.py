"""Runs stretches, on a tape or not."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from engine import config
from engine.runtime import reads, recording
from engine.tape import access
from engine.tape.overwrites import mode
from engine.tape.stretch import StretchRecord, Values
from engine.tape.tape import Tape


def run(record: StretchRecord, results: Values, tape: Tape | None, began: float) -> None:
    """Writes what a stretch has computed to its outputs, and records it where a tape is active."""
    if recording.bystanders:
        recording.reading(record.inputs)
    if tape is None:
        for a, x in zip(record.outputs, results, strict=True):
            a.assign(x)
        return
    captures, overwrites, position = tape._captures, tape._overwrites, tape._count
    if captures:
        captures.recording(record.inputs, record.arrays, tape._made())
    when, captured = config.tape_snapshots, captures.copies(record.name)
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
