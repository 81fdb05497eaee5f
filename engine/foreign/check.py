"""Checks one operation of a framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from engine.autograd.comparison.judgement import FAIL, TRUST, Comparison, Judgement
from engine.autograd.comparison.tolerance import largest
from engine.autograd.facts import Change, Handwritten
from engine.autograd.results import LaunchResult, PairResult
from engine.autograd.tape.options import Options
from engine.classes import dataclass
from engine.draws import default_rng
from engine.foreign.directions import (
    UNSETTLED,
    Directional,
    Pair,
    beside_kinks,
    compare_directions,
)
from engine.foreign.entries import (
    UNSAMPLED,
    compare_entries,
    is_small,
    locate,
    reopened,
    sample,
)
from engine.foreign.evaluated import Evaluated, NotComparable, evaluated
from engine.foreign.operation import (
    Array,
    GradientRaised,
    Operation,
    OperationFailed,
    scalar_name,
)
from engine.foreign.passes import wrong_passes
from engine.foreign.tangents import WRONG_TANGENT, compare_tangents

COTANGENTS = 3  # that tell how large the parts of a gradient's elements are
ROUNDING = 100.0  # units of rounding that two ways to compute a gradient may be apart by
SECOND = "its gradient cannot be differentiated again"


@dataclass
class Seen:
    """How many operations of each kind were checked in a run."""

    counts: dict[tuple[object, ...], int] = field(default_factory=dict)

    def first(self, kind: tuple[object, ...]) -> bool:
        """Whether this is the first of its kind; counts it."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.counts[kind] == 1


def check_operation(
    op: Operation, options: Options | None = None, index: int = 0, seen: Seen | None = None
) -> LaunchResult:
    """Checks the handwritten gradient of an operation against differences of what it computes.

    index: its number among those of its framework. seen: by earlier checks of the same run. The
    second derivative is checked, too, where the options' order is 2, or the program asks for it.
    """
    options = options or Options()
    if (own := op.own_check(options)) is not None:
        return replace(own, index=index)
    told = Handwritten(op.framework, op.what, op.gradient, changes=tuple(op.changes))
    site = op.site
    result = LaunchResult(index, op.name, (), (), op.span, site, by_hand=told)
    if not op.inputs or not op.outputs:
        side = "output" if op.inputs else "input"
        return replace(result, skipped=f"it has no {side} of floating point that has a gradient")
    if op.wrong:
        told_of = PairResult(op.inputs[0].name, op.outputs[0].name, "fail", reason=op.wrong)
        return replace(result, pairs=(told_of,))
    first = (seen or Seen()).first(op.kind)
    changes: list[Change] = []
    pairs, missing = _pairs(op, options, index, first, changes)
    names = tuple(dict.fromkeys(op.inputs[i].name for i, j in missing))
    told = replace(
        told, missing=names, zeros=tuple(n for n in names if n in op.zeros),
        changes=tuple(dict.fromkeys((*op.changes, *changes))),
    )  # fmt: skip
    reasons = {c.reason for c in pairs.values() if c.verdict == "fail"}
    if op.tangent is not None and reasons == {WRONG_TANGENT}:
        name, place = op.tangent
        told, result = replace(told, gradient=name), replace(result, span=place)
    found = tuple(_result(op, pair, c) for pair, c in pairs.items())
    result = replace(result, pairs=found, by_hand=told)
    if options.order > 1 or op.twice:
        asked = options.order > 1
        second = op.second()
        if second is None:
            return replace(result, no_second=SECOND) if asked else result
        more, _ = _pairs(second, options, index, first, [])
        if not asked:  # the program has met what it raises
            more = {pair: c for pair, c in more.items() if " raises " not in c.reason}
        found = tuple(_result(second, pair, c) for pair, c in more.items())
        result = replace(result, pairs=(*result.pairs, *found))
    return result


def _pairs(
    op: Operation, options: Options, index: int, first: bool, changes: list[Change]
) -> tuple[dict[Pair, Comparison], list[Pair]]:
    """The comparisons of all pairs, and those that fail because the gradient is None.

    changes: takes what is seen to be changed in place.
    """
    every = {(i, j): Comparison() for i in range(len(op.inputs)) for j in range(len(op.outputs))}
    empty = {
        pair: replace(c, reason="the array is empty") for pair, c in every.items()
        if not (op.inputs[pair[0]].value.size and op.outputs[pair[1]].value.size)
    }  # fmt: skip
    if len(empty) == len(every):
        return empty, []
    rng = default_rng([0xF0E1, options.seed, index])
    try:
        e = evaluated(op, options.tolerance)
        if why := op.verify():
            open_ = Judgement("inconclusive", why)
            wrong = wrong_passes(e, rng)
            return {(i, j): wrong.get(i, c.judged(open_)) for (i, j), c in every.items()}, []
        found = compare_directions(e, rng)
        asked = options.max_inputs > 0 or options.max_outputs > 0
        suspicious = any(c.verdict in UNSETTLED for c in found.pairs.values())
        if asked or (is_small(e) and (first or suspicious)):
            pairs = _reopened(found)
            pairs = compare_entries(e, pairs, options.max_inputs, options.max_outputs)
        else:
            pairs = _located(e, found, rng)
        pairs = _varied(e, pairs, rng, changes)
        pairs = compare_tangents(e, pairs, rng)
    except NotComparable as why:
        return {pair: c.judged(why.verdict) for pair, c in every.items()}, []
    except GradientRaised as why:
        return {pair: c.judged(Judgement("fail", str(why))) for pair, c in every.items()}, []
    except OperationFailed as why:
        open_ = Judgement("inconclusive", f"it could not be run again: {why}")
        return {pair: c.judged(open_) for pair, c in every.items()}, []
    missing = [p for p in sorted(found.missing) if pairs[p].verdict == "fail"]
    return {**pairs, **empty}, missing


def _reopened(found: Directional) -> dict[Pair, Comparison]:
    """The pairs, to be judged anew by their entries."""
    return {pair: reopened(c) for pair, c in found.pairs.items()}


def _located(e: Evaluated, found: Directional, rng: np.random.Generator) -> dict[Pair, Comparison]:
    """The pairs of a large operation: where directions disagree, with an entry that does."""
    out = dict(found.pairs)
    for pair, c in found.pairs.items():
        probe = found.probes.get(pair)
        if c.verdict == "kink":
            out[pair] = _past_kinks(e, pair, c, rng)
        if c.verdict == "nan" or probe is None or c.verdict not in UNSETTLED:
            continue
        beside = beside_kinks(e, pair, probe, rng)
        if beside is None:
            if c.verdict == "fail":
                out[pair] = locate(e, pair, probe, c, rng)
            else:
                out[pair] = sample(e, pair, probe, c, rng)
            continue
        judgement, near, there = beside
        if judgement is FAIL:
            out[pair] = locate(near, pair, there, c.reopened().judged(FAIL), rng)
        else:
            out[pair] = c.reopened().judged(judgement)
    return out


def _past_kinks(e: Evaluated, pair: Pair, c: Comparison, rng: np.random.Generator) -> Comparison:
    """The comparison of a pair along whose directions there are kinks, with an entry that is wrong.

    One element at a kink says nothing of the others, which are looked at a little further.
    """
    try:
        near = e.beside(rng)
        found = compare_directions(near, rng, {pair: near.begun()[pair]})
        if found.pairs[pair].verdict != "fail":
            return c
        closer = locate(near, pair, found.probes[pair], reopened(c), rng)
    except OperationFailed:
        return c
    return closer if closer.verdict == "fail" and closer.reason != UNSAMPLED.reason else c


def _varied(
    e: Evaluated, pairs: Mapping[Pair, Comparison], rng: np.random.Generator,
    changes: list[Change],
) -> dict[Pair, Comparison]:  # fmt: skip
    """The pairs; those fail whose gradient depends on how it is asked for."""
    out = dict(pairs)
    for variation in e.op.variations():
        for j, b in enumerate(e.op.outputs):
            if not b.value.size:
                continue
            w = variation.cotangent(j, rng.standard_normal(b.value.shape))
            plain = e.gradients(j, w)
            rounding = _rounding(e, j, w, rng)
            try:
                other = variation.vjp(e.at, e.cotangents(j, w), e.lifted)
            except OperationFailed as why:
                for i in range(len(e.op.inputs)):
                    if (i, j) in out and out[i, j].verdict == "pass":
                        open_ = Judgement("inconclusive", f"{variation.words}, {why}")
                        out[i, j] = out[i, j].judged(open_)
                break
            for i, (g, h) in enumerate(zip(plain, other, strict=True)):
                c = out.get((i, j))
                if g is None or h is None or c is None or c.verdict in ("nan", "fail"):
                    continue
                same = g.shape == h.shape
                off = np.where(np.isfinite(g), np.abs(h - g), 0.0) if same else g
                allowed = 100.0 * e.rtol * np.abs(g) + e.op.iterated * largest(g) + rounding[i]
                bad = np.isfinite(g) & ~(off <= allowed) if same else np.ones(g.shape, bool)
                if same and bad.any():
                    bad &= ~(off <= TRUST * e.unsteady(j, w)[i])
                if bad.any():
                    excess = np.where(bad, off / np.maximum(allowed, 1e-300), -1.0)
                    k = int(np.argmax(np.where(np.isnan(excess), np.inf, excess)))
                    if variation.change is not None:
                        changes.append(variation.change)
                        continue
                    here = float(g.reshape(-1)[k])
                    there = float(h.reshape(-1)[k]) if same else float("nan")
                    c = replace(c, worst=None, excess=-1.0)
                    c = c.measured(there, here, e.rtol * abs(here))
                    out[i, j] = c.judged(Judgement("fail", f"it is wrong {variation.words}"))
    return out


def _rounding(e: Evaluated, j: int, w: Array, rng: np.random.Generator) -> list[Array | float]:
    """What rounding may make of each gradient: a sum over a cotangent may be zero, or nearly.

    By the size of an element's own parts, as some cotangents have them, and by that of the
    function's values, which are rounded before anything is taken from them.
    """
    eps = ROUNDING * e.precision.epsilon * max(1.0, float(np.sqrt(w.size)))
    some = [e.gradients(j, largest(w) * rng.standard_normal(w.shape)) for _ in range(COTANGENTS)]
    usual = largest(e.here[e.spans[j]]) * largest(w)
    out: list[Array | float] = []
    for i, found in enumerate(zip(*some, strict=True)):
        sizes = [np.abs(g) for g in found if g is not None]
        out.append(eps * np.max([*sizes, np.full(sizes[0].shape, usual / e.typical[i])], axis=0)
                   if sizes else 0.0)  # fmt: skip
    return out


def _result(op: Operation, pair: Pair, c: Comparison) -> PairResult:
    """A pair's result, with the names of the worst entry's scalars."""
    a, b = op.inputs[pair[0]], op.outputs[pair[1]]
    out = c.result(a.name, b.name)
    worst = out.worst
    if worst is None or worst.row < 0:
        return out
    named = replace(worst, row_name=scalar_name(b, worst.row), col_name=scalar_name(a, worst.col))
    return replace(out, worst=named)
