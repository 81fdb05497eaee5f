"""Finds the operation of a tape that breaks its gradient, and the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from engine.autograd.results import Cause
from engine.autograd.tape.evaluation import Direction, TapeEvaluation
from engine.autograd.tape.memory import Placement, Region
from engine.autograd.tape.operations import (
    Operation,
    OutsideWrite,
    ReplayedLaunch,
    ReplayedLinear,
)
from engine.autograd.tape.replay import Replay
from engine.autograd.tape.stretches import ReplayedStretch
from engine.draws import default_rng
from engine.tape.naming import variable


def culprit(evaluation: TapeEvaluation, v: Direction, allowed: float) -> int:
    """The operation across which what the gradients say of a displacement changes; -1 for none.

    Where the adjoints of the operations from k on are right, their gradients, times the
    tangents before operation k, are the derivative of the whole. Bisection over k finds one
    that is not.
    """
    operations, memories = evaluation.replay.operations, evaluation.memories

    def derivative(k: int) -> float:
        evaluation.replay.record()
        evaluation.seed()
        for s in reversed(operations[k:]):
            s.backward()
        evaluation.begin(v)
        for s in operations[:k]:
            s.tangent()
        return memories.grads.dot(memories.tangents)

    lo, hi = 0, len(operations)
    right = derivative(hi)
    while hi - lo > 1:
        middle = (lo + hi) // 2
        here = derivative(middle)
        if np.isfinite(here) and abs(here - right) <= allowed:
            hi = middle
        else:
            lo = middle
    return lo if hi > lo else -1


def cause_of(evaluation: TapeEvaluation, v: Direction, position: int) -> Cause:
    """Why an operation's adjoint does not fit into the tape."""
    if position < 0:
        return Cause("unknown")
    operation = evaluation.replay.operations[position]
    if isinstance(operation, OutsideWrite):
        before = operation.before
        return _cause("outside", before, _name(before, operation.writes[0]))
    if isinstance(operation, ReplayedLinear):
        return of_linear(operation, operation.mismatch() is not None)
    if isinstance(operation, ReplayedStretch):
        return _of_stretch(evaluation, v, operation, position)
    if not isinstance(operation, ReplayedLaunch):
        return _cause("unknown", operation)
    if not operation.plan.kernel.enable_backward:
        return _cause("no backward", operation)
    deaf = _deaf(evaluation, v, operation, position)
    if deaf:
        return _first_of_chain(evaluation, v, operation, position, deaf)
    changed = _overwritten(evaluation, v, operation, position)
    if changed:
        name, other = changed
        return _cause("overwrite", operation, name, other)
    return _cause("aliasing" if _shared(evaluation.replay, operation) else "unknown", operation)


def of_linear(operation: ReplayedLinear, wrong: bool) -> Cause:
    """Why a linear record breaks the gradient. wrong: whether its own backward pass is."""
    return _cause("unknown" if wrong else "no gradient", operation)


def _of_stretch(
    evaluation: TapeEvaluation, v: Direction, operation: ReplayedStretch, position: int
) -> Cause:
    """Why a stretch of another framework breaks the gradient."""
    evaluation.begin(v)
    for s in evaluation.replay.operations[:position]:
        s.tangent()
    tangents = evaluation.memories.tangents
    for i, part in enumerate(operation.reads):
        if part.float and not part.wants and np.any(tangents.view(part)):
            return _cause("no gradient", operation, operation.record.argument(i))
    if not all(p.wants for p in operation.writes if p.float):
        return _cause("no gradient", operation)
    evaluation.replay.record()
    wrong = operation.is_wrong(default_rng(0x57E7))
    return _cause("stretch" if wrong else "unknown", operation)


def _cause(
    kind: Any, operation: Operation, argument: str = "", other: Operation | None = None
) -> Cause:
    r = operation.record
    return Cause(
        kind, operation.launch, "" if r is None else r.name, argument,
        None if r is None else r.site, None if r is None else r.definition,
        -1 if other is None else other.launch,
        "" if other is None or other.record is None else other.record.name,
        None if other is None or other.record is None else other.record.site,
        _variable(operation, argument),
    )  # fmt: skip


def _variable(operation: Operation, argument: str) -> str:
    """What the user passed for an argument."""
    launch = None if operation.record is None else operation.record.launch
    if launch is not None:
        for p in launch.plan.array_params:
            if p.name == argument:
                return variable(launch, p.index)
    return ""


def _name(operation: Operation, part: Placement) -> str:
    if isinstance(operation, ReplayedLaunch):
        for i, p in operation.parts.items():
            if p is part:
                return str(operation.plan.params[i].name)
    return ""


def _deaf(
    evaluation: TapeEvaluation, v: Direction, operation: ReplayedLaunch, position: int
) -> str:
    """An input that moves with the leaves and that no gradient flows to."""
    evaluation.begin(v)
    for s in evaluation.replay.operations[:position]:
        s.tangent()
    return next(iter(_moving_deaf(operation)), "")


def _moving_deaf(operation: ReplayedLaunch) -> tuple[str, ...]:
    """All of these, by the tangents as they are now."""
    reads = sorted({i for i in operation.plan.inputs if i in operation.parts})
    parts = ((i, operation.parts[i]) for i in reads)
    deaf = (i for i, p in parts if p.float and not p.wants and np.any(operation.tangents[i]))
    return tuple(str(operation.plan.params[i].name) for i in deaf)


def _first_of_chain(
    evaluation: TapeEvaluation, v: Direction, operation: ReplayedLaunch, position: int, deaf: str
) -> Cause:
    """The first array of a chain that no gradient flows to, each computed from the one before.

    Where only the last of them had a gradient, it would end at the one before.
    """
    operations, spans = evaluation.replay.operations, evaluation.memories.spans
    chain: list[tuple[ReplayedLaunch, tuple[str, ...]]] = [(operation, (deaf,))]
    seen: dict[int, tuple[str, ...]] = {}
    silent = []
    evaluation.begin(v)
    for k, s in enumerate(operations):
        if isinstance(s, ReplayedLaunch) and (names := _moving_deaf(s)):
            seen[k] = names
        s.tangent()
        if k in seen or _moves_deaf(evaluation, s):
            silent.append(s.launch)
    part = _part(operation, deaf)
    for k in reversed(range(position)):
        s = operations[k]
        made = Region(spans)
        for p in s.writes:
            made.add(p)
        if not made.meets(part):
            continue
        if k not in seen or not isinstance(s, ReplayedLaunch):
            break
        chain.append((s, seen[k]))
        part = _part(s, seen[k][0])
    chain.reverse()
    found = _cause("no gradient", chain[0][0], chain[0][1][0])
    further = dict.fromkeys(
        (name, _variable(o, name), o.record.site) for o, names in chain for name in names
    )
    further.pop((found.argument, found.variable, found.site), None)
    return replace(found, further=tuple(further), silent=tuple(silent))


def _moves_deaf(evaluation: TapeEvaluation, operation: Operation) -> bool:
    """Whether something that it wrote moves with the leaves, and no gradient flows to it."""
    tangents = evaluation.memories.tangents
    return operation.launch >= 0 and any(
        p.float and not p.wants and bool(np.any(tangents.view(p))) for p in operation.writes
    )


def _part(operation: ReplayedLaunch, argument: str) -> Placement:
    params = operation.plan.params
    return next(p for i, p in operation.parts.items() if params[i].name == argument)


def _overwritten(
    evaluation: TapeEvaluation, v: Direction, operation: ReplayedLaunch, position: int
) -> tuple[str, Operation | None] | None:
    """An input whose contents at the backward pass are others than at the launch, and by whom."""
    replay = evaluation.replay
    evaluation.begin(v)
    for s in replay.operations[:position]:
        s.forward()
    then = {i: operation.views[i].copy() for i in operation.plan.inputs if i in operation.parts}
    replay.record()
    for i, was in then.items():
        name = operation.plan.params[i].name
        if i in operation.other:
            return str(name), None  # what the tape overwrote was restored
        if i in operation.restored or name in operation.journaled:
            continue
        if np.array_equal(was, operation.views[i], equal_nan=operation.parts[i].float):
            continue
        for later in (*replay.operations[position + 1 :], *replay.after):
            mine = Region(replay.memories.spans)
            for p in later.writes:
                mine.add(p)
            if mine.meets(operation.parts[i]):
                outside = isinstance(later, OutsideWrite) and not later.silent
                return str(name), None if outside else later
        return str(name), None
    return None


def _shared(replay: Replay, operation: ReplayedLaunch) -> bool:
    """Whether what it writes has gradients in two memories."""
    for p in operation.writes:
        roots = {p.root}
        for s in replay.operations:
            for q in (*s.reads, *s.writes):
                mine = Region(replay.memories.spans)
                mine.add(q)
                if q.wants and mine.meets(p):
                    roots.add(q.root)
        if len(roots) > 1:
            return True
    return False
