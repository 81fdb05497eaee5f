"""Which operation of a tape breaks its gradient, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.autograd.results import Cause
from engine.autograd.whole.memory import Part, Region
from engine.autograd.whole.replay import Replay
from engine.autograd.whole.steps import CopyStep, LaunchStep, OutsideStep, Step
from engine.tape.records import LaunchRecord, Record

Do = Callable[[], None]


def culprit(replay: Replay, seed: Do, begin: Do, allowed: float) -> int:
    """The step across which what the gradients say of a displacement changes; -1 for none.

    Where the adjoints of the steps from k on are right, their gradients, times the tangents
    before step k, are the derivative of the whole. Bisection over k finds a step that is not.
    seed: sets the cotangents. begin: puts contents and tangents before the tape into memory.
    """
    steps, world = replay.steps, replay.world

    def derivative(k: int) -> float:
        replay.record()
        seed()
        for s in reversed(steps[k:]):
            s.backward()
        begin()
        for s in steps[:k]:
            s.tangent()
        return world.grads.dot(world.tangents)

    lo, hi = 0, len(steps)
    right = derivative(hi)
    while hi - lo > 1:
        middle = (lo + hi) // 2
        here = derivative(middle)
        if np.isfinite(here) and abs(here - right) <= allowed:
            hi = middle
        else:
            lo = middle
    return lo if hi > lo else -1


def cause_of(replay: Replay, position: int, begin: Do) -> Cause:
    """Why a step's adjoint does not fit into the tape."""
    if position < 0:
        return Cause("unknown")
    step = replay.steps[position]
    if isinstance(step, OutsideStep):
        before = step.before
        return _cause("outside", before, _name(before, step.writes[0]))
    if isinstance(step, CopyStep):
        return _cause("no gradient", step)
    if not isinstance(step, LaunchStep):
        return _cause("unknown", step)
    if not step.plan.kernel.enable_backward:
        return _cause("no backward", step)
    deaf = _deaf(replay, step, position, begin)
    if deaf:
        return _cause("no gradient", step, deaf)
    changed = _overwritten(replay, step, position, begin)
    if changed:
        name, other = changed
        return _cause("overwrite", step, name, other)
    return _cause("aliasing" if _shared(replay, step) else "unknown", step)


def _cause(kind: Any, step: Step, argument: str = "", other: Step | None = None) -> Cause:
    r = step.record
    return Cause(
        kind, step.launch, "" if r is None else r.name, argument,
        None if r is None else r.site, _definition(r),
        -1 if other is None else other.launch,
        "" if other is None or other.record is None else other.record.name,
        None if other is None or other.record is None else other.record.site,
    )  # fmt: skip


def _definition(r: Record | None) -> Any:
    return r.plan.variants.ir.span if isinstance(r, LaunchRecord) else None


def _name(step: Step, part: Part) -> str:
    if isinstance(step, LaunchStep):
        for i, p in step.parts.items():
            if p is part:
                return str(step.plan.params[i].name)
    return ""


def _deaf(replay: Replay, step: LaunchStep, position: int, begin: Do) -> str:
    """An input that moves with the leaves and that no gradient flows to."""
    begin()
    for s in replay.steps[:position]:
        s.tangent()
    reads = {i for i in step.plan.inputs if i in step.parts}
    for i in sorted(reads):
        part = step.parts[i]
        if part.float and not part.wants and np.any(step.tangents[i]):
            return str(step.plan.params[i].name)
    return ""


def _overwritten(
    replay: Replay, step: LaunchStep, position: int, begin: Do
) -> tuple[str, Step | None] | None:
    """An input whose contents at the backward pass are others than at the launch, and by whom."""
    begin()
    for s in replay.steps[:position]:
        s.forward()
    then = {i: step.views[i].copy() for i in step.plan.inputs if i in step.parts}
    replay.record()
    for i, was in then.items():
        name = step.plan.params[i].name
        if i in step.restored or name in step.journaled:
            continue
        if np.array_equal(was, step.views[i], equal_nan=step.parts[i].float):
            continue
        for later in (*replay.steps[position + 1 :], *replay.after):
            mine = Region(replay.spans)
            for p in later.writes:
                mine.add(p)
            if mine.meets(step.parts[i]):
                outside = isinstance(later, OutsideStep) and not later.silent
                return str(name), None if outside else later
        return str(name), None
    return None


def _shared(replay: Replay, step: LaunchStep) -> bool:
    """Whether what it writes has gradients in two memories."""
    for p in step.writes:
        roots = {p.root}
        for s in replay.steps:
            for q in (*s.reads, *s.writes):
                mine = Region(replay.spans)
                mine.add(q)
                if q.wants and mine.meets(p):
                    roots.add(q.root)
        if len(roots) > 1:
            return True
    return False
