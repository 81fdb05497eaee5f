"""Compares a function's adjoint with differences along random directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.convergence import judge_slopes
from engine.autograd.comparison.judgement import PASS, Comparison, Judgement, judge
from engine.autograd.function.adjoint import gradients
from engine.autograd.function.compared import ComparedFunction
from engine.autograd.function.displaced import FACTORS, POWER, typical_size
from engine.autograd.reference.differences import Slope
from engine.autograd.reference.step_sweep import step_sizes, sweep
from engine.autograd.variables.roles import Pair
from engine.autograd.variables.variable import Variable
from engine.classes import dataclass
from engine.runtime.array import array

Array = NDArray[Any]
Key = tuple[int, int]

DIRECTIONS = 2


@dataclass(frozen=True)
class _Directed:
    """A random cotangent of an output, and the gradient of an input by it."""

    cotangent: Array
    gradient: Array


@dataclass(frozen=True)
class _Direction:
    """A random direction in an input, and the derivatives of all outputs along it."""

    direction: Array
    slope: Slope


def compare_directions(function: ComparedFunction) -> dict[Key, Comparison]:
    """Compares w'Jv along random directions."""
    adjoint = [_gradients(function) for _ in range(DIRECTIONS)]
    function.recorded.restore()
    out = function.begun()
    for found in adjoint:
        along = {id(v): _direction(function, v) for v in function.inputs}
        for p in function.pairs:
            out[p.key] = _along(function, p, out[p.key], found[p.key], along[id(p.input)])
    return out


def _gradients(function: ComparedFunction) -> dict[Key, _Directed]:
    found = {}
    for b in function.outputs:
        w = function.rng.standard_normal(b.size)
        pairs = [p for p in function.pairs if p.output is b]
        for key, g in gradients(function.recorded, pairs, w).items():
            found[key] = _Directed(w, g)
    return found


def _direction(function: ComparedFunction, v: Variable) -> _Direction:
    moves = []
    whole = np.zeros(v.size)
    for part, a in function.input_leaves(v):
        size = np.maximum(np.abs(a._host().astype(np.float64)), 0.1 * typical_size(a))
        d = np.where(np.isfinite(size), size * function.rng.standard_normal(a._parts.shape), 0.0)
        moves.append((a, d))
        whole[part.places()] = d.reshape(-1)
    best: Slope | None = None
    sizes = [function.precision**POWER * k for k in FACTORS]
    if function.tolerance.eps is not None:
        sizes = [function.tolerance.eps]
    for h in sizes:
        s = _extrapolated(function, moves, h)
        if best is not None:
            better = s.error < best.error
            s = Slope(np.where(better, s.value, best.value), np.where(better, s.error, best.error))
        best = s
    assert best is not None
    return _Direction(whole, best)


def _extrapolated(
    function: ComparedFunction, moves: Sequence[tuple[array, Array]], h: float
) -> Slope:
    along = function.displaced.along
    far, near = ((along(moves, s), along(moves, -s)) for s in (h, h / 2))
    with np.errstate(all="ignore"):
        wide, narrow = (far[0] - far[1]) / (2 * h), (near[0] - near[1]) / h
        rounding = 8 * function.precision * np.maximum(np.abs(near[0]), np.abs(near[1])) / h
        value = (4 * narrow - wide) / 3
        bound = np.abs(narrow - wide) + rounding
        return Slope(value, np.where(np.isfinite(value), bound, np.inf))


def _along(
    function: ComparedFunction, p: Pair, c: Comparison, found: _Directed, along: _Direction
) -> Comparison:
    part = function.displaced.span(p.output)
    w, g, v = found.cotangent, found.gradient, along.direction
    c = replace(c, directional=c.directional + 1)
    if not np.all(np.isfinite(g)):
        return c.judged(function.not_finite(p))
    with np.errstate(all="ignore"):
        ref = float(w @ along.slope.value[part])
        error = float(np.linalg.norm(w * along.slope.error[part]))
        parts = g * v
        spread = float(np.linalg.norm(parts))
    ad = float(parts.sum())
    allowed = float(function.allowed(np.asarray(max(abs(ref), spread))))
    agrees = abs(ad - ref) <= allowed + error
    c = c.measured(ad, ref, max(allowed + (error if agrees else 0.0), 1e-300), size=spread)
    if agrees and error > 0.1 * max(abs(ref), spread) > 0:
        why = f"the reference itself is uncertain by {error:.1e}"
        return c.judged(Judgement("inconclusive", why))
    if agrees:
        return c.judged(PASS)
    if function.tolerance.literal:
        return c.judged(judge(abs(ad - ref), allowed + error, error, bool(np.isfinite(ref))))
    return c.judged(_swept_along(function, p, found, along, ad, allowed, spread))


def _swept_along(
    function: ComparedFunction, p: Pair, found: _Directed, along: _Direction, ad: float,
    allowed: float, spread: float,
) -> Judgement:  # fmt: skip
    """What many steps along a direction say of w' J v."""
    moves = [
        (a, along.direction[q.places()].reshape(a._parts.shape))
        for q, a in function.input_leaves(p.input)
    ]
    part = function.displaced.span(p.output)
    rows = np.arange(part.start, part.stop)

    def line(t: float) -> tuple[float, Array]:
        return t, function.displaced.along(moves, t)

    precision, w = function.precision, found.cotangent
    sizes = [t for t in step_sizes(1.0, 1.0, precision) if t >= 64.0 * precision]
    slopes = sweep(line, sizes, precision, function.tiny, 0.0, rows, w, spread)
    return judge_slopes(slopes, np.array([ad]), np.array([allowed]), function.rtol)[0][0]
