"""Compares the adjoint of a Python function with differences of running it again.

A function may do more than launch kernels, so it is run at displaced inputs, in its own
precision. Where one difference contradicts the adjoint, steps of all sizes are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
    judge,
)
from engine.autograd.comparison.tolerance import AUTO_RTOL, Tolerance, largest
from engine.autograd.function.adjoint import adjoint_rows, clear
from engine.autograd.function.call import FunctionCall, Run, arrays_of, leaves_of
from engine.autograd.function.displaced import (
    FACTORS,
    POWER,
    DisplacedFunction,
    slope_by,
    typical_size,
)
from engine.autograd.reference.differences import Slope
from engine.autograd.reference.noise import fourth_differences
from engine.autograd.reference.step_sweep import Slopes, step_sizes, sweep
from engine.autograd.variables.dense import Dense
from engine.autograd.variables.roles import Pair
from engine.autograd.variables.variable import Part, Variable
from engine.runtime.array import array

Array = NDArray[Any]
Key = tuple[int, int]

# Above this many scalars on a side or entries in all, random directions take the place of entries.
SIDE = 512
ENTRIES = 100_000
DIRECTIONS = 2


@dataclass(frozen=True)
class Subject:
    """What is compared: pairs of a function's variables, at one run of it.

    max_inputs, max_outputs: how many scalars of each variable to look at; all if <= 0. restore:
    puts back what runs changed.
    """

    call: FunctionCall
    run: Run
    pairs: Sequence[Pair]
    displaced: DisplacedFunction
    restore: Callable[[], None]
    tolerance: Tolerance
    max_inputs: int
    max_outputs: int
    rng: np.random.Generator

    @cached_property
    def inputs(self) -> list[Variable]:
        """All inputs, once each."""
        return _unique([p.input for p in self.pairs])

    @cached_property
    def outputs(self) -> list[Variable]:
        """All outputs, once each."""
        return _unique([p.output for p in self.pairs])

    @cached_property
    def precision(self) -> float:
        """The relative rounding of the coarsest arrays."""
        return max(float(np.finfo(t).eps) for t in self._types)

    @cached_property
    def tiny(self) -> float:
        """The smallest positive value of the coarsest arrays."""
        return max(float(np.finfo(t).smallest_subnormal) for t in self._types)

    @cached_property
    def _types(self) -> list[Any]:
        found = [leaves_of(self.call.given[p.input.index])[q.leaf]
                 for p in self.pairs for q in p.input.parts]  # fmt: skip
        found += [leaves_of(self.run.results[p.output.index])[q.leaf]
                  for p in self.pairs for q in p.output.parts]  # fmt: skip
        return [a._parts.dtype for a in found]

    @cached_property
    def rtol(self) -> float:
        """What differences in this precision can tell."""
        return float(max(AUTO_RTOL, 100.0 * self.precision ** (1.0 - POWER)))

    @property
    def small(self) -> bool:
        """Whether entries are compared one by one."""
        inputs = sum(v.size for v in self.inputs)
        outputs = sum(v.size for v in self.outputs)
        asked = self.max_inputs > 0 or self.max_outputs > 0
        return asked or (max(inputs, outputs) <= SIDE and inputs * outputs <= ENTRIES)

    def input_leaves(self, v: Variable) -> list[tuple[Part, array]]:
        """The arrays of an input, and which of its scalars are theirs."""
        leaves = leaves_of(self.call.given[v.index])
        return [(part, leaves[part.leaf]) for part in v.parts]

    def output_leaves(self, v: Variable) -> list[tuple[Part, array]]:
        """The same of an output."""
        leaves = leaves_of(self.run.results[v.index])
        return [(part, leaves[part.leaf]) for part in v.parts]

    def not_finite(self, p: Pair) -> Judgement:
        """The verdict on an adjoint that is not: it is the function's fault unless its inputs'."""
        for _, a in self.input_leaves(p.input):
            if not np.all(np.isfinite(a._parts)):
                why = f"argument {p.input.label!r} holds NaN or Inf"
                return Judgement("inconclusive", why)
        return NAN

    def allowed(self, ref: Array) -> Array:
        """The largest error allowed at each entry, beside the others in its row and column."""
        size = np.where(np.isfinite(ref), np.abs(ref), 0.0)
        near = size
        if size.ndim == 2:
            near = np.minimum(size.max(axis=1, keepdims=True), size.max(axis=0, keepdims=True))
        automatic = self.tolerance.atol is None and self.tolerance.rtol is None
        if self.tolerance.literal or not automatic:
            return self.tolerance.of(ref, near)
        return np.asarray(self.rtol * np.abs(ref) + 0.1 * self.rtol * near)


def compare(subject: Subject) -> dict[Key, Comparison]:
    """Compares all pairs, by entries where there are few, else along random directions.

    The adjoint is asked first: runs of the function then change what its tape has seen.
    """
    found = compare_entries(subject) if subject.small else compare_directions(subject)
    for p in subject.pairs:
        if not p.input.size or not p.output.size:
            found[p.key] = replace(found[p.key], reason="the array is empty")
    return found


# ---- entries


def compare_entries(subject: Subject) -> dict[Key, Comparison]:
    """Compares single entries, all or as many as were asked for."""
    dense = Dense(list(subject.pairs), True)
    limit = subject.max_outputs
    adjoint_rows(subject.call, subject.run, subject.pairs, dense.entries, limit)
    subject.restore()
    out = {p.key: Comparison() for p in subject.pairs}
    for v in subject.inputs:
        columns = _columns(subject, v)
        cols = list(columns)
        for p in (p for p in subject.pairs if p.input is v):
            rows = slice(0, limit if limit > 0 else None)
            part = subject.displaced.span(p.output)
            ad = dense.entries[p.key][rows][:, cols]
            ref, error = np.empty(ad.shape), np.empty(ad.shape)
            for k, s in enumerate(columns.values()):
                ref[:, k], error[:, k] = s.value[part][rows], s.error[part][rows]
            block = EntryBlock(tuple(range(len(ad))), tuple(cols), ad, ref, error)
            out[p.key] = _judged(subject, p, block)
    return out


def _columns(subject: Subject, v: Variable) -> dict[int, Slope]:
    """The derivatives of all outputs by each scalar of an input."""
    out: dict[int, Slope] = {}
    for part, a in subject.input_leaves(v):
        typical = typical_size(a)
        for f, col in enumerate(part.index().tolist()):
            if not 0 < subject.max_inputs <= col:
                out[col] = slope_by(subject.displaced, a, f, typical, subject.tolerance.eps)
    return dict(sorted(out.items()))


def _judged(subject: Subject, p: Pair, block: EntryBlock) -> Comparison:
    ad, ref, error = block.ad, block.reference.copy(), block.error.copy()
    c = Comparison(checked=ad.size)
    if not ad.size:
        return c
    if not np.all(np.isfinite(ad)):
        c = c.judged(subject.not_finite(p))
    allowed = subject.allowed(ref)
    with np.errstate(all="ignore"):
        wrong = ~(np.abs(ad - ref) <= allowed) & np.isfinite(ad)
    unsettled = ~np.isfinite(ad)
    for j in np.flatnonzero(wrong.any(axis=0)).tolist():
        bad = np.flatnonzero(wrong[:, j])
        judgements, slopes = _column(subject, p, block, j, bad, allowed)
        c = c.judged(*judgements)
        # What was settled replaces a difference that was not good for anything.
        ref[bad, j] = np.where(np.isfinite(slopes), slopes, ref[bad, j])
        error[bad, j] = np.where(np.isfinite(slopes), 0.0, error[bad, j])
        unsettled[bad, j] = [x.verdict not in ("pass", "fail") for x in judgements]
    c = c.judged(PASS)
    return _measured(subject, c, replace(block, reference=ref, error=error), unsettled)


def _measured(subject: Subject, c: Comparison, block: EntryBlock, unsettled: Array) -> Comparison:
    """With the errors of entries that are settled."""
    ad, ref, error = block.ad, block.reference, block.error
    allowed = np.maximum(subject.allowed(ref) + error, 1e-300)
    with np.errstate(all="ignore"):
        diff = np.where(unsettled, 0.0, np.abs(ad - ref))
        excess = np.where(np.isfinite(diff), diff / allowed, np.inf)
        if c.verdict == "nan":
            excess = np.where(np.isfinite(ad), -1.0, np.inf)
        rel = np.where(np.abs(ref) > allowed + TRUST * error, diff / np.abs(ref), 0.0)
    k, j = (int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    c = c.measured(float(ad[k, j]), float(ref[k, j]), float(allowed[k, j]),
                   block.rows[k], block.cols[j])  # fmt: skip
    return c.bounded(largest(diff), largest(rel))


def _column(
    subject: Subject, p: Pair, block: EntryBlock, j: int, bad: Array, allowed: Array
) -> tuple[list[Judgement], Array]:
    """Judges the entries of one column that disagree: verdicts and slopes."""
    ad, ref = block.ad[bad, j], block.reference[bad, j]
    if subject.tolerance.literal:
        return [FAIL] * len(bad), ref
    rows = subject.displaced.span(p.output).start + np.asarray(block.rows)[bad]
    found = _swept(subject, p, block.cols[j], rows)
    allowed = np.minimum(allowed, subject.allowed(block.ad))  # where differences were no good
    return judge_slopes(found, ad, allowed[bad, j], subject.rtol)


def _swept(subject: Subject, p: Pair, col: int, rows: Array) -> list[Slopes]:
    """Slopes of outputs by one scalar over many steps."""
    part, a = next((q, a) for q, a in subject.input_leaves(p.input) if col in q.index())
    f = int(np.flatnonzero(part.index() == col)[0])
    x = float(a._parts[np.unravel_index(f, a._parts.shape)])
    precision, tiny = subject.precision, subject.tiny
    sizes = step_sizes(x, typical_size(a), precision)

    def line(t: float) -> tuple[float, Array]:
        return subject.displaced.at(a, f, t)

    with np.errstate(all="ignore"):
        noise = fourth_differences(lambda t: line(t)[1][rows], 64.0 * sizes[-1])
    return sweep(line, sizes, precision, tiny, noise, rows)


# ---- random directions


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


def compare_directions(subject: Subject) -> dict[Key, Comparison]:
    """Compares w'Jv along random directions."""
    adjoint = [_gradients(subject) for _ in range(DIRECTIONS)]
    subject.restore()
    out = {p.key: Comparison() for p in subject.pairs}
    for found in adjoint:
        along = {id(v): _direction(subject, v) for v in subject.inputs}
        for p in subject.pairs:
            out[p.key] = _along(subject, p, out[p.key], found[p.key], along[id(p.input)])
    return out


def _gradients(subject: Subject) -> dict[Key, _Directed]:
    loose = arrays_of([*subject.call.given, *subject.run.results])
    found = {}
    for b in subject.outputs:
        w = subject.rng.standard_normal(b.size)
        clear(subject.run.tape, loose)
        for part, out in subject.output_leaves(b):
            grad = out.grad
            assert grad is not None
            grad.storage.before_write(grad.lo, grad.hi)
            grad._parts[...] = w[part.places()].reshape(grad._parts.shape)
        subject.run.tape.backward(grads={})
        for p in subject.pairs:
            if p.output is b:
                found[p.key] = _Directed(w, _gradient(subject, p.input))
    return found


def _gradient(subject: Subject, v: Variable) -> Array:
    out = np.zeros(v.size)
    for part, a in subject.input_leaves(v):
        grad = a.grad
        if grad is not None:
            out[part.places()] = grad._parts.reshape(-1)
    return out


def _direction(subject: Subject, v: Variable) -> _Direction:
    moves = []
    whole = np.zeros(v.size)
    for part, a in subject.input_leaves(v):
        size = np.maximum(np.abs(a._parts.astype(np.float64)), 0.1 * typical_size(a))
        d = np.where(np.isfinite(size), size * subject.rng.standard_normal(a._parts.shape), 0.0)
        moves.append((a, d))
        whole[part.places()] = d.reshape(-1)
    best: Slope | None = None
    sizes = [subject.precision**POWER * k for k in FACTORS]
    if subject.tolerance.eps is not None:
        sizes = [subject.tolerance.eps]
    for h in sizes:
        s = _extrapolated(subject, moves, h)
        if best is not None:
            better = s.error < best.error
            s = Slope(np.where(better, s.value, best.value), np.where(better, s.error, best.error))
        best = s
    assert best is not None
    return _Direction(whole, best)


def _extrapolated(subject: Subject, moves: Sequence[tuple[array, Array]], h: float) -> Slope:
    along = subject.displaced.along
    far, near = ((along(moves, s), along(moves, -s)) for s in (h, h / 2))
    with np.errstate(all="ignore"):
        wide, narrow = (far[0] - far[1]) / (2 * h), (near[0] - near[1]) / h
        rounding = 8 * subject.precision * np.maximum(np.abs(near[0]), np.abs(near[1])) / h
        value = (4 * narrow - wide) / 3
        bound = np.abs(narrow - wide) + rounding
        return Slope(value, np.where(np.isfinite(value), bound, np.inf))


def _along(
    subject: Subject, p: Pair, c: Comparison, found: _Directed, along: _Direction
) -> Comparison:
    part = subject.displaced.span(p.output)
    w, g, v = found.cotangent, found.gradient, along.direction
    c = replace(c, directional=c.directional + 1)
    if not np.all(np.isfinite(g)):
        return c.judged(subject.not_finite(p))
    with np.errstate(all="ignore"):
        ref = float(w @ along.slope.value[part])
        error = float(np.linalg.norm(w * along.slope.error[part]))
        parts = g * v
        spread = float(np.linalg.norm(parts))
    ad = float(parts.sum())
    allowed = float(subject.allowed(np.asarray(max(abs(ref), spread))))
    c = c.measured(ad, ref, max(allowed, 1e-300))
    agrees = abs(ad - ref) <= allowed + error
    if agrees and error > 0.1 * max(abs(ref), spread) > 0:
        why = f"the reference itself is uncertain by {error:.1e}"
        return c.judged(Judgement("inconclusive", why))
    if agrees:
        return c.judged(PASS)
    if subject.tolerance.literal:
        return c.judged(judge(abs(ad - ref), allowed + error, error, bool(np.isfinite(ref))))
    return c.judged(_swept_along(subject, p, found, along, ad, allowed, spread))


def _swept_along(
    subject: Subject, p: Pair, found: _Directed, along: _Direction, ad: float, allowed: float,
    spread: float,
) -> Judgement:  # fmt: skip
    """What many steps along a direction say of w' J v."""
    moves = [
        (a, along.direction[q.places()].reshape(a._parts.shape))
        for q, a in subject.input_leaves(p.input)
    ]
    part = subject.displaced.span(p.output)
    rows = np.arange(part.start, part.stop)

    def line(t: float) -> tuple[float, Array]:
        return t, subject.displaced.along(moves, t)

    precision, w = subject.precision, found.cotangent
    sizes = [t for t in step_sizes(1.0, 1.0, precision) if t >= 64.0 * precision]
    slopes = sweep(line, sizes, precision, subject.tiny, 0.0, rows, w, spread)
    return judge_slopes(slopes, np.array([ad]), np.array([allowed]), subject.rtol)[0][0]


def _unique(variables: Sequence[Variable]) -> list[Variable]:
    return list({id(v): v for v in variables}.values())
