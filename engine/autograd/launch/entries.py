"""Compares single Jacobian entries of a launch, and examines those that disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.arbitration import OUTVOTED, Opinions, arbitrate
from engine.autograd.comparison.block import EntryBlock
from engine.autograd.comparison.judgement import (
    FAIL,
    KINK,
    NAN,
    PASS,
    TRUST,
    Comparison,
    Judgement,
    worst_of,
)
from engine.autograd.comparison.tolerance import AUTO_RTOL, COARSE_RTOL, largest, relative_error
from engine.autograd.launch.directions import ComparedLaunch, Comparisons, Directional, Pair
from engine.autograd.launch.displaced import DisplacedLaunch
from engine.autograd.launch.shaken import forward_noise
from engine.autograd.launch.tracing import (
    agrees_forward,
    between_one_sided,
    columns_behind,
    differs_near_by,
    is_sure,
    only_by_size,
    row_behind,
)
from engine.autograd.reference.differences import FLOAT64, Slope, opinions, remeasured, remembered
from engine.classes import dataclass

Array = NDArray[Any]

# Above this many Jacobian entries, or scalars of one side, random directions cover the
# launch, and entries are sampled only to show where a direction disagreed.
DENSE_ENTRIES = 1_000_000
DENSE_SIDE = 2048
SAMPLED = 16
TRACED = 4  # elements whose wrong outputs are searched for
CLOSER = 1 / 16  # of the usual one-sided step, to tell a kink from a bend
# What the lifted adjoint may be off by beside the largest entry of the same output.
ROUNDED = 256.0 * FLOAT64.epsilon

# Differences that are off by more than this part of a disagreement are not shown to users.
VAGUE = 1e-2
# Entries of a pair that are left open: then it is, unless one is wrong, and others that forward
# mode confirms are not looked at closely.
OPEN = 8
TOLD = 64  # columns that forward mode is asked for, to be shown instead

COARSE = "the kernel's own precision hides differences below {:.1e}, and it has no float64 form"
UNEQUAL = Judgement("inconclusive", "elements of very different size cannot be displaced together")
UNSAMPLED = Judgement("fail", "seen along random directions; the sampled entries agree")


@dataclass(frozen=True)
class EntryWise:
    """What single entries say of each pair, and these entries.

    complete: pairs of which no other element can be behind a failure.
    """

    pairs: Comparisons
    blocks: Mapping[Pair, EntryBlock]
    complete: frozenset[Pair]


@dataclass(frozen=True)
class _Traced:
    """The input elements behind the disagreements of directions.

    columns: to look at, by input: a sample, and these elements. behind: by pair.
    complete: pairs whose disagreement no other element can be behind.
    """

    columns: Mapping[str, Sequence[int]]
    behind: Mapping[Pair, Sequence[int]]
    complete: frozenset[Pair]


def is_large(launch: ComparedLaunch) -> bool:
    """Whether there are too many entries to compare each: random directions have to do."""
    size = launch.displaced.evaluations.size
    cols = sum(size(a) for a in launch.inputs)
    rows = sum(size(b) for b in launch.outputs)
    return cols * rows > DENSE_ENTRIES or max(cols, rows) > DENSE_SIDE


def compare_entries(
    launch: ComparedLaunch, found: Directional, max_inputs: int, max_outputs: int
) -> EntryWise:
    """Compares entries, all or a sample; their verdicts replace those of the directions.

    found: what the directions said. max_inputs, max_outputs: how many scalars of each array
    to look at, as asked for; all that is feasible if <= 0.
    """
    displaced, rng = launch.displaced, launch.rng
    fallback = SAMPLED if is_large(launch) else -1
    ask_in = max_inputs if max_inputs > 0 else fallback
    ask_out = max_outputs if max_outputs > 0 else fallback
    sampled = {a: _columns(displaced, a, ask_in, rng) for a in launch.inputs}
    traced = _trace(displaced, found, sampled)
    cols = traced.columns
    slopes = {a: displaced.columns(a, cols[a]) for a in launch.inputs}
    out, blocks = dict(found.pairs), {}
    for b in launch.outputs:
        part = displaced.spans[b]
        rows = _rows(displaced, b, ask_out, [s for a in launch.inputs for s in slopes[a]], rng)
        rows = sorted({*rows, *_rows_behind(displaced, found, b, traced, slopes)})
        ads = _adjoint_rows(displaced, b, rows, cols)
        at = part.start + np.asarray(rows, dtype=np.intp)
        for a in launch.inputs:
            if (a, b) in out:
                block = EntryBlock(
                    tuple(rows), tuple(cols[a]), ads[a],
                    np.stack([s.value[at] for s in slopes[a]], axis=1),
                    np.stack([s.error[at] for s in slopes[a]], axis=1),
                )  # fmt: skip
                blocks[a, b] = block
                out[a, b] = judged_again(launch, found, (a, b), block, (a, b) in traced.complete)
    return EntryWise(out, blocks, traced.complete)


# ---- which entries


def _columns(displaced: DisplacedLaunch, a: str, limit: int, rng: np.random.Generator) -> list[int]:
    """All live elements of an input, or `limit` of them at random, in order."""
    every = np.flatnonzero(displaced.live[a])
    count = len(every)
    chosen: Sequence[int] = range(count)
    if 0 < limit < count:
        chosen = sorted(rng.choice(count, size=limit, replace=False).tolist())
    return [int(every[k]) for k in chosen]


def _rows(
    displaced: DisplacedLaunch, b: str, limit: int, columns: Sequence[Slope],
    rng: np.random.Generator,
) -> list[int]:  # fmt: skip
    """Which outputs to look at: those that the chosen inputs move most, then others."""
    part = displaced.spans[b]
    live = displaced.live_rows[part]
    every = np.flatnonzero(live)
    if limit <= 0 or len(every) <= limit:
        return [int(i) for i in every]
    moved = np.zeros(displaced.evaluations.size(b))
    for s in columns:
        moved += np.nan_to_num(np.abs(s.value[part]), posinf=0.0)
    strongest = [int(i) for i in np.argsort(-moved, kind="stable") if live[i]]
    others = rng.choice(every, size=limit, replace=False)
    chosen = dict.fromkeys([*strongest[: max(1, limit - limit // 4)], *others.tolist()])
    return sorted(list(chosen)[:limit])


def _trace(
    displaced: DisplacedLaunch, found: Directional, sampled: Mapping[str, list[int]]
) -> _Traced:
    """Adds the elements behind each disagreement to a sample of columns."""
    cols = dict(sampled)
    complete: set[Pair] = set()
    behind: dict[Pair, list[int]] = {}
    for pair, d in found.disagreements.items():
        if len(cols[pair[0]]) == np.count_nonzero(displaced.live[pair[0]]):
            complete.add(pair)
            continue
        elements, all_of_them = columns_behind(displaced, d)
        behind[pair] = elements
        cols[pair[0]] = sorted({*cols[pair[0]], *elements})
        if elements and all_of_them:
            complete.add(pair)
    return _Traced(cols, behind, frozenset(complete))


def _rows_behind(
    displaced: DisplacedLaunch, found: Directional, b: str, traced: _Traced,
    slopes: Mapping[str, Sequence[Slope]],
) -> set[int]:  # fmt: skip
    """Outputs in which the traced elements disagree."""
    out = set()
    for (a, other), elements in traced.behind.items():
        for col in elements[:TRACED] if other == b else ():
            column = slopes[a][traced.columns[a].index(col)]
            row = row_behind(displaced, found.disagreements[a, b], col, column)
            if row is not None:
                out.add(row)
    return out


def _adjoint_rows(
    displaced: DisplacedLaunch, b: str, rows: Sequence[int], cols: Mapping[str, Sequence[int]]
) -> dict[str, Array]:
    """The entries of the adjoint's Jacobian for one output, by input: (rows, columns)."""
    seed = np.zeros(displaced.exact.initial[b].shape)
    out = {a: np.empty((len(rows), len(cols[a]))) for a in cols}
    index = {a: np.asarray(cols[a], dtype=np.intp) for a in cols}
    for k, i in enumerate(rows):
        seed.flat[i] = 1.0
        grads = displaced.exact.vjp({b: seed})
        for a in cols:
            out[a][k] = grads[a].reshape(-1)[index[a]]
        seed.flat[i] = 0.0
    return out


# ---- what they say


def judged_again(
    launch: ComparedLaunch, found: Directional, pair: Pair, block: EntryBlock, complete: bool
) -> Comparison:
    """Judges a pair by its entries. complete: no other element can be behind a failure."""
    displaced, size = launch.displaced, launch.displaced.evaluations.size
    before, d = found.pairs[pair], found.disagreements.get(pair)
    if before.verdict == "nan":
        return replace(before, checked=before.checked + block.ad.size)
    c = _judged(displaced, replace(before, max_abs=0.0, max_rel=0.0), *pair, block)
    if c.verdict != "pass":  # else what directions have disagreed by was no error of these
        c = c.bounded(before.max_abs, before.max_rel)
    if c.verdict == "pass" and d is not None and is_sure(displaced, d):
        c = _by_forward(displaced, c, *pair, block)
    if c.checked == size(pair[0]) * size(pair[1]) or c.verdict in ("fail", "nan"):
        return c
    if before.verdict == "inconclusive" and c.verdict == "pass" and d is None:
        why = f"{before.reason} (along random directions; no sampled entry shows it)"
        return c.judged(Judgement("inconclusive", why))
    if d is None or (complete and c.verdict == "kink"):
        return c
    # The directions saw something that the sampled entries do not account for.
    c = c.bounded(before.max_abs, before.max_rel)
    if c.worst is None or before.excess > c.excess:  # that direction is what is to be shown
        c = replace(c, worst=before.worst, excess=before.excess)
    if only_by_size(displaced, d):
        return c.judged(UNEQUAL)
    near_by = differs_near_by(displaced, d, launch.rng)
    if not near_by and (c.verdict == "kink" or between_one_sided(displaced, d)):
        return c.judged(KINK)
    return c.judged(OUTVOTED if agrees_forward(displaced, d) else UNSAMPLED)


def _by_forward(
    displaced: DisplacedLaunch, c: Comparison, a: str, b: str, block: EntryBlock
) -> Comparison:
    """Fails the entry that is furthest from forward mode, where steps were lost to rounding."""
    first = displaced.spans[b].start
    forward = np.array([[displaced.forward_column(a, j, first + k) for j in block.cols]
                        for k in block.rows])  # fmt: skip
    with np.errstate(all="ignore"):
        size = np.where(np.isfinite(forward), np.abs(forward), 0.0)
        allowed = displaced.tolerance.of(forward, size.max(initial=0.0))
        allowed = np.maximum(allowed, AUTO_RTOL * size)
        off = np.abs(block.ad - forward)
        excess = np.nan_to_num(off / np.maximum(allowed, 1e-300))
    k, j = worst_of(excess, off)
    if not excess[k, j] > 1.0:
        return c
    c = replace(c, worst=None, excess=-1.0)
    return c.measured(
        float(block.ad[k, j]), float(forward[k, j]), float(allowed[k, j]), block.rows[k],
        block.cols[j],
    ).judged(FAIL)  # fmt: skip


def _judged(
    displaced: DisplacedLaunch, before: Comparison, a: str, b: str, block: EntryBlock
) -> Comparison:
    """Compares the entries of one pair; their verdict replaces that of the directions."""
    c = before.reopened()
    ad, ref, error = block.ad, block.reference, block.error
    c = replace(c, checked=c.checked + ad.size)
    if not ad.size:
        return c
    tolerance = displaced.tolerance
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
    judgements, settled = _columns_judged(displaced, a, b, block, good, allowed)
    if FAIL in judgements:
        block = _told(displaced, a, b, block, good)
        with np.errstate(all="ignore"):
            diff = np.abs(ad - block.reference)
    # What the reference cannot tell from its own noise is no error, either.
    unsure = good & (diff > allowed)
    off = np.where(settled | unsure, 0.0, diff)
    c = _measured(c, block, off, allowed, settled | unsure).judged(PASS)
    if tolerance.epsilon and tolerance.auto:
        hidden = good & (diff > 0) & (error > allowed + tolerance.floor * largest(ref))
        if hidden.any():
            c = c.judged(Judgement("inconclusive", COARSE.format(float(error[hidden].max()))))
    if not np.all(np.isfinite(ad)):
        return c.judged(NAN)
    return c.judged(*judgements)


def _told(displaced: DisplacedLaunch, a: str, b: str, block: EntryBlock, good: Array) -> EntryBlock:
    """With forward mode for the reference of entries that disagree, where differences are off."""
    out, first = block.reference.copy(), displaced.spans[b].start
    for j in np.flatnonzero(~good.all(axis=0))[:TOLD]:
        for k in np.flatnonzero(~good[:, j]):
            forward = displaced.forward_column(a, block.cols[j], first + block.rows[k])
            with np.errstate(all="ignore"):
                off = abs(forward - out[k, j]) > VAGUE * abs(block.ad[k, j] - out[k, j])
            out[k, j] = forward if off and np.isfinite(forward) else out[k, j]
    return replace(block, reference=out)


def _columns_judged(
    displaced: DisplacedLaunch, a: str, b: str, block: EntryBlock, good: Array, allowed: Array
) -> tuple[list[Judgement], Array]:
    """Judges the entries that disagree, up to a failure.

    Also which of them another reference than the block's has settled: their distance from that one
    is no error.
    """
    judgements: list[Judgement] = []
    settled = np.zeros(good.shape, bool)
    if not np.all(np.isfinite(block.ad)):
        return judgements, settled
    for j in np.flatnonzero(~good.all(axis=0)):
        bad = np.flatnonzero(~good[:, j])
        brief = sum(x.verdict == "inconclusive" for x in judgements) >= OPEN
        found = _column(displaced, a, b, block, int(j), bad, allowed, brief)
        judgements += found
        settled[bad, j] = [x.verdict == "pass" for x in found]
        if FAIL in found:
            break
    return judgements, settled


def _measured(
    c: Comparison, block: EntryBlock, diff: Array, allowed: Array, settled: Array
) -> Comparison:
    ad, ref = block.ad, block.reference
    with np.errstate(all="ignore"):
        excess = np.where(np.isfinite(diff), diff / np.maximum(allowed, 1e-300), np.inf)
        # The reference says little at a pole: others stand for the pair, where there are some.
        surer = diff / np.maximum(allowed, TRUST * block.error)
        excess = np.where(surer > 1.0, surer, np.minimum(excess, 1.0))
        excess = np.where(np.isfinite(ad), excess, np.inf)
        excess = np.where(np.isfinite(ref), excess, -1.0)
        known = np.abs(ref) > np.maximum(allowed, TRUST * block.error)
        rel = np.where(known, relative_error(diff, ref, allowed, c.tolerance), 0.0)
    k, j = worst_of(excess, diff)
    if not settled[k, j]:
        most = float(max(allowed[k, j], 1e-300))
        if excess[k, j] <= 1.0:  # a reference that may be zero is nothing to be relative to
            most = max(most, TRUST * float(block.error[k, j]))
        c = c.measured(float(ad[k, j]), float(ref[k, j]), most, block.rows[k], block.cols[j])
    return c.bounded(largest(diff), largest(rel))


def _column(
    displaced: DisplacedLaunch, a: str, b: str, block: EntryBlock, j: int, bad: Array,
    allowed: Array, brief: bool,
) -> list[Judgement]:  # fmt: skip
    """Judges each entry of one column that disagrees: kinks, near misses, errors.

    brief: see `Opinions`.
    """
    col, offset = block.cols[j], displaced.spans[b].start
    rows = offset + np.asarray(block.rows)[bad]
    ad, ref, error = block.ad[bad, j], block.reference[bad, j], block.error[bad, j]
    tolerance = displaced.tolerance
    # In the launch's own precision the adjoint is rounded, and so is forward mode.
    limit = allowed[bad, j] + COARSE_RTOL * tolerance.epsilon * np.abs(ad)
    if tolerance.literal:  # the formula itself was asked for
        return [FAIL] * len(bad)
    for measured in (False, True):
        right, left, noise = (x[rows] for x in displaced.one_sided(a, col, measured=measured))
        lo, hi = np.minimum(right, left), np.maximum(right, left)
        slack = 1e-4 * (np.abs(lo) + np.abs(hi)) + noise
        with np.errstate(all="ignore"):
            kink = (hi - lo > 4 * slack) & (lo - slack <= ad) & (ad <= hi + slack)
        if not kink.any():
            break
    with np.errstate(all="ignore"):
        unsure = noise + (hi - lo)
        agrees = (np.abs(right - ad) <= limit + unsure) & (unsure < 0.1 * np.abs(ad - ref))
    if kink.any():
        kink &= ~_closes(displaced, a, col, rows, hi - lo)
        # Both modes choose the same side of a kink. A user's own gradient may choose another one,
        # but at a jump, where forward mode's is neither of the slopes, there is nothing to choose.
        forward = np.array([displaced.forward_column(a, col, int(r)) for r in rows])
        with np.errstate(all="ignore"):
            jump = (forward - lo > 4 * slack) & (hi - forward > 4 * slack)
            kink &= ~((np.abs(forward - ad) > limit) & (jump | displaced.exact.generated))
    out = [KINK if k else PASS for k in kink]
    left_over = ~kink & ~agrees
    if tolerance.eps is None and left_over.any():
        left_over &= ~_small_steps_agree(displaced, a, col, rows, ad, ref, limit)
    left_over |= ~kink & ~left_over & _denied(displaced, a, col, rows, ad, limit)
    noise = cache(lambda: forward_noise(displaced, a, displaced.unit(a, col)))
    element, some = displaced.element(a, col), rows[left_over]
    # The entries of a column ask for the same values, and so do the scales of each.
    line = remembered(lambda t: element(t)[some])
    for n, i in enumerate(np.flatnonzero(left_over)):
        row = int(rows[i])
        out[i] = arbitrate(Opinions(
            float(ad[i]), float(ref[i]), float(error[i]), float(limit[i]),
            lambda row=row: displaced.forward_column(a, col, row),  # type: ignore[misc]
            lambda t, n=n: remeasured(lambda u: line(u)[n : n + 1],  # type: ignore[misc]
                                      t * displaced.scale(a, col), displaced.precision),
            displaced.tiny(a),
            lambda row=row: float(noise()[row]),  # type: ignore[misc]
            tolerance.atol is None, brief,
        ))  # fmt: skip
    return out


def _denied(
    displaced: DisplacedLaunch, a: str, col: int, rows: Array, ad: Array, limit: Array
) -> Array:
    """Where forward mode gives something else: beside it, steps that tell few digits count less."""
    forward = np.array([displaced.forward_column(a, col, int(r)) for r in rows])
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(forward - ad) > np.maximum(limit, AUTO_RTOL * np.abs(forward)))


def _closes(displaced: DisplacedLaunch, a: str, col: int, rows: Array, gap: Array) -> Array:
    """Where one-sided slopes come together over a smaller step: a bend, however sharp, no kink."""
    right, left, noise = (x[rows] for x in displaced.one_sided(a, col, CLOSER))
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(right - left) + noise <= 0.5 * gap)


def _small_steps_agree(
    displaced: DisplacedLaunch, a: str, col: int, rows: Array, ad: Array, ref: Array, limit: Array
) -> Array:
    """Where smaller steps, if sharp enough to tell, all side with the adjoint."""
    agree, asked = np.ones(len(rows), bool), np.zeros(len(rows), bool)
    line, scale = displaced.element(a, col), displaced.scale(a, col)
    with np.errstate(all="ignore"):
        for s in opinions(line, scale, displaced.precision):
            value, error = s.value[rows], s.error[rows]
            sharp = error < 0.1 * np.abs(ad - ref)
            asked |= sharp
            agree &= ~sharp | (np.abs(value - ad) <= limit + error)
    return agree & asked
