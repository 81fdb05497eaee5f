"""Compares a handwritten gradient with differences along random directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from engine.autograd.comparison.judgement import (
    FAIL,
    KINK,
    NAN,
    PASS,
    Comparison,
    Judgement,
)
from engine.autograd.comparison.tolerance import largest
from engine.autograd.launch.directions import LEVEL, levelled, off_by_rounding
from engine.autograd.reference.differences import Slope
from engine.autograd.reference.noise import Line
from engine.classes import dataclass
from engine.foreign.evaluated import FLOOR, ZERO, Evaluated
from engine.foreign.judging import CHAOS, allowed_along, between, settled
from engine.foreign.operation import Array, OperationFailed

DIRECTIONS = 2  # plain ones; after them come one or two in which strong parts are weakened
Pair = tuple[int, int]  # the numbers of an input and an output
UNSETTLED = ("fail", "inconclusive")


@dataclass(frozen=True)
class Probe:
    """A direction of an input, a cotangent of an output, and what is said of w'Jv.

    gradient: of the input by the cotangent, zeros where none is given.
    """

    v: Array
    w: Array
    gradient: Array
    slope: Slope

    @property
    def ad(self) -> float:
        """By the gradient."""
        return float(np.sum(self.gradient * self.v))

    @property
    def spread(self) -> float:
        """The size of the parts of that sum."""
        return float(np.linalg.norm(self.gradient * self.v))


@dataclass
class Directional:
    """What directions say of each pair.

    probes: one for each pair that they leave unsettled. missing: pairs for which the gradient
    is None. open: pairs that no direction told anything of.
    """

    pairs: dict[Pair, Comparison]
    probes: dict[Pair, Probe] = field(default_factory=dict)
    missing: set[Pair] = field(default_factory=set)


def compare_directions(
    e: Evaluated, rng: np.random.Generator, known: Mapping[Pair, Comparison] | None = None
) -> Directional:
    """Compares w'Jv of all pairs along random directions; of `known` ones where it is given.

    After the plain ones the strongest parts are weakened, so that weak ones show beside them.
    """
    op = e.op
    pairs = known or e.begun()
    out = Directional(dict(pairs))
    told: dict[Pair, list[Judgement]] = {pair: [] for pair in pairs}
    w: dict[int, Array] = {}
    slopes: dict[int, Slope] = {}
    faint = False
    for count in range(DIRECTIONS + 2):
        if count > DIRECTIONS and not faint:
            break
        faint, plain = False, count < DIRECTIONS
        least = LEVEL if count == DIRECTIONS else 1.0  # the last, where rounding hid weak parts
        for j in dict.fromkeys(j for _, j in pairs):
            w[j] = rng.standard_normal(op.outputs[j].value.shape)
            if not plain:
                rows = [_shaped(e, j, slopes[i]) for i, k in pairs if k == j]
                w[j] = levelled(w[j], rows, rng, 1.0)
        found = {j: e.gradients(j, some) for j, some in w.items()}
        moves = {i: direction(e, i, rng, FLOOR if count == 0 else 0.0) for i, _ in pairs}
        if not plain:
            parts = {i: [g for f in found.values() if (g := f[i]) is not None] for i in moves}
            moves = {
                i: e.mirrored_alike(i, levelled(v, parts[i], rng, least)) if parts[i] else v
                for i, v in moves.items()
            }
        slopes = {i: e.slope(e.line({i: v}), 1.0) for i, v in moves.items()}
        for j, gradients in found.items():
            own = _own(e, j, w[j]) if count == 0 else None
            for i in (i for i, k in pairs if k == j):
                g = gradients[i]
                if g is None:
                    out.missing.add((i, j))
                    g = np.zeros(op.inputs[i].value.shape)
                probe = Probe(moves[i], w[j], g, slopes[i])
                c = out.pairs[i, j]
                c = replace(c, directional=c.directional + 1)
                c, judgement = compare_probe(e, i, j, probe, c)
                told[i, j].append(judgement)
                faint |= judgement.verdict == "inconclusive" or _is_faint(e, j, probe)
                if judgement.verdict in UNSETTLED:
                    out.probes[i, j] = probe
                if own is not None and own[i] is not None:
                    c = _rounded(e, i, c, g, own[i])
                out.pairs[i, j] = c
    for pair, judgements in told.items():
        out.pairs[pair] = out.pairs[pair].judged(*_said(judgements))
    return out


def _is_faint(e: Evaluated, j: int, probe: Probe) -> bool:
    """Whether a derivative along a direction is no more than rounding of the function's value."""
    with np.errstate(all="ignore"):
        weights, part = probe.w.reshape(-1), e.spans[j]
        size = abs(float(weights @ e.here[part]))
        both = max(abs(probe.ad), abs(float(weights @ probe.slope.value[part])))
    return e.lifted and both <= ZERO * size


def _said(judgements: list[Judgement]) -> list[Judgement]:
    """The judgements; what one direction leaves open another one may settle."""
    if any(j.verdict == "pass" for j in judgements):
        return [j for j in judgements if j.verdict != "inconclusive" or j is CHAOS]
    return judgements


def _shaped(e: Evaluated, j: int, slope: Slope) -> Array:
    """The part of a derivative that is an output's, in its shape."""
    return slope.value[e.spans[j]].reshape(e.op.outputs[j].value.shape)


def compare_probe(
    e: Evaluated, i: int, j: int, probe: Probe, c: Comparison
) -> tuple[Comparison, Judgement]:
    """The comparison with one direction, and what is to be said of it."""
    part, w = e.spans[j], probe.w.reshape(-1)
    if not np.all(np.isfinite(probe.gradient)):
        return c, not_finite(e, i)
    with np.errstate(all="ignore"):
        ref = float(w @ probe.slope.value[part])
        error = float(np.linalg.norm(w * probe.slope.error[part]))
    ad, spread = probe.ad, probe.spread
    allowed = allowed_along(e, ref, spread)
    within = allowed + (error if e.precision.coarse else 0.0)
    if abs(ad - ref) <= within:
        c = c.measured(ad, ref, within, size=spread)
        if error > 0.1 * max(abs(ref), spread) > 0:
            why = f"the reference itself is uncertain by {error:.1e}"
            return c, Judgement("inconclusive", why)
        return c, PASS
    line = weighted(e.line({i: probe.v}), part, w)
    size = np.abs(e.at[i])
    near = np.clip(probe.v, -size, size)
    rounded = weighted(e.line({i: near}), part, w), float(np.sum(probe.gradient * near))
    found = Slope(np.array([ref]), np.array([error]))
    judgement = settled(e, line, 1.0, ad, found, allowed, rounded=rounded)
    if judgement.verdict == "fail":
        c = c.measured(ad, ref, allowed, size=spread)
    return c, judgement


def beside_kinks(
    e: Evaluated, pair: Pair, probe: Probe, rng: np.random.Generator
) -> tuple[Judgement, Evaluated, Probe] | None:
    """What is said a little further, where a direction has kinks; None where it has none."""
    i, j = pair
    ref = float(probe.w.reshape(-1) @ probe.slope.value[e.spans[j]])
    allowed = allowed_along(e, ref, probe.spread)
    line, w = e.line({i: probe.v}), probe.w.reshape(-1)
    if not between(e, line, e.spans[j], w, probe.ad, allowed):
        return None
    try:
        near = e.beside(rng)
        found = compare_directions(near, rng, {pair: near.begun()[pair]})
    except OperationFailed:
        return None
    verdict = found.pairs[pair].verdict
    if verdict == "pass":
        return KINK, near, probe
    return (FAIL, near, found.probes[pair]) if verdict == "fail" else None


def weighted(line: Line, part: slice, w: Array) -> Line:
    """One number of the outputs: a weighted sum of some."""
    return lambda t: np.array([float(w @ line(t)[part])])


def scaled(line: Line, size: float) -> Line:
    """The same displaced by so many times as much."""
    return lambda t: line(t * size)


def direction(e: Evaluated, i: int, rng: np.random.Generator, floor: float) -> Array:
    """A random direction in an input; floor: the least, as a part of its typical value."""
    x, typical = e.at[i], e.typical[i]
    size = np.abs(np.where(np.isfinite(x), x, 0.0))
    size = np.maximum(size, floor * typical) if floor else np.where(size > 0, size, 0.1 * typical)
    return e.mirrored_alike(i, np.asarray(size * rng.standard_normal(x.shape)))


def not_finite(e: Evaluated, i: int) -> Judgement:
    """The verdict on a gradient that is not: its own fault unless what it was given is not."""
    for v, x in zip(e.op.inputs, e.at, strict=True):
        if not np.all(np.isfinite(x)):
            return Judgement("inconclusive", f"argument {v.name!r} holds NaN or Inf")
    return NAN


def _own(e: Evaluated, j: int, w: Array) -> list[Array | None] | None:
    """The gradients in the operation's own precision, where that is another one."""
    if not e.lifted or all(v.dtype == "float64" for v in e.op.inputs):
        return None
    return e.vjp(e.cotangents(j, w), False)


def _rounded(e: Evaluated, i: int, c: Comparison, exact: Array, own: Array | None) -> Comparison:
    """With how far the gradient in its own precision is from that in float64."""
    v = e.op.inputs[i]
    if own is None or not np.all(np.isfinite(exact)):
        return c
    if not np.all(np.isfinite(own)):
        verdict = not_finite(e, i)
        if verdict is NAN:
            why = f"the gradient is not finite in {v.dtype}, and is in float64"
            verdict = Judgement("nan", why)
        return c.judged(verdict)
    scale, off = largest(exact), largest(own - exact)
    c = replace(c, scale=max(c.scale, scale), off=max(c.off, off))
    if off_by_rounding(scale, off, _numpy(v.dtype), None) and e.precision.epsilon < 1e-12:
        most = -float(np.log10(v.epsilon))
        lost = min(most, float(np.log10(off / scale / v.epsilon)))
        text = f"{lost:.1f} of {most:.1f} digits are lost to rounding"
        return replace(c, digits_lost=lost).judged(Judgement("rounding", text))
    return c


def _numpy(dtype: str) -> str:
    return "float16" if dtype == "bfloat16" else dtype
