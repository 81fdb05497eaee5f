"""Notes of a capture beside the records of a tape: names, times, gradients, memory."""

from __future__ import annotations

from engine.tape.capture import CapturedTape
from engine.tape.outline import Outline, key_of
from engine.tape.tracing import TapeTrace, Tracer


def trace(tape: CapturedTape, limit: int | None = None) -> TapeTrace:
    """A captured tape as data: its operations with times, and gradients of its backward pass.

    limit: how many operations to keep; those in the middle of a longer tape are left out. A
    tape that was not traced (see `engine.capturing`) has neither times nor norms, and its arrays
    have only the names that an archive holds.
    """
    first = tape.first_backward
    seeded = () if first is None else first.seeded
    tracer = tape.tracer or _archived(tape)
    return tracer.trace(tape.index, tape.records, seeded, limit)


def _archived(tape: CapturedTape) -> Tracer:
    """Of a tape that was not traced: its arrays are named as launches of an archive have them."""
    tracer = Tracer()
    for r in tape.records:
        launch = r.launch
        if launch is not None and launch.names is not None:
            for a, name in zip(launch.values, launch.names, strict=True):
                if isinstance(a, Outline) and name:
                    tracer.names.setdefault(key_of(a), (name, name))
    return tracer
