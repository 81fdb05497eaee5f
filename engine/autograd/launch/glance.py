"""A brief look at a launch of which many like it were right: whether its values are as harmless.

Rules that were right at other values are right at these, too, where these are no special ones: no
kink or jump, no derivative that is infinite or that rounding spoils, no way through an array that
has no gradient. It only ever says that nothing of that is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.tolerance import largest
from engine.autograd.launch.derived import can_lift
from engine.autograd.launch.evaluation import (
    Evaluation,
    EvaluationFailed,
    Evaluations,
    evaluations,
)
from engine.autograd.launch.paths import RESULTS, may_not_end
from engine.autograd.launch.recorded_arguments import (
    NotRepeatable,
    recorded_launch,
)
from engine.autograd.launch.unassigned import unassigned_reads
from engine.lang.numbers import epsilon
from engine.tape.records import LaunchRecord

Array = NDArray[Any]

STEP = 1e-4  # of the difference, by the sizes of what is moved
NEAR = 1e-3  # how near it must be to forward mode, as a part of an array's largest element
# How many times what others of its kind lost to rounding, or these units, is no reason to look.
MORE, UNITS = 4.0, 4.0
# How near the adjoint must be to forward mode, as a part of what the derivative is the sum of.
SAME = 1e-8


def seems_right(record: LaunchRecord, rng: np.random.Generator, rounding: float) -> bool:
    """Whether a launch looks as one does whose derivatives are right.

    rounding: what it added to the adjoints of others of its kind, as a part of them.

    Its adjoint is run in both precisions with cotangents for all outputs at once, beside forward
    mode and one difference of each element. False also where that cannot be done.
    """
    try:
        launch = recorded_launch(record)
        if not np.prod(launch.dim, dtype=np.int64) or unassigned_reads(launch):
            return False
        if not can_lift(launch.variants) or may_not_end(launch):
            return False
        with evaluations(launch) as evaluated, np.errstate(all="ignore"):
            return _seems_right(evaluated, rng, rounding)
    except (NotRepeatable, EvaluationFailed, MemoryError):
        return False


def _seems_right(launch: Evaluations, rng: np.random.Generator, rounding: float) -> bool:
    own, exact = launch.own, launch.exact
    start = exact.initial
    if not launch.inputs or not launch.outputs or launch.epsilon:
        return False
    if not _finite(start, launch.readable):
        return False
    w = {b: rng.standard_normal(start[b].shape) for b in launch.outputs}
    mine, known = own.vjp(w), exact.vjp(w)
    results = (own.memory, launch.outputs), (exact.memory, launch.outputs)
    if not all(_finite(*x) for x in (*results, (mine, launch.inputs), (known, launch.inputs))):
        return False
    for b in launch.outputs:
        off = largest(own.memory[b] - exact.memory[b])
        if not off <= RESULTS * largest(exact.memory[b]):
            return False
    for a in launch.inputs:
        scale, off = largest(known[a]), largest(mine[a] - known[a])
        if off > MORE * max(rounding, UNITS * epsilon(mine[a].dtype)) * scale:
            return False
    v = {a: rng.standard_normal(start[a].shape) * _size(start[a]) for a in launch.inputs}
    terms = np.concatenate([(known[a] * v[a]).ravel() for a in launch.inputs])
    adjoint, size = float(terms.sum()), float(np.linalg.norm(terms))
    moved = exact.jvp(v)
    forward = sum(float((w[b] * moved[b]).sum()) for b in launch.outputs)
    if not abs(adjoint - forward) <= SAME * max(abs(forward), size):
        return False
    along = {b: moved[b].copy() for b in launch.outputs}
    after, before = _outputs(exact, along, v, STEP), _outputs(exact, along, v, -STEP)
    for b, d in along.items():
        rough = np.finfo(np.float64).eps / STEP * largest(after[b])
        if not largest((after[b] - before[b]) / (2 * STEP) - d) <= NEAR * largest(d) + 16 * rough:
            return False
    return True


def _finite(arrays: Mapping[str, Array], names: Iterable[str]) -> bool:
    return all(np.isfinite(arrays[name]).all() for name in names)


def _size(x: Array) -> Array:
    typical = float(np.sqrt(np.mean(np.square(x)))) if x.size else 0.0
    return np.maximum(np.abs(x), 0.1 * typical if typical > 0 else 1.0)


def _outputs(exact: Evaluation, names: Mapping[str, Array], v: Mapping[str, Array], t: float
             ) -> dict[str, Array]:  # fmt: skip
    """What the launch leaves where its inputs are displaced by t times a direction."""
    exact.restore()
    for a, d in v.items():
        exact.memory[a][...] = exact.initial[a] + t * d
    exact.forward_again()
    out = {b: exact.memory[b].copy() for b in names}
    for a in v:
        exact.memory[a][...] = exact.initial[a]
    return out
