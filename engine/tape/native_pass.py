"""Backward passes as a few calls of compiled code: all of a pass, or nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine import config
from engine.runtime import events, quick
from engine.runtime.array import array
from engine.runtime.guards import Guard
from engine.tape import rows
from engine.tape.gradients import seed

if TYPE_CHECKING:
    from engine.tape.tape import Tape


def try_reverse(tape: Tape, seeds: Sequence[tuple[array, Any]]) -> bool:
    """Runs a pass that nobody observes; False where nothing has happened.

    seeds: arrays with their cotangents.
    """
    if (
        quick.functions() is None or not tape._overwrites.are_none()
        or events.tape() is not None or config.verify_autograd_array_access
    ):  # fmt: skip
        return False
    if tape._unmade is not None:
        return _try_replays(tape, seeds)
    if (array.retains or Guard.made) and any(map(_is_special, tape._arrays())):
        return False
    listed = tape._listed()
    if not rows.are_ready(listed):
        return False
    _begin(tape, seeds)
    return rows.run_ready(listed, tape._made)


def _try_replays(tape: Tape, seeds: Sequence[tuple[array, Any]]) -> bool:
    """The same of a tape whose records are those of a captured graph."""
    replays = tape._replays()
    if not (replays and tape.is_alone()):
        return False
    from engine.tape.replay import may_go_back  # late: only what is captured needs it

    backs = may_go_back(replays)
    if backs is None:
        return False
    _begin(tape, seeds)
    token = events.with_tape(None)
    try:
        for replay, back in zip(reversed(replays), reversed(backs), strict=True):
            replay.backward(back)
    finally:
        events.restore(token)
    return True


def _begin(tape: Tape, seeds: Sequence[tuple[array, Any]]) -> None:
    tape._overwrites.mixed = None
    for a, cotangent in seeds:
        tape._seeded[id(a)] = a
        seed(a, cotangent)


def _is_special(a: array) -> bool:
    """Whether its gradient is kept, or lies in memory that others take to be immutable."""
    if a.retain_grad and a.requires_grad:
        return True
    grad = a.existing_grad if a.requires_grad else None
    return grad is not None and grad.storage.guard is not None
