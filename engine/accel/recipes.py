"""What native functions are told of kernels, and the end of launches that left something."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from engine import config
from engine.accel.launcher import Words, kinds_words, maker, run_words
from engine.compile.cpu import CPU
from engine.locks import Lock
from engine.runtime import events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.compile.cpu.cached_launch import CachedLaunch
    from engine.runtime.execute import Executable
    from engine.runtime.plan import Plan

_lock = Lock()
_MOST = 64  # arguments, as `VALUES` in native/world.h


def compiled(plan: Plan, forward: Executable) -> None:
    """Has launches of a plan go natively from now on, where that can be."""
    made = _recipe(plan, forward) if plan.plain else None
    with _lock:  # others may be here, and what they use stays
        if plan.recipe == 0:
            plan._recipe, plan.recipe = made, None if made is None else made.at


def repeated(cached_launch: CachedLaunch) -> None:
    """Has runs of a kernel over a grid go natively from now on, where that can be."""
    if config.native_after < 0 or not cached_launch.may_be_native:
        return
    if maker.functions is None:
        maker.ask()
    if maker.functions is None:
        return
    words = run_words(*cached_launch.native_parts())
    with _lock:
        if words is not None and cached_launch.address is None:
            cached_launch.words, cached_launch.address = words, words.at


def finish(plan: Plan, dim: Any, state: bytes, of: Any) -> None:
    """Tells what a native launch left; native functions call it.

    state: its launch structure. of: its values, or its record, which is not on the tape then.
    Raises LaunchError where a test in the kernel failed.
    """
    if of.__class__ is list:
        dim = (dim,) if dim.__class__ is int else dim
        forward = plan.forward
        forward.finish(forward.outcome_of(dim, of, plan.bind(of)[1], state), dim)
        return
    tape: Any = events.tape()
    executable = of.selection.executable
    came = executable.outcome_of(of.dim, of.values, of.blob, state)
    executable.finish(came, of.dim, partial(tape._ran, of, (), 0.0))


def _recipe(plan: Plan, forward: Executable) -> Words | None:
    """What the functions are told of a plan; None where its launches need Python."""
    kinds = kinds_words([(p.array_kind, p.kind) for p in plan.params])
    if kinds is None or plan.backend is not CPU or plan.count > _MOST or len(plan.bits) >= _MOST:
        return None
    parts = [
        _counted(plan.writes, 1), _counted([i for pair in plan.pairs for i in pair], 2),
        _counted([i for pair in plan.bits for i in pair], 2), _counted(plan.held, 1),
    ]  # fmt: skip
    objects = (plan.kernel, plan, forward, plan.usual)
    # The plan keeps the recipe: it lives longer than what is asked of it.
    return Words([plan.count, kinds.at, *map(id, objects), *(p.at for p in parts)], kinds, parts)


def _counted(numbers: Sequence[int], each: int) -> Words:
    return Words([len(numbers) // each, *numbers])
