"""Notes of a capture beside the records of a tape: names, times, gradients, memory."""

from __future__ import annotations

from engine.tape.capture import CapturedTape
from engine.tape.tracing import TapeTrace, Tracer


def trace(tape: CapturedTape, limit: int | None = None) -> TapeTrace:
    """A captured tape as data: its operations with times, and gradients of its backward pass.

    limit: how many operations to keep; those in the middle of a longer tape are left out. A
    tape that was not traced (see `engine.capturing`) has neither names nor times nor norms.
    """
    first = tape.first_backward
    seeded = () if first is None else first.seeded
    tracer = tape.tracer or Tracer()
    return tracer.trace(tape.index, tape.records, seeded, limit)
