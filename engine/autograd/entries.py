"""Compares single Jacobian entries of a launch, and looks closer at those that disagree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd import oracle
from engine.autograd.lines import Lines, largest
from engine.autograd.tally import KINK, NOT_FINITE, TRUST, Tally
from engine.autograd.votes import Question, remeasured, settle

Array = NDArray[Any]

# What the lifted adjoint may be off by beside the largest entry of the same output.
ROUNDED = 256.0 * oracle.FINE.epsilon


@dataclass(frozen=True)
class Block:
    """The compared entries of one pair: which rows and columns, and both values."""

    rows: tuple[int, ...]
    cols: tuple[int, ...]
    ad: Array
    oracle: Array
    error: Array


COARSE = "the kernel's own precision hides differences below {:.1e}, and it has no float64 form"
# The adjoint J' w for a cotangent of one output, by input.
Gradients = Callable[[str, Array], Mapping[str, Array]]


def rows_to_see(
    count: int, limit: int, columns: Sequence[oracle.Slope], part: slice, live: Array,
    rng: np.random.Generator,
) -> list[int]:  # fmt: skip
    """Which outputs to look at: those that the chosen inputs move most, then others."""
    every = np.flatnonzero(live)
    if limit <= 0 or len(every) <= limit:
        return [int(i) for i in every]
    moved = np.zeros(count)
    for s in columns:
        moved += np.nan_to_num(np.abs(s.value[part]), posinf=0.0)
    strongest = [int(i) for i in np.argsort(-moved, kind="stable") if live[i]]
    others = rng.choice(every, size=limit, replace=False)
    chosen = dict.fromkeys([*strongest[: max(1, limit - limit // 4)], *others.tolist()])
    return sorted(list(chosen)[:limit])


def adjoint_rows(
    lines: Lines, gradients: Gradients, b: str, rows: Sequence[int],
    cols: Mapping[str, Sequence[int]],
) -> dict[str, Array]:  # fmt: skip
    """The entries of the adjoint's Jacobian for one output, by input: (rows, columns)."""
    seed = np.zeros(lines.exact.initial[b].shape)
    out = {a: np.empty((len(rows), len(cols[a]))) for a in cols}
    index = {a: np.asarray(cols[a], dtype=np.intp) for a in cols}
    for k, i in enumerate(rows):
        seed.flat[i] = 1.0
        grads = gradients(b, seed)
        for a in cols:
            out[a][k] = grads[a].reshape(-1)[index[a]]
        seed.flat[i] = 0.0
    return out


def judge_block(lines: Lines, t: Tally, a: str, b: str, block: Block) -> None:
    """Compares the entries of one pair; their verdict replaces that of the directions."""
    t.reconsider()
    ad, ref, error = block.ad, block.oracle, block.error
    t.checked += ad.size
    if not ad.size:
        return
    tolerance = lines.tolerance
    size = np.where(np.isfinite(ref), np.abs(ref), 0.0)
    near = np.minimum(size.max(axis=1, keepdims=True), size.max(axis=0, keepdims=True))
    allowed = tolerance.of(ref, near)
    if tolerance.atol is None:  # the adjoint's own sums are rounded, too
        allowed += ROUNDED * size.max(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        diff = np.abs(ad - ref)
        good = diff <= allowed
        if tolerance.atol is None:  # what the reference cannot tell from the largest entry's noise
            floor = tolerance.floor * largest(ref)
            good |= (diff <= allowed + floor) & (diff <= TRUST * error)
    _note(t, block, diff, allowed)
    t.say("pass")
    if tolerance.epsilon and tolerance.auto:
        hidden = good & (diff > 0) & (error > allowed + tolerance.floor * largest(ref))
        if hidden.any():
            t.say("inconclusive", COARSE.format(float(error[hidden].max())))
    if not np.all(np.isfinite(ad)):
        t.say("nan", NOT_FINITE) if not lines.spoiled else t.say("inconclusive", spoilt(lines))
        return
    for j in np.flatnonzero(~good.all(axis=0)):
        bad = np.flatnonzero(~good[:, j])
        _column(lines, t, a, b, block, int(j), bad, allowed)
        if t.verdict == "fail":
            return


def _note(t: Tally, block: Block, diff: Array, allowed: Array) -> None:
    ad, ref = block.ad, block.oracle
    with np.errstate(all="ignore"):
        excess = np.where(np.isfinite(diff), diff / np.maximum(allowed, 1e-300), np.inf)
        known = np.abs(ref) > np.maximum(allowed, TRUST * block.error)
        rel = np.where(known, diff / np.abs(ref), 0.0)
    k, j = (int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    t.compare(float(ad[k, j]), float(ref[k, j]), float(max(allowed[k, j], 1e-300)),
              block.rows[k], block.cols[j])  # fmt: skip
    t.max_abs = max(t.max_abs, largest(diff))
    t.max_rel = max(t.max_rel, largest(rel))


def _column(
    lines: Lines, t: Tally, a: str, b: str, block: Block, j: int, bad: Array, allowed: Array
) -> None:
    """Judges the entries of one column that disagree: kinks, near misses, errors."""
    col, offset = block.cols[j], lines.spans[b].start
    rows = offset + np.asarray(block.rows)[bad]
    ad, ref, error = block.ad[bad, j], block.oracle[bad, j], block.error[bad, j]
    limit = allowed[bad, j]
    if lines.tolerance.literal:  # the formula itself was asked for
        t.say("fail")
        return
    right, left, noise = (x[rows] for x in lines.one_sided(a, col))
    lo, hi = np.minimum(right, left), np.maximum(right, left)
    slack = 1e-4 * (np.abs(lo) + np.abs(hi)) + noise
    with np.errstate(all="ignore"):
        kink = (hi - lo > 4 * slack) & (lo - slack <= ad) & (ad <= hi + slack)
        unsure = noise + (hi - lo)
        agrees = (np.abs(right - ad) <= limit + unsure) & (unsure < 0.1 * np.abs(ad - ref))
    if kink.any() and lines.exact.unwritten:
        # Both modes choose the same side of a kink.
        forward = np.array([lines.forward_column(a, col, int(r)) for r in rows])
        with np.errstate(all="ignore"):
            kink &= ~(np.abs(forward - ad) > limit)
    if kink.any():
        t.say("kink", KINK)
    left_over = ~kink & ~agrees
    if lines.tolerance.eps is None and left_over.any():
        left_over &= ~_small_steps_agree(lines, a, col, rows, ad, ref, limit)
    for i in np.flatnonzero(left_over):
        row = int(rows[i])
        settle(t, Question(
            float(ad[i]), float(ref[i]), float(error[i]), float(limit[i]),
            lambda row=row: lines.forward_column(a, col, row),  # type: ignore[misc]
            lambda row=row: remeasured(lines.one(a, col, row), lines.scale(a, col),  # type: ignore[misc]
                                       lines.grain),
        ))  # fmt: skip


def _small_steps_agree(
    lines: Lines, a: str, col: int, rows: Array, ad: Array, ref: Array, limit: Array
) -> Array:
    """Where smaller steps, if sharp enough to tell, all side with the adjoint."""
    agree, asked = np.ones(len(rows), bool), np.zeros(len(rows), bool)
    with np.errstate(all="ignore"):
        for s in oracle.opinions(lines.element(a, col), lines.scale(a, col), lines.grain):
            value, error = s.value[rows], s.error[rows]
            sharp = error < 0.1 * np.abs(ad - ref)
            asked |= sharp
            agree &= ~sharp | (np.abs(value - ad) <= limit + error)
    return agree & asked


def spoilt(lines: Lines) -> str:
    """Why a launch with NaN among its values cannot be judged."""
    return f"argument {lines.spoiled!r} holds NaN or Inf at launch"
