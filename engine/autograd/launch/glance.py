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
LEAST = 1e-6  # part of the largest that small derivatives count for, too
WEAK = 1e-2  # part of the largest below which an input is moved by itself


def seems_right(record: LaunchRecord, rng: np.random.Generator, rounding: float) -> bool:
    """Whether a launch looks as one does whose derivatives are right.

    rounding: what it added to the adjoints of others of its kind, as a part of them.

    Its adjoint is run in both precisions with cotangents for all outputs at once, beside forward
    mode and one difference of each element of these. False also where that cannot be done.
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
    v = {a: rng.standard_normal(start[a].shape) * _size(start[a]) for a in launch.inputs}
    moved = _moved(exact, v, launch.outputs)
    w = {b: rng.standard_normal(d.shape) / _unit(d) for b, d in moved.items()}
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
    grads = {a: known[a].copy() for a in launch.inputs}
    if not _same(exact, grads, w, rng):
        return False
    sizes = {a: float(np.linalg.norm(g * v[a])) for a, g in grads.items()}
    weak = [a for a in v if sizes[a] < WEAK * max(sizes.values())]
    if weak:
        moved = _moved(exact, {a: d for a, d in v.items() if a not in weak}, launch.outputs)
        alone = [({a: v[a]}, _moved(exact, {a: v[a]}, launch.outputs)) for a in weak]
    groups = [({a: d for a, d in v.items() if a not in weak}, moved), *(alone if weak else ())]
    return all(_near(exact, *x) for x in groups)


def _same(
    exact: Evaluation, grads: Mapping[str, Array], w: Mapping[str, Array], rng: np.random.Generator
) -> bool:
    """Whether forward mode gives what the adjoint does, along a direction in which all counts.

    grads: the adjoint for cotangents w.
    """
    most = max(largest(g) for g in grads.values()) or 1.0
    v = {a: rng.standard_normal(g.shape) / np.maximum(np.abs(g), LEAST * most)
         for a, g in grads.items()}  # fmt: skip
    terms = np.concatenate([(g * v[a]).ravel() for a, g in grads.items()])
    moved = exact.jvp(v)
    parts = np.concatenate([(w[b] * moved[b]).ravel() for b in w])
    size = max(float(np.linalg.norm(terms)), float(np.linalg.norm(parts)))
    return bool(abs(float(terms.sum()) - float(parts.sum())) <= SAME * size)


def _near(exact: Evaluation, v: Mapping[str, Array], moved: Mapping[str, Array]) -> bool:
    """Whether differences of all elements are near what forward mode says."""
    after, before = _outputs(exact, moved, v, STEP), _outputs(exact, moved, v, -STEP)
    for b, d in moved.items():
        rough = np.finfo(np.float64).eps / STEP * largest(after[b])
        off = (after[b] - before[b]) / (2 * STEP) - d
        if not (np.isfinite(off).all() and largest(off) <= NEAR * largest(d) + 16 * rough):
            return False
    return True


def _moved(exact: Evaluation, v: Mapping[str, Array], outputs: Iterable[str]) -> dict[str, Array]:
    found = exact.jvp(v)
    return {b: found[b].copy() for b in outputs}


def _unit(x: Array) -> float:
    """The size of a derivative, as far as one in a narrow type of float can be made up for."""
    size = largest(x)
    return min(max(size, LEAST), 1 / LEAST) if size > 0 else 1.0


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
