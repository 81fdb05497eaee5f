"""Compares entries of a function's Jacobian with differences of reruns.

Where one difference contradicts the adjoint, steps of all sizes are taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.block import EntryBlock
from engine.autograd.comparison.convergence import judge_slopes
from engine.autograd.comparison.judgement import (
    FAIL,
    NAN,
    PASS,
    TRUST,
    Comparison,
    Judgement,
    worst_of,
)
from engine.autograd.comparison.tolerance import largest, relative_error
from engine.autograd.function.adjoint import adjoint_rows
from engine.autograd.function.compared import ComparedFunction
from engine.autograd.function.displaced import slope_by, typical_size
from engine.autograd.function.scalars import scalar_at
from engine.autograd.reference.differences import Slope
from engine.autograd.reference.noise import fourth_differences
from engine.autograd.reference.step_sweep import Slopes, step_sizes, sweep
from engine.autograd.variables.dense import Dense
from engine.autograd.variables.roles import Pair
from engine.autograd.variables.variable import Variable

Array = NDArray[Any]
Key = tuple[int, int]


def compare_entries(function: ComparedFunction) -> dict[Key, Comparison]:
    """Compares single entries, all or as many as were asked for."""
    dense = Dense(list(function.pairs), True)
    limit = function.max_outputs
    adjoint_rows(function.recorded, function.pairs, dense.entries, limit)
    function.recorded.restore()
    out = function.begun()
    for v in function.inputs:
        columns = _columns(function, v)
        cols = list(columns)
        for p in (p for p in function.pairs if p.input is v):
            rows = slice(0, limit if limit > 0 else None)
            part = function.displaced.span(p.output)
            ad = dense.entries[p.key][rows][:, cols]
            ref, error = np.empty(ad.shape), np.empty(ad.shape)
            for k, s in enumerate(columns.values()):
                ref[:, k], error[:, k] = s.value[part][rows], s.error[part][rows]
            block = EntryBlock(tuple(range(len(ad))), tuple(cols), ad, ref, error)
            out[p.key] = _judged(function, p, out[p.key], block)
    return out


def _columns(function: ComparedFunction, v: Variable) -> dict[int, Slope]:
    """The derivatives of all outputs by each scalar of an input."""
    out: dict[int, Slope] = {}
    for part, a in function.input_leaves(v):
        typical = typical_size(a)
        for f, col in enumerate(part.index().tolist()):
            # What is no number has no derivative.
            if not 0 < function.max_inputs <= col and np.isfinite(scalar_at(a, f)):
                out[col] = slope_by(function.displaced, a, f, typical, function.tolerance.eps)
    return dict(sorted(out.items()))


def _judged(function: ComparedFunction, p: Pair, c: Comparison, block: EntryBlock) -> Comparison:
    ad, ref, error = block.ad, block.reference.copy(), block.error.copy()
    c = replace(c, checked=ad.size)
    if not ad.size:
        return c
    if not np.all(np.isfinite(ad)):
        c = c.judged(function.not_finite(p))
    allowed = function.allowed(ref)
    with np.errstate(all="ignore"):
        wrong = ~(np.abs(ad - ref) <= allowed) & np.isfinite(ad)
    unsettled = ~np.isfinite(ad)
    unknown = ~np.isfinite(ref)
    if unknown.any() and (why := function.not_finite(p)) != NAN:  # through what is no number
        c = c.judged(why)
        wrong &= ~unknown
        unsettled |= unknown
    for j in np.flatnonzero(wrong.any(axis=0)).tolist():
        bad = np.flatnonzero(wrong[:, j])
        judgements, slopes = _column(function, p, block, j, bad, allowed)
        c = c.judged(*judgements)
        # What was settled replaces a difference that was not good for anything.
        ref[bad, j] = np.where(np.isfinite(slopes), slopes, ref[bad, j])
        error[bad, j] = np.where(np.isfinite(slopes), 0.0, error[bad, j])
        unsettled[bad, j] = [x.verdict not in ("pass", "fail") for x in judgements]
    c = c.judged(PASS)
    return _measured(function, c, replace(block, reference=ref, error=error), unsettled)


def _measured(
    function: ComparedFunction, c: Comparison, block: EntryBlock, unsettled: Array
) -> Comparison:
    """With the errors of entries that are settled."""
    ad, ref, error = block.ad, block.reference, block.error
    allowed = np.maximum(function.allowed(ref) + error, 1e-300)
    with np.errstate(all="ignore"):
        diff = np.where(unsettled, 0.0, np.abs(ad - ref))
        excess = np.where(np.isfinite(diff), diff / allowed, np.inf)
        if c.verdict == "nan":
            excess = np.where(np.isfinite(ad), -1.0, np.inf)
        known = np.abs(ref) > allowed + TRUST * error
        rel = np.where(known, relative_error(diff, ref, allowed, c.tolerance), 0.0)
    k, j = worst_of(excess, diff)
    c = c.measured(float(ad[k, j]), float(ref[k, j]), float(allowed[k, j]),
                   block.rows[k], block.cols[j])  # fmt: skip
    return c.bounded(largest(diff), largest(rel))


def _column(
    function: ComparedFunction, p: Pair, block: EntryBlock, j: int, bad: Array, allowed: Array
) -> tuple[list[Judgement], Array]:
    """Judges the entries of one column that disagree: verdicts and slopes."""
    ad, ref = block.ad[bad, j], block.reference[bad, j]
    if function.tolerance.literal:
        return [FAIL] * len(bad), ref
    rows = function.displaced.span(p.output).start + np.asarray(block.rows)[bad]
    found = _swept(function, p, block.cols[j], rows)
    allowed = np.minimum(allowed, function.allowed(block.ad))  # where differences were no good
    return judge_slopes(found, ad, allowed[bad, j], function.rtol)


def _swept(function: ComparedFunction, p: Pair, col: int, rows: Array) -> list[Slopes]:
    """Slopes of outputs by one scalar over many steps."""
    part, a = next((q, a) for q, a in function.input_leaves(p.input) if col in q.index())
    f = int(np.flatnonzero(part.index() == col)[0])
    x = scalar_at(a, f)
    precision, tiny = function.precision, function.tiny
    sizes = step_sizes(x, typical_size(a), precision)

    def line(t: float) -> tuple[float, Array]:
        return function.displaced.at(a, f, t)

    with np.errstate(all="ignore"):
        noise = fourth_differences(lambda t: line(t)[1][rows], 64.0 * sizes[-1])
    return sweep(line, sizes, precision, tiny, noise, rows)
