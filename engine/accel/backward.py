"""Backward passes as a few calls of compiled code: all of a pass, or nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import config
from engine.accel.launcher import maker
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.guards import Guard
from engine.tape.backward import check_seeds
from engine.tape.gradients import one_of, seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.tape.tape import Tape


def try_reverse(tape: Tape, loss: array | None, grads: Any) -> bool:
    """Runs a pass that nothing observes, over launches alone; False where nothing has happened.

    Launches whose adjoints ran before, on a tape with settings as they are by default: else Python
    has something to compile, to restore or to say. loss, grads: what it begins with, unchecked.
    Raises what a pass does.
    """
    functions = maker.functions
    if (
        functions is None or not tape._overwrites.are_none()
        or (events.here.get() and events.tape() is not None)
        or config.verify_autograd_array_access or not _require_gradients(loss, grads)
    ):  # fmt: skip
        return False
    if tape._unmade is not None:
        return _try_replays(tape, loss, grads)
    if (array.retains or Guard.made) and any(map(_is_special, tape._arrays())):
        return False
    records = tape._made()[:]  # other threads may forget them
    if functions.ready(records) is not True:
        return False
    _begin(tape, functions, loss, grads)
    _run(functions, records)
    return True


def _run(functions: Any, records: Sequence[Any]) -> None:
    """Runs launches backward, in few calls of compiled code."""
    number = len(records) - 1
    while number >= 0:
        came = functions.back_all(records, number)
        if came is True:
            return
        if came is None:
            records[number].reverse()
        elif isinstance(came, int):
            number = came
            records[number].run_ready()
        else:
            number = int.from_bytes(came[:8], "little")  # `left_t` of native/back.h
            r = records[number]
            adjoint = r.selection.adjoint
            assert adjoint is not None
            outcome = adjoint.outcome_of(r.dim, r.values, r.blob, came[8:])
            r.stack_bytes = adjoint.finish(outcome, r.dim).stack_bytes
        number -= 1


def _try_replays(tape: Tape, loss: array | None, grads: Any) -> bool:
    """The same of a tape whose records are those of a captured graph."""
    replays: Any = tape._replays()
    functions = maker.functions
    if not (replays and functions is not None and tape.has_default_settings()):
        return False
    from engine.accel.graph_records import may_go_back  # late: only what is captured needs it

    backs = may_go_back(replays)
    if backs is None:
        return False
    _begin(tape, functions, loss, grads)
    token = events.pause_tapes()
    try:
        for replay, back in zip(reversed(replays), reversed(backs), strict=True):
            replay.backward(back)
    finally:
        events.resume_tapes(token)
    return True


def _begin(tape: Tape, functions: Any, loss: array | None, grads: Any) -> None:
    """Writes what a pass begins with: the one cotangent of most passes without a look at it."""
    tape._overwrites.mixed = None
    of, cotangent = loss, None if loss is None else one_of(loss)
    if grads is not None:
        if loss is None and grads.__class__ is dict and len(grads) == 1:
            ((of, cotangent),) = grads.items()
        else:
            of = None
    if of is not None and cotangent is not None and functions.seeded(of, cotangent):
        tape._seeded[id(of)] = of
        return
    for a, given in check_seeds(loss, grads, seen=False):
        tape._seeded[id(a)] = a
        seed(a, given)


def _require_gradients(loss: array | None, grads: Any) -> bool:
    """Whether all that a pass begins with requires a gradient: else it does from then on.

    What records have to run depends on that, and is decided before.
    """
    if loss is not None and not loss.requires_grad:
        return False
    if grads is None:
        return True
    if grads.__class__ is not dict:
        return False
    for a in grads:  # noqa: SIM110  # a generator takes twice the time
        if a.__class__ is not array or not a.requires_grad:
            return False
    return True


def _is_special(a: array) -> bool:
    """Whether its gradient is kept, or lies in memory that others take to be immutable."""
    return (a.retain_grad and a.requires_grad) or is_guarded(a)


def is_guarded(a: array) -> bool:
    """Whether its gradient lies in memory that others take to be immutable."""
    grad = a.existing_grad if a.requires_grad else None
    return grad is not None and grad.storage.guard is not None
