"""Compares single entries of the derivative, all or those behind a disagreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from engine.autograd.comparison.judgement import (
    NAN,
    PASS,
    TRUST,
    Comparison,
    Judgement,
)
from engine.autograd.comparison.tolerance import largest, median, relative_error
from engine.autograd.reference.differences import Slope
from engine.autograd.reference.noise import Line
from engine.autograd.results import Entry
from engine.draws import default_rng
from engine.foreign.directions import (
    Pair,
    Probe,
    compare_probe,
    direction,
    not_finite,
    scaled,
    weighted,
)
from engine.foreign.evaluated import Evaluated
from engine.foreign.judging import CHAOS, LOST, settled
from engine.foreign.operation import Array, OperationFailed

# Up to this many scalars on a side, entries are compared one by one.
SIDE = 128
# Units of rounding of the largest entry that any other may be off by: 1 - y for y near 1.
ROUNDED = 4.0
# The same of most entries: what rounding of values of that size is over the largest step.
STEPPED = 4096.0
JUDGED = 256  # entries that are looked at closely
LEFT_OUT = 4  # elements, at the most, of a direction along which a function bends
LARGE = 1e-3  # of the largest entry: what others are small beside
SAMPLED = 4  # columns of a larger one
BENT = 1e-3  # of the gradient: a solver inside of a backward leaves less
NOT_LINEAR = (
    "it is wrong for cotangents that are not 1 at a single element: it is not linear in them"
)
UNSAMPLED = Judgement("fail", "seen along random directions; the sampled entries agree")


def is_small(e: Evaluated) -> bool:
    """Whether all entries can be compared."""
    sides = (e.op.inputs, e.op.outputs)
    return all(sum(v.value.size for v in side) <= SIDE for side in sides)


def reopened(c: Comparison) -> Comparison:
    """Without a disagreement along directions, and what it was off by, which entries judge anew."""
    again = c.reopened()
    return c if again is c else replace(again, max_abs=0.0, max_rel=0.0)


def compare_entries(
    e: Evaluated, pairs: dict[Pair, Comparison], max_inputs: int = -1, max_outputs: int = -1
) -> dict[Pair, Comparison]:
    """Compares single entries of these pairs. max_*: how many of each array; all if <= 0."""
    out = dict(pairs)
    rows = {j: _first(e.op.outputs[j].value.size, max_outputs) for j in {j for _, j in pairs}}
    ads = {(j, r): _gradients(e, j, r) for j, many in rows.items() for r in many}
    for i in dict.fromkeys(i for i, _ in pairs):
        cols = _first(e.op.inputs[i].value.size, max_inputs)
        lines = [e.column(i, c) for c in cols]
        slopes = [e.by_scalar(i, c, lines[k]) for k, c in enumerate(cols)]
        for j in (j for k, j in pairs if k == i):
            ad = np.array([[_entry(e, i, ads[j, r], c) for c in cols] for r in rows[j]])
            out[i, j] = compare_block(e, (i, j), rows[j], cols, ad, lines, slopes, out[i, j])
    if max_outputs <= 0:
        for j, many in rows.items():
            _compare_sum(e, out, j, [ads[j, r] for r in many])
    return out


def _compare_sum(
    e: Evaluated, out: dict[Pair, Comparison], j: int, each: Sequence[Sequence[Array | None]]
) -> None:
    """Fails pairs whose gradient by a cotangent is not the sum of those by its elements."""
    w = default_rng([0x11E, j]).standard_normal(len(each))
    found = e.gradients(j, w)
    for i, g in enumerate(found):
        c = out.get((i, j))
        if c is None or c.verdict in ("nan", "fail"):
            continue
        total, parts, values = np.zeros((3, *e.op.inputs[i].value.shape))
        with np.errstate(all="ignore"):
            for x, y, h in zip(w.tolist(), e.here[e.spans[j]].tolist(), each, strict=True):
                part = x * _filled(e, i, h[i])
                total, parts = total + part, parts + np.abs(part)
                values += np.where(part == 0.0, 0.0, abs(x * y))
            off = np.abs(_filled(e, i, g) - total)
            allowed = max(BENT, 64.0 * e.precision.epsilon) * parts + e.nothing(values, i)
            allowed = np.maximum(allowed, e.op.iterated * largest(parts))
            values = np.abs(w * e.here[e.spans[j]])  # a row without a part may be rounded to that
            allowed += 64.0 * e.precision.epsilon * largest(values) / e.typical[i]
            bad = np.isfinite(off).all() & (off > allowed)
        if bad.any():
            bad &= off > TRUST * e.unsteady(j, w)[i]
        if bad.any():
            k = int(np.argmax(np.where(bad, off / np.maximum(allowed, 1e-300), -1.0)))
            ad, ref = float(_filled(e, i, g).reshape(-1)[k]), float(total.reshape(-1)[k])
            size = float(parts.reshape(-1)[k])
            c = replace(c, worst=None, excess=-1.0).measured(ad, ref, e.rtol * size)
            out[i, j] = c.judged(Judgement("fail", NOT_LINEAR))


def _filled(e: Evaluated, i: int, g: Array | None) -> Array:
    return np.zeros(e.op.inputs[i].value.shape) if g is None else g


def compare_block(
    e: Evaluated, pair: Pair, rows: Sequence[int], cols: Sequence[int], ad: Array,
    lines: Sequence[Line], slopes: Sequence[Slope], c: Comparison, most: float = 0.0,
    usual: float = 0.0,
) -> Comparison:  # fmt: skip
    """Compares some entries of a pair, given the derivatives by each column.

    most: the size of the largest entry, where that is none of these; usual: that of most rows.
    """
    if not ad.size:
        return c
    i, j = pair
    at = e.spans[j].start + np.asarray(rows)
    ref = np.stack([s.value[at] for s in slopes], axis=1)
    error = np.stack([s.error[at] for s in slopes], axis=1)
    size = np.where(np.isfinite(ref), np.abs(ref), 0.0)
    near = np.minimum(size.max(axis=1, keepdims=True), size.max(axis=0, keepdims=True))
    if e.op.iterated:  # what is left of an iteration is spread over all of it
        near = np.full_like(near, max(largest(s.value[e.spans[j]]) for s in slopes))
    most = max(most, largest(size))
    usual = max(usual, median(size.max(axis=1)))
    floor = 0.0
    if e.tolerance.auto:
        floor = e.precision.epsilon * max(ROUNDED * most, STEPPED * usual)
    strict = e.allowed(ref, near)
    allowed = np.maximum(strict, max(floor, 1e-300))
    c = replace(c, checked=c.checked + ad.size)
    with np.errstate(all="ignore"):
        diff = off = np.abs(ad - ref)
    finite = np.isfinite(ad)
    judgements = [PASS] if np.all(finite) else [not_finite(e, i)]
    if e.tolerance.auto:
        lost = (diff <= TRUST * error) & (np.maximum(diff, error) <= LOST * most)
        diff = np.where(lost & (diff > allowed), 0.0, diff)
    bad = np.argwhere(finite & ~(diff <= allowed))
    at_bad = tuple(bad.T)
    with np.errstate(all="ignore"):
        far = -diff[at_bad] / allowed[at_bad]
    # The furthest off first, up to a failure; last those that are next to nothing.
    order = np.lexsort((far, diff[at_bad] <= LOST * most))
    chaotic: Entry | None = None
    kinked: tuple[int, int] | None = None
    for k, m in bad[order[:JUDGED]]:
        value = weighted(lines[m], slice(int(at[k]), int(at[k]) + 1), np.ones(1))
        found = Slope(ref[k : k + 1, m], error[k : k + 1, m])
        x = abs(float(e.at[i].reshape(-1)[cols[m]]))
        verdict = settled(
            e, value, e.scale(i, cols[m]), float(ad[k, m]), found, float(allowed[k, m]), most,
            (scaled(value, x), float(ad[k, m]) * x),
        )  # fmt: skip
        judgements.append(verdict)
        if verdict.verdict == "fail":
            break
        if verdict is CHAOS:
            chaotic = Entry(
                rows[k], cols[m], float(ad[k, m]), float(ref[k, m]), None, float(allowed[k, m])
            )
        if verdict.verdict == "kink":
            kinked = kinked or (int(k), int(m))
        diff[k, m] = 0.0
    diff = np.where(np.isfinite(diff), diff, 0.0)
    with np.errstate(all="ignore"):
        excess = np.where(finite, diff / allowed, np.inf if NAN in judgements else -1.0)
        rel = relative_error(diff, ref, allowed, c.tolerance)
    k, m = (int(n) for n in np.unravel_index(int(np.argmax(excess)), excess.shape))
    if (finite[k, m] and diff[k, m] > 0) or not finite[k, m]:
        c = c.measured(float(ad[k, m]), float(ref[k, m]), float(allowed[k, m]), rows[k], cols[m])
    c = c.bounded(largest(diff), largest(rel)).judged(*judgements)
    if chaotic is not None and c.verdict == CHAOS.verdict:
        c = replace(c, worst=chaotic, excess=1.0)  # only what fails is worse
    if kinked is not None and c.verdict == "kink":  # the others agree
        k, m = kinked
        c = replace(c, worst=None, excess=-1.0).measured(
            float(ad[k, m]), float(ref[k, m]), float(allowed[k, m]), rows[k], cols[m]
        )
    small = finite & (off > strict) & (off <= max(floor, LOST * most)) & e.tolerance.auto
    if c.verdict in ("fail", "nan") or not small.any():
        return c
    with np.errstate(all="ignore"):
        part = np.where(small, off / np.maximum(np.abs(ref), np.abs(ad)), -1.0)
    first = np.argsort(-part, axis=None, kind="stable")[: min(SAMPLED, int(small.sum()))]
    places = [(rows[n // len(cols)], cols[n % len(cols)]) for n in first.tolist()]
    large = [cols[m] for m in np.flatnonzero(size.max(axis=0) > LARGE * most).tolist()]
    return _without_large(e, pair, places, large, usual, c)


def _without_large(
    e: Evaluated,
    pair: Pair,
    places: Sequence[tuple[int, int]],
    large: Sequence[int],
    usual: float,
    c: Comparison,
) -> Comparison:
    """Looks again at entries that were next to nothing beside larger ones, where these are not.

    places: rows and columns. large: columns of the larger ones, whose inputs have other values
    there. What is lost in the rounding of a sum is lost there, too; what a pole hid is not.
    """
    i, j = pair
    rng = default_rng(0xE15E)
    for row, col in places:
        others = [k for k in large if k != col]
        if not others:
            continue
        try:
            there = e.elsewhere(i, others, rng)
            line = there.column(i, col)
            some = there.gradients(j, rng.standard_normal(e.op.outputs[j].value.size))[i]
            ad = np.array([[_entry(there, i, _gradients(there, j, row), col)]])
            found = compare_block(there, pair, [row], [col], ad, [line],
                                  [there.by_scalar(i, col, line)], c.reopened(),
                                  0.0 if some is None else largest(some), usual)  # fmt: skip
        except OperationFailed:
            continue
        if found.verdict == "fail":
            return found
    return c


def locate(
    e: Evaluated, pair: Pair, probe: Probe, c: Comparison, rng: np.random.Generator
) -> Comparison:
    """The comparison of a large pair that fails along a direction, with the entry behind it.

    The function may bend along the direction, where an element is beside a pole: what agrees by
    itself is left out of further ones, until one agrees.
    """
    i, j = pair
    bad = np.flatnonzero(~np.isfinite(probe.gradient))
    if bad.size:
        return _at_column(e, pair, int(bad[0]), probe.w.reshape(-1), c.reopened())
    found, left_out = reopened(c), []
    for _ in range(LEFT_OUT):
        col = _behind(e, pair, probe)
        found = _at_column(e, pair, col, probe.w.reshape(-1), found)
        if found.verdict in ("fail", "nan"):
            return found
        left_out.append(col)
        probe = _without(e, pair, left_out, rng)
        found, judgement = compare_probe(e, i, j, probe, found)
        if judgement.verdict in ("pass", "kink"):
            return found.judged(judgement)
    return replace(c, checked=found.checked).judged(UNSAMPLED)


def _behind(e: Evaluated, pair: Pair, probe: Probe) -> int:
    """The element of an input that is behind a disagreement along a direction."""
    i, j = pair
    v, w, g = (x.reshape(-1) for x in (probe.v, probe.w, probe.gradient))

    def behind(cols: Array) -> float:
        move = np.zeros(v.size)
        move[cols] = v[cols]
        slope = e.roughly(e.line({i: move.reshape(probe.v.shape)}))
        return abs(float(g[cols] @ v[cols]) - float(w @ slope.value[e.spans[j]]))

    return _halved(v.size, behind)


def _without(e: Evaluated, pair: Pair, cols: Sequence[int], rng: np.random.Generator) -> Probe:
    """Another direction, in which some elements of the input stay where they are."""
    i, j = pair
    v = direction(e, i, rng, 0.0)
    for col in cols:
        v.reshape(-1)[list(e.displaced(i, col))] = 0.0
    w = rng.standard_normal(e.op.outputs[j].value.shape)
    return Probe(v, w, _filled(e, i, e.gradients(j, w)[i]), e.slope(e.line({i: v}), 1.0))


def sample(
    e: Evaluated, pair: Pair, probe: Probe, c: Comparison, rng: np.random.Generator
) -> Comparison:
    """The comparison of a large pair of which directions say nothing, with some entries."""
    size = probe.v.size
    found = c
    for col in rng.choice(size, size=min(SAMPLED, size), replace=False).tolist():
        found = _at_column(e, pair, col, probe.w.reshape(-1), found)
    return found


def _at_column(e: Evaluated, pair: Pair, col: int, w: Array, c: Comparison) -> Comparison:
    """The comparison, with the entry of a column that is furthest off."""
    i, j = pair
    part, line = e.spans[j], e.column(i, col)
    slope = e.by_scalar(i, col, line)

    def beneath(rows: Array) -> float:
        some = np.zeros(w.size)
        some[rows] = w[rows]
        found = _entry(e, i, e.gradients(j, some), col)
        off = abs(found - float(some @ slope.value[part]))
        return off if np.isfinite(off) else np.inf

    row = _halved(w.size, beneath)
    ad = np.array([[_entry(e, i, _gradients(e, j, row), col)]])
    return compare_block(e, pair, [row], [col], ad, [line], [slope], c)


def _halved(size: int, off: Callable[[Array], float]) -> int:
    """The element that is behind a disagreement, by looking at halves. off: of some elements."""
    some = np.arange(size)
    while some.size > 1:
        halves = some[: some.size // 2], some[some.size // 2 :]
        some = max(halves, key=off)
    return int(some[0])


def _gradients(e: Evaluated, j: int, row: int) -> list[Array | None]:
    unit = np.zeros(e.op.outputs[j].value.size)
    unit[row] = 1.0
    return e.gradients(j, unit)


def _entry(e: Evaluated, i: int, gradients: Sequence[Array | None], col: int) -> float:
    """The derivative by what is displaced for a scalar of an input: see `Evaluated.column`."""
    g = gradients[i]
    return 0.0 if g is None else float(g.reshape(-1)[list(e.displaced(i, col))].sum())


def _first(size: int, most: int) -> list[int]:
    return list(range(size if most <= 0 else min(size, most)))
