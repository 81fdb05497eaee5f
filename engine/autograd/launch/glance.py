"""A quick check for a launch after many similar ones were right.

Rules that were right at other values are right at these, too, where these are no special ones: no
derivative that is infinite or that rounding spoils, no way through an array that has no gradient.
It only ever says that nothing of that is seen; for kinks it does not look.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.tolerance import largest
from engine.autograd.launch.derived import can_lift
from engine.autograd.launch.evaluation import (
    Evaluation,
    EvaluationFailed,
    Evaluations,
    evaluations_of,
)
from engine.autograd.launch.paths import RESULTS, Decisions, may_not_end, takes_another_path
from engine.autograd.launch.recorded_arguments import (
    NotRepeatable,
    RecordedLaunch,
    recorded_launch,
)
from engine.autograd.launch.unassigned import unassigned_reads
from engine.cached import cached_property
from engine.draws import default_rng
from engine.lang.numbers import epsilon
from engine.tape.records import LaunchRecord

Array = NDArray[Any]

# How many times what others of its kind lost to rounding, or these units, is no reason to look.
MORE, UNITS = 4.0, 4.0
# How near the adjoint must be to forward mode, as a part of what the derivative is the sum of.
SAME = 1e-8
LEAST = 1e-6  # part of the largest that small derivatives count for, too
# Bytes of a kind's arrays, and of those of all kinds, that are kept for the next launch of it.
KEPT, KEPT_ALL = 16 << 20, 128 << 20
POOL = 1 << 18  # random numbers


class Glances:
    """Looks at launches, and keeps what it needs for the next one of a kind."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Evaluations, Decisions | None]] = {}
        self._bytes = 0

    @cached_property
    def _normals(self) -> Array:
        """Random numbers to take some of; few programs have so many launches that any are."""
        return default_rng(0x61A).standard_normal(POOL)

    def seems_right(
        self, kind: Hashable, record: LaunchRecord, rng: np.random.Generator, rounding: float
    ) -> bool:
        """Whether a launch looks as one does whose derivatives are right.

        rounding: what it added to the adjoints of others of its kind, as a part of them.

        Its adjoint is run in both precisions with cotangents for all outputs at once, beside
        forward mode. False also where that cannot be done.
        """
        try:
            launch = recorded_launch(record)
            if not np.prod(launch.dim, dtype=np.int64) or unassigned_reads(launch):
                return False
            if not can_lift(launch.variants):
                return False
            evaluated, decisions = self._evaluations(kind, launch)
            inside = evaluated.look_inside()
            if decisions is not None and decisions.may_run_on(launch, inside):
                return False
            try:
                with np.errstate(all="ignore"):
                    return _seems_right(evaluated, launch, Normals(rng, self._normals), rounding)
            finally:
                evaluated.close()
        except (NotRepeatable, EvaluationFailed, MemoryError):
            return False

    def _evaluations(
        self, kind: Hashable, launch: RecordedLaunch
    ) -> tuple[Evaluations, Decisions | None]:
        """What runs the launch, and what tells its decisions where they may keep it from ending."""
        known = self._kept.get(kind)
        if known is not None:
            known[0].reload(launch)
            return known
        made = evaluations_of(launch), Decisions(launch) if may_not_end(launch) else None
        size = sum(x.nbytes for e in (made[0].own, made[0].exact) for x in e.initial.values())
        size *= 1 if made[1] is None else 2
        if size <= KEPT and self._bytes + size <= KEPT_ALL:
            self._kept[kind] = made
            self._bytes += size
        return made


class Normals:
    """Normally distributed numbers, of which many are needed: taken from a pool at random."""

    def __init__(self, rng: np.random.Generator, pool: Array) -> None:
        self._rng, self._pool = rng, pool

    def like(self, x: Array) -> Array:
        """As many, in the same shape. Not to be changed."""
        if 2 * x.size > len(self._pool):
            return self._rng.standard_normal(x.shape)
        at = int(self._rng.integers(len(self._pool) - x.size))
        return self._pool[at : at + x.size].reshape(x.shape)


def _seems_right(
    launch: Evaluations, recorded: RecordedLaunch, rng: Normals, rounding: float
) -> bool:
    own, exact = launch.own, launch.exact
    start = exact.initial
    if not launch.inputs or not launch.outputs or launch.epsilon:
        return False
    if not _finite(start, launch.readable):
        return False
    moved = exact.jvp({a: rng.like(start[a]) * _size(start[a]) for a in launch.inputs})
    w = {b: rng.like(moved[b]) / _unit(moved[b]) for b in launch.outputs}
    every = (0, own.threads)  # one after another: nothing is divided for so little
    mine, known = own.vjp(w, every), exact.vjp(w, every)
    results = (own.memory, launch.outputs), (exact.memory, launch.outputs)
    if not all(_finite(*x) for x in (*results, (mine, launch.inputs), (known, launch.inputs))):
        return False
    made = [(own.memory[b], exact.memory[b]) for b in launch.outputs]
    if any(not _most(x - y) <= RESULTS * _most(y) for x, y in made):
        if takes_another_path(recorded):
            return False
    for a in launch.inputs:
        scale, off = _most(known[a]), _most(mine[a] - known[a])
        if off > MORE * max(rounding, UNITS * epsilon(mine[a].dtype)) * scale:
            return False
    return _same(exact, {a: known[a] for a in launch.inputs}, w, rng)


def _same(
    exact: Evaluation, grads: Mapping[str, Array], w: Mapping[str, Array], rng: Normals
) -> bool:
    """Whether forward mode gives what the adjoint does, along a direction in which all counts.

    grads: the adjoint for cotangents w.
    """
    most = max(map(_most, grads.values())) or 1.0
    v = {a: rng.like(g) / np.maximum(np.abs(g), LEAST * most)
         for a, g in grads.items()}  # fmt: skip
    terms = np.concatenate([(g * v[a]).ravel() for a, g in grads.items()])
    moved = exact.jvp(v)
    parts = np.concatenate([(w[b] * moved[b]).ravel() for b in w])
    size = max(float(np.linalg.norm(terms)), float(np.linalg.norm(parts)))
    return bool(abs(float(terms.sum()) - float(parts.sum())) <= SAME * size)


def _most(x: Array) -> float:
    """The largest magnitude of finite numbers."""
    return float(np.abs(x).max(initial=0.0))


def _unit(x: Array) -> float:
    """The size of a derivative, as far as one in a narrow type of float can be made up for."""
    size = largest(x)
    return min(max(size, LEAST), 1 / LEAST) if size > 0 else 1.0


def _finite(arrays: Mapping[str, Array], names: Iterable[str]) -> bool:
    return all(np.isfinite(arrays[name]).all() for name in names)


def _size(x: Array) -> Array:
    size = np.abs(x)
    typical = float(size.sum()) / x.size if x.size else 0.0
    return np.maximum(size, 0.1 * typical if typical > 0 else 1.0)
