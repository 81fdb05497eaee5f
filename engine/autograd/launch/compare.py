"""Compares a launch's adjoint with its reference: along random directions, then entry by entry."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.block import EntryBlock
from engine.autograd.comparison.judgement import Comparison
from engine.autograd.comparison.tolerance import Tolerance
from engine.autograd.launch.directions import (
    ComparedLaunch,
    Comparisons,
    Directional,
    Pair,
    compare_directions,
    compare_repeated,
)
from engine.autograd.launch.displaced import DisplacedLaunch
from engine.autograd.launch.entries import EntryWise, compare_entries, is_large, judged_again
from engine.autograd.launch.evaluation import Evaluations
from engine.autograd.launch.joint import compare_jointly
from engine.autograd.launch.vanishing import UNITS, vanishing_outputs
from engine.autograd.reference.differences import FLOAT64
from engine.classes import dataclass

Array = NDArray[Any]

# Entries that are off by a larger part of themselves may be sums that cancel; in so many columns.
PART, COLUMNS = 1e-3, 32
# Verdicts that directions alone may give.
_SETTLED = ("pass", "skipped", "rounding", "nondeterministic", "kink")


@dataclass(frozen=True)
class CompareOptions:
    """What to compare of a launch, and how closely.

    max_inputs, max_outputs: how many scalars of each array to look at one by one; all that is
    feasible if <= 0. every_entry: compares entries also where the directions found nothing.
    jointly: along one direction through all inputs first, which is enough where it agrees. kinked:
    launches of its kind were seen to have kinks, so that there the path that it took will do.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    max_inputs: int = -1
    max_outputs: int = -1
    every_entry: bool = False
    jointly: bool = False
    kinked: bool = False

    @property
    def asks_for_entries(self) -> bool:
        """Whether some entries are to be looked at in any case."""
        return self.max_inputs > 0 or self.max_outputs > 0


@dataclass(frozen=True)
class LaunchComparison:
    """The comparisons of all pairs of a launch, and the entries among them.

    beside: whether the path that the launch took was looked at, for a kink.
    """

    pairs: Comparisons
    blocks: Mapping[Pair, EntryBlock] = field(default_factory=dict)
    beside: bool = False


def compare(
    launch: Evaluations, options: CompareOptions, rng: np.random.Generator,
    pairs: Collection[Pair] | None = None,
) -> LaunchComparison:  # fmt: skip
    """Compares pairs of an input and an output of a launch; all for None.

    Verdicts are made where pairs are compared: along directions by `comparison.arbitration`, and of
    entries by `entries`.
    """
    tolerance = replace(options.tolerance, epsilon=launch.epsilon)
    compared = _begun(launch, tolerance.relative, pairs)
    size = launch.size
    inputs = [a for a in launch.inputs if size(a) and any(a == x for x, _ in compared)]
    outputs = [b for b in launch.outputs if size(b) and any(b == y for _, y in compared)]
    if not inputs or not outputs:
        return LaunchComparison(compared)
    displaced = DisplacedLaunch(launch, inputs, outputs, tolerance)
    displaced.leave_out_reached()
    dead = {a for a in inputs if not displaced.live[a].any()}
    dead |= {b for b in outputs if not displaced.live_rows[displaced.spans[b]].any()}
    # Not this launch's fault, and no derivative means anything there.
    compared = {
        pair: c.judged(displaced.unjudged) if dead.intersection(pair) else c
        for pair, c in compared.items()
    }
    live = ComparedLaunch(
        displaced, tuple(a for a in inputs if a not in dead),
        tuple(b for b in outputs if b not in dead), rng,
    )  # fmt: skip
    if not live.inputs or not live.outputs:
        return LaunchComparison(compared)
    if options.jointly and not (options.every_entry or options.asks_for_entries):
        found = compare_jointly(live, compared, options.kinked)
        if found is not None:
            return LaunchComparison(found)
    repeated = compare_repeated(live, compared)
    directional = compare_directions(live, repeated, tolerance.rtol)
    suspicious = any(c.verdict not in _SETTLED for c in directional.pairs.values())
    every = options.every_entry and not is_large(live)
    if not (suspicious or every or options.asks_for_entries):
        return LaunchComparison(directional.pairs, beside=displaced.asked_path)
    entries = compare_entries(live, directional, options.max_inputs, options.max_outputs)
    pairs_now = _without_zeros(live, directional, entries)
    return LaunchComparison(pairs_now, entries.blocks, displaced.asked_path)


def _without_zeros(live: ComparedLaunch, found: Directional, entries: EntryWise) -> Comparisons:
    """The pairs; those that disagree are judged without what rounding left of zeros.

    These are single entries: what is so of one of them excuses no other.
    """
    out = dict(entries.pairs)
    for (a, b), c in entries.pairs.items():
        if c.verdict not in ("fail", "inconclusive") or c.worst is None or c.worst.row < 0:
            continue
        block = entries.blocks[a, b]
        with np.errstate(all="ignore"):
            off = np.abs(block.ad - block.reference)
        worst = block.rows.index(c.worst.row), block.cols.index(c.worst.col)
        zeros = _vanishing(live, a, b, block, off) | _still(live, a, b, block)
        zeros |= _cancelled(live, a, b, block, off, worst)
        zeros &= np.isfinite(off)
        if not zeros[worst]:  # the verdict stays
            continue
        settled = replace(block, ad=np.where(zeros, block.reference, block.ad))
        again = judged_again(live, found, (a, b), settled, (a, b) in entries.complete)
        out[a, b] = replace(again, checked=c.checked)
    return out


def _vanishing(live: ComparedLaunch, a: str, b: str, block: EntryBlock, off: Array) -> Array:
    """Which entries are of inputs that the derivative vanishes by, up to rounding."""
    most = np.zeros(live.displaced.exact.initial[a].shape)
    most.flat[np.asarray(block.cols)] = np.nan_to_num(off, posinf=np.inf).max(axis=0)
    w = live.cotangent(b)
    at = live.vanishing(a, b, w, most).reshape(-1)[np.asarray(block.cols)]
    return np.broadcast_to(at, off.shape)


def _cancelled(
    live: ComparedLaunch, a: str, b: str, block: EntryBlock, off: Array, worst: tuple[int, int]
) -> Array:
    """Which entries are of outputs that the derivative vanishes of, up to rounding.

    That is looked at where the error is a part of the entry: a sum that cancels has no digits. No
    others are where the worst one is none.
    """
    rows, out = np.asarray(block.rows), np.zeros(off.shape, np.bool_)
    shape = live.displaced.exact.initial[b].shape
    with np.errstate(all="ignore"):
        part = np.nan_to_num(off / np.maximum(np.abs(block.ad), np.abs(block.reference)))
    most = part.max(axis=0)
    most[worst[1]] = np.inf
    for k in np.argsort(-most)[:COLUMNS]:
        if most[k] > PART:
            ad, reference = np.full((2, live.displaced.evaluations.size(b)), np.inf)
            ad[rows], reference[rows] = block.ad[:, k], block.reference[:, k]
            out[:, k] = vanishing_outputs(
                live.displaced.evaluations, (a, b), live.displaced.unit(a, block.cols[k]),
                ad.reshape(shape), reference.reshape(shape),
            ).reshape(-1)[rows]  # fmt: skip
            if not out[worst]:
                break
    return out


def _still(live: ComparedLaunch, a: str, b: str, block: EntryBlock) -> Array:
    """Which entries are of outputs that do not depend on an input, but for their own rounding.

    So say a step, forward mode and the adjoint.
    """
    displaced = live.displaced
    rows = displaced.spans[b].start + np.asarray(block.rows, dtype=np.intp)
    v = displaced.direction(a, live.rng)
    line = displaced.along(a, v)
    with np.errstate(all="ignore"):
        here = line(0.0)[rows]
        most = UNITS * displaced.precision.epsilon * np.abs(here)
        sizes = [np.abs(line(t)[rows] - here) for t in (FLOAT64.step, -FLOAT64.step)]
        sizes.append(np.abs(displaced.forward_along(a, v)[rows]))
        sizes.append(np.abs(block.ad).max(axis=1, initial=0.0) * displaced.typical(a))
        still = np.all([x <= most for x in sizes], axis=0)
    return np.broadcast_to(still[:, None], block.ad.shape)


def _begun(
    launch: Evaluations, tolerance: float | None, pairs: Collection[Pair] | None
) -> dict[Pair, Comparison]:
    """A comparison for each pair, with the reason where there is nothing to compare."""
    every = [(a, b) for a in launch.inputs for b in launch.outputs]
    known = [pair for pair in every if pairs is None or pair in pairs]
    out = {
        (a, b): Comparison(
            reason="" if launch.size(a) and launch.size(b) else "the array is empty",
            tolerance=tolerance,
        )
        for a, b in known
    }
    for pair in sorted(set(pairs or ()) - set(known)):
        out[pair] = Comparison(reason=_why_not(launch, pair))
    return out


def _why_not(launch: Evaluations, pair: Pair) -> str:
    """Why a pair that was asked for has no derivative."""
    a, b = pair
    if a not in launch.inputs:
        return f"{a!r} is not an array that the kernel reads and that requires a gradient"
    return f"{b!r} is not an array that the kernel writes and that requires a gradient"
