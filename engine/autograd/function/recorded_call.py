"""A recorded call of a function: its tape, its results, and its changes of inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.function.call import FunctionCall, arrays_of
from engine.autograd.function.private_tape import PrivateTape
from engine.autograd.function.restoring import Restorer, restoring
from engine.classes import dataclass
from engine.logger import log_warning
from engine.runtime.array import array
from engine.runtime.base import may_meet


@dataclass(frozen=True)
class ChangedInput:
    """An argument in which a run of the function left other values than it found.

    contents: its arrays, and what they held afterwards. returned: whether it shares memory
    with a result, so that writing to it may be what the function is for.
    """

    name: str
    contents: Sequence[tuple[array, NDArray[Any]]]
    returned: bool

    def leave(self) -> None:
        """Puts what the function left into the arrays."""
        for a, value in self.contents:
            a.storage.before_write(a.lo, a.hi)
            a._put(value)


@dataclass(frozen=True)
class RecordedCall:
    """A run of a function, from which others start.

    results: the arrays that came out. changed: inputs that it changed. restore: puts back all
    that runs have changed since.
    """

    call: FunctionCall
    tape: PrivateTape
    results: Sequence[Any]
    changed: tuple[ChangedInput, ...]
    restore: Callable[[], None]


@contextmanager
def recorded_call(call: FunctionCall) -> Iterator[RecordedCall]:
    """Runs the function. Every array and gradient is as it was afterwards, whatever happens."""
    with restoring(arrays_of([*call.given, *call.declared])) as restorer:
        tape, results = call.run()
        changed = _changed(call, results, restorer)
        yield RecordedCall(call, tape, results, changed, restorer.restore)


def _changed(
    call: FunctionCall, results: Sequence[Any], restorer: Restorer
) -> tuple[ChangedInput, ...]:
    out = []
    returned = arrays_of(results)
    for k, (name, _, _) in call.inputs.items():
        found = [a for a in arrays_of([call.given[k]]) if restorer.changed(a)]
        if found:
            shared = any(may_meet(a, b) for a in found for b in returned)
            contents = [(a, np.array(a._host())) for a in found]
            out.append(ChangedInput(name, contents, shared))
    return tuple(out)


def unexpected(changed: Sequence[ChangedInput]) -> tuple[str, ...]:
    """Names of inputs that a function changed and did not return."""
    return tuple(c.name for c in changed if not c.returned)


def conclude(key: str, changed: Sequence[ChangedInput], restore_inputs: bool) -> None:
    """What the caller of a function's check is left with.

    Its inputs as one run of the function leaves them, if `restore_inputs` is False; else a
    warning that names those that the function changed and did not return.
    """
    if not restore_inputs:
        for c in changed:
            c.leave()
        return
    names = unexpected(changed)
    if names:
        log_warning(
            f"function {key!r} changes its input{'s' if len(names) > 1 else ''} "
            f"{', '.join(map(repr, names))}; the check restores it "
            "(restore_inputs=False leaves the values of one run)"
        )
