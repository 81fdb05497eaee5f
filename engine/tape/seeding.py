"""Backward passes whose last adjoint reads the cotangent where it lies.

Else it is copied over the gradient first: for large arrays that takes as long as the adjoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine import config
from engine.compile.backend import Seed
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.blank import is_blank, note_blank
from engine.runtime.execute import Executable
from engine.runtime.guards import Guard
from engine.runtime.transfer import VAST
from engine.tape.backward import meets
from engine.tape.gradients import seed
from engine.tape.records import Record
from engine.tape.records.launch import LaunchRecord

_FEW = 64  # records: each is asked whether it has anything to say before any adjoint runs


def begin(
    records: Callable[[], list[Record]] | None, seeds: Sequence[tuple[array, Any]]
) -> list[Record] | None:
    """Writes cotangents over gradients; gives the records that are left, None for all of them.

    records: gives those of a pass in which nothing is restored for adjoints, and nobody looks at
    what they do; None for any other. Raises LaunchError (E206).
    """
    values = _large(seeds[0][1]) if records is not None and len(seeds) == 1 else None
    if records is not None and values is not None:
        known = records()[:]  # other threads may forget them
        if _run_last(known, seeds[0][0], values):
            return known[:-1]
    for a, cotangent in seeds:
        seed(a, cotangent)
    return None


def _large(cotangent: Any) -> Any:
    """Its NumPy array; None for one that is as well copied."""
    values = cotangent._parts if cotangent.__class__ is array else cotangent
    return values if values.__class__ is np.ndarray and values.nbytes >= VAST else None


def _run_last(records: list[Record], a: array, values: Any) -> bool:
    """Runs the last record backward with the cotangent of an array; False where nothing happened.

    It does where all that is left to do are adjoints that can run, and the array is one that the
    launch wrote. values: the cotangent.
    """
    if (
        not 0 < len(records) <= _FEW
        or not a.storage.device.backend.on_host or Guard.made or config.verify_fp
        or events.sanitizers() or events.are_writes_observed()
    ):  # fmt: skip
        return False
    if not all(r.is_ready() for r in records):
        return False
    if array.retains and any(x.retain_grad for r in records for x in r.arrays):
        return False
    record = records[-1].launch
    assert record is not None
    adjoint, gradient = record.selection.adjoint, a.grad
    assert adjoint is not None
    names = [p.name for p in record.plan.floats if record.values[p.index] is a]
    if record.journal is not None or gradient is None or len(names) != 1:
        return False
    parts = gradient._parts
    if (
        not (parts.shape == values.shape and parts.dtype == values.dtype)
        or not (parts.flags.c_contiguous and values.flags.c_contiguous)
        or not gradient.storage.writable
    ):  # fmt: skip
        return False
    return _run(record, adjoint, names[0], gradient, values)


def _run(
    record: LaunchRecord, adjoint: Executable, name: str, gradient: array, values: Any
) -> bool:
    grads = [record.values[i].grad for i in record.selection.gradients]
    others = [g for g in grads if g is not gradient]
    if len(others) != len(grads) - 1 or None in grads:
        return False
    # Who else has that memory in the launch must find there what would have been copied.
    source, rest = values.ctypes.data, [*others, *record.arrays]
    if meets(gradient.lo, gradient.hi, rest):
        return False
    if meets(source, source + values.nbytes, [gradient, *rest]):
        return False

    def announce() -> None:
        for g in [gradient, *grads]:
            g.storage.before_write(g.lo, g.hi)

    blob = b"".join([record.blob, *(g._packed for g in grads)])
    cotangent = Seed(name, source, is_blank(gradient), announce)
    came = adjoint.run_seeded(record.dim, blob, cotangent)
    if came is None:
        return False
    if came[1]:
        note_blank(gradient)
    record.stack_bytes = came[0].stack_bytes
    return True
