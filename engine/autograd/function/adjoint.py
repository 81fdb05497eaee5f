"""The adjoint of a function: backward passes of the tape that it was recorded on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.function.call import arrays_of, leaves_of
from engine.autograd.function.private_tape import PrivateTape
from engine.autograd.function.recorded_call import RecordedCall
from engine.autograd.function.scalars import set_scalar
from engine.autograd.variables.roles import Pair
from engine.runtime.array import array

Array = NDArray[Any]


def adjoint_rows(
    recorded: RecordedCall, pairs: Sequence[Pair], matrices: Mapping[tuple[int, int], Array],
    limit: int,
) -> None:  # fmt: skip
    """Fills matrices row by row by backward passes of the recorded tape.

    limit: rows of each output; all if <= 0.
    """
    inputs = [leaves_of(a) for a in recorded.call.given]
    loose = arrays_of([*recorded.call.given, *recorded.results])
    for b in {id(p.output): p.output for p in pairs}.values():
        targets = [p for p in pairs if p.output is b]
        outs = leaves_of(recorded.results[b.index])
        for part in b.parts:
            out = outs[part.leaf]
            for f, row in enumerate(part.index().tolist()):
                if 0 < limit <= row:
                    continue
                clear(recorded.tape, loose)
                seed(out, f, 1.0)
                recorded.tape.backward(grads={})
                for p in targets:
                    matrix = matrices[p.key]
                    for piece in p.input.parts:
                        grad = inputs[p.input.index][piece.leaf].grad
                        matrix[row, piece.places()] = grad._host().reshape(-1)


def gradients(
    recorded: RecordedCall, pairs: Sequence[Pair], w: Array
) -> dict[tuple[int, int], Array]:
    """The gradients of inputs by cotangents w of the one output that all pairs have; all flat."""
    clear(recorded.tape, arrays_of([*recorded.call.given, *recorded.results]))
    (b,) = {id(p.output): p.output for p in pairs}.values()
    outs = leaves_of(recorded.results[b.index])
    for part in b.parts:
        grad = outs[part.leaf].grad
        assert grad is not None
        grad.storage.before_write(grad.lo, grad.hi)
        grad._put(w[part.places()].reshape(grad._parts.shape))
    recorded.tape.backward(grads={})
    found = {}
    for p in pairs:
        out, inputs = np.zeros(p.input.size), leaves_of(recorded.call.given[p.input.index])
        for part in p.input.parts:
            grad = inputs[part.leaf].grad
            if grad is not None:
                out[part.places()] = grad._host().reshape(-1)
        found[p.key] = out
    return found


def clear(tape: PrivateTape, loose: Sequence[array]) -> None:
    """Sets all gradients to zero: those of the tape, and of arrays that may not be on it."""
    tape.zero()
    for a in loose:
        grad = a.grad
        if grad is not None:
            grad.zero_()


def seed(a: array, scalar: int, value: float) -> None:
    """Sets one scalar of an array's gradient."""
    grad = a.grad
    assert grad is not None
    grad.storage.before_write(grad.lo, grad.hi)
    set_scalar(grad, scalar, value)
