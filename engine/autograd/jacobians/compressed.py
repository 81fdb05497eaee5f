"""Jacobians of a launch from a few directional derivatives, one for each colour."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.jacobians.colouring import colour
from engine.autograd.jacobians.shares import ALL, Share
from engine.autograd.jacobians.sparsity import Pattern, Side, UnknownSparsity, find_pattern
from engine.autograd.launch.displaced import DisplacedLaunch
from engine.autograd.launch.evaluation import Evaluation
from engine.autograd.reference.differences import Slope, fixed, nearer
from engine.classes import dataclass
from engine.diagnostics import EngineError
from engine.draws import default_rng

Ints = NDArray[np.int64]
Array = NDArray[Any]

# Products that differ by more than this, in terms of the sums of magnitudes, show an entry that
# the pattern has not: rounding in float32 gives some 1e-6.
AGREE = 1e-3
COARSELY = 0.05  # for differences of what has no float64 form


@dataclass(frozen=True)
class Entries:
    """The values of a pattern's entries. colours: how many directions they took."""

    pattern: Pattern
    values: Array
    colours: int
    forward: bool


def adjoint_entries(own: Evaluation, inputs: Side, outputs: Side, share: Share = ALL) -> Entries:
    """Entries in the launch's own precision: by its adjoint, or its tangent where that is less.

    share: of a part of them the others are zero, and nothing is made sure of.
    Raises UnknownSparsity where no pattern can be told, or a product shows that it is wrong.
    """
    pattern = find_pattern(own, inputs, outputs)
    plan = _plan(pattern, _has_tangent(own))

    def backward(w: Array) -> Array:
        grads = own.vjp(_split(w, outputs, own))
        return np.concatenate([grads[a].reshape(-1) for a in inputs.names])

    def forward(v: Array) -> Array:
        tangents = own.jvp_by_hand(_split(v, inputs, own))
        return np.concatenate([tangents[b].reshape(-1) for b in outputs.names])

    product = forward if plan.forward else backward
    values = _evaluated(plan, product, share)
    if not share.whole:
        return Entries(pattern, values, plan.colours, plan.forward)
    _guarded(pattern, values, plan.forward, product)
    if plan.forward:
        _repaired(pattern, values, backward)
    return Entries(pattern, values, plan.colours, plan.forward)


def difference_entries(
    displaced: DisplacedLaunch,
    own: Evaluation,
    inputs: Side,
    outputs: Side,
    eps: float | None = None,
    share: Share = ALL,
) -> Entries:
    """Entries by differences of the lifted launch, all columns of one colour at once.

    displaced: of exactly these inputs and outputs, in this order. eps: the step of plain
    central differences, None to search for one.
    share: as above. Raises UnknownSparsity.
    """
    pattern = find_pattern(own, inputs, outputs)
    colours, count = colour(pattern.rows, pattern.cols, inputs.size)
    steps = np.concatenate([displaced.scales(a) for a in inputs.names])
    near = np.concatenate([displaced.own_scales(a) for a in inputs.names])
    if eps is not None:
        steps = near = np.where(steps > 0, 1.0, 0.0)

    def along(v: Array) -> Slope:
        moves = _split(v, inputs, displaced.exact)
        if eps is not None:
            return fixed(displaced.along_all(moves), eps, displaced.precision)
        return displaced.slope_along_all(moves)

    def of(entries: Array, chosen: Array, sizes: Array) -> Slope:
        found = along(np.where(chosen, sizes, 0.0))
        rows, size = pattern.rows[entries], sizes[pattern.cols[entries]]
        with np.errstate(all="ignore"):  # what is not finite has no derivative
            return Slope(found.value[rows] / size, found.error[rows] / size)

    def both(mine: Array, chosen: Array) -> Array:
        found = of(mine, chosen, steps)
        out = found.value
        small = chosen & (near < steps)
        if small.any():
            which = small[pattern.cols[mine]]
            few = Slope(found.value[which], found.error[which])
            out[which] = nearer(few, of(mine[which], small, near)).value
        return out

    values = np.zeros(len(pattern.rows))
    for k, (mine, chosen) in enumerate(_by_colour(pattern.cols, colours, count)):
        taken = share.take("differences", k, partial(both, mine, chosen), len(mine))
        if taken is not None:
            values[mine] = taken
    if eps is None and share.whole:  # a plain difference of a sum is not the sum of differences
        scaled = values * near[pattern.cols]
        agree = COARSELY if displaced.precision.coarse else AGREE
        _guarded(pattern, scaled, True, lambda v: along(v * near).value, agree)
    return Entries(pattern, values, count, True)


# ---- evaluation


@dataclass(frozen=True)
class _Plan:
    """Colours of columns (forward) or of rows."""

    pattern: Pattern
    of_each: Ints
    colours: int
    forward: bool


def _has_tangent(own: Evaluation) -> bool:
    """Whether there is a forward mode, as far as can be told the transpose of the adjoint.

    C++ functions without an adjoint have none.
    """
    try:
        own.variants.tangent_ir(own.wrt)
    except EngineError:
        return False
    return not own.variants.nonlinear_gradients(own.wrt)


def _plan(pattern: Pattern, tangent: bool) -> _Plan:
    """Columns or rows, whichever need fewer colours; the adjoint where it makes no difference."""
    rows, cols = pattern.rows, pattern.cols
    least_cols = int(np.bincount(rows).max(initial=0))  # no fewer colours can do
    order = np.lexsort((rows, cols)) if not _ascending(cols) else np.arange(len(cols))
    of_rows, count = colour(cols[order], rows[order], pattern.shape[0])
    if tangent and 2 * least_cols < count:
        of_cols, fewer = colour(rows, cols, pattern.shape[1])
        if 2 * fewer < count:
            return _Plan(pattern, of_cols, fewer, True)
    return _Plan(pattern, of_rows, count, False)


def _ascending(x: Ints) -> bool:
    return bool(np.all(x[1:] >= x[:-1]))


def _by_colour(index: Ints, colours: Ints, count: int) -> Any:
    """For each colour, its entries and a mask of its columns (or rows)."""
    mine = colours[index]
    order = np.argsort(mine, kind="stable") if count > 8 else None
    ends = np.cumsum(np.bincount(mine, minlength=count)) if order is not None else None
    for c in range(count):
        if order is None or ends is None:
            entries = np.flatnonzero(mine == c)
        else:
            entries = order[(ends[c - 1] if c else 0) : ends[c]]
        yield entries, colours == c


def _evaluated(plan: _Plan, product: Callable[[Array], Array], share: Share) -> Array:
    p = plan.pattern
    seeded, read = (p.cols, p.rows) if plan.forward else (p.rows, p.cols)
    values: Array | None = None

    def of(entries: Array, chosen: Array) -> Array:
        out: Array = product(chosen.astype(np.float64))[read[entries]]
        return out

    for k, (entries, chosen) in enumerate(_by_colour(seeded, plan.of_each, plan.colours)):
        found = share.take("adjoint", k, partial(of, entries, chosen), len(entries))
        if found is None:
            continue
        if values is None:
            values = np.zeros(len(p.rows), found.dtype)
        values[entries] = found
    return np.zeros(len(p.rows), np.float32) if values is None else values


def _guarded(
    p: Pattern, values: Array, forward: bool, product: Callable[[Array], Array],
    agree: float = AGREE,
) -> None:  # fmt: skip
    """Raises UnknownSparsity where a product with a random vector shows a missing entry."""
    count = p.shape[1] if forward else p.shape[0]
    size = p.shape[0] if forward else p.shape[1]
    if not count or not size:
        return
    v = default_rng(len(values)).uniform(0.5, 1.5, count)
    v *= np.where(np.arange(count) % 2, 1.0, -1.0)
    seeded, read = (p.cols, p.rows) if forward else (p.rows, p.cols)
    with np.errstate(all="ignore"):
        expected = product(v).astype(np.float64)
        terms = values * v[seeded]
        found = np.bincount(read, terms, size)
        weight = np.bincount(read, np.abs(terms), size)
        # A sum of many terms that cancel says nothing about the size of any of them.
        tolerance = agree * np.maximum(weight, np.abs(expected) * (weight > 0)) + 1e-30
        wrong = np.isfinite(expected) & np.isfinite(found) & (np.abs(expected - found) > tolerance)
    if wrong.any():
        raise UnknownSparsity("a product with a random vector shows a missing entry")


def _repaired(p: Pattern, values: Array, backward: Callable[[Array], Array]) -> None:
    """Asks the adjoint for rows that are not finite: zero times infinity spoils tangents."""
    rows = np.unique(p.rows[~np.isfinite(values)])
    for row in rows[:1024]:
        w = np.zeros(p.shape[0])
        w[row] = 1.0
        part = slice(*np.searchsorted(p.rows, (row, row + 1)))
        values[part] = backward(w)[p.cols[part]]


def _split(v: Array, side: Side, evaluation: Evaluation) -> dict[str, Array]:
    return {a: v[side.span(a)].reshape(evaluation.memory[a].shape) for a in side.names}
