"""Compares a launch's adjoint with its reference along random directions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.arbitration import OUTVOTED, Opinions, arbitrate
from engine.autograd.comparison.judgement import FAIL, KINK, NAN, PASS, Comparison, Judgement
from engine.autograd.comparison.tolerance import largest, median
from engine.autograd.launch.displaced import DisplacedLaunch, norm
from engine.autograd.launch.evaluation import Evaluation
from engine.autograd.launch.shaken import forward_noise
from engine.autograd.launch.tracing import (
    DirectionalProbe,
    allowed_along,
    between_one_sided,
    forward_along,
)
from engine.autograd.launch.vanishing import vanishing
from engine.autograd.reference.differences import Slope, remeasured
from engine.classes import dataclass
from engine.lang.numbers import epsilon

Array = NDArray[Any]
Pair = tuple[str, str]
Comparisons = Mapping[Pair, Comparison]

DIRECTIONS = 3
# A direction whose error is below this part of its tolerance leaves no doubt: see
# `compare_directions`.
TIGHT = 1e-3
# An adjoint in the launch's own precision may be off by this part of its largest element, or
# by so many units of rounding.
ROUNDING = 1e-2
UNITS = 64.0
# Two runs may differ by this part of the largest value: sums in another order.
REPEATED = 1e-3
# The same in float64, where nothing but the order of sums is left.
REORDERED = 1e-11
LEVEL = 1e-4
# A sum is too small to tell anything of its parts below this part of their size. Such a direction
# is drawn again, so often at most.
CANCELS = 0.05
DRAWS = 8


@dataclass(frozen=True)
class ComparedLaunch:
    """What is compared: the inputs and outputs that have live elements, and the random numbers."""

    displaced: DisplacedLaunch
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    rng: np.random.Generator

    def cotangent(self, b: str) -> Array:
        """Random cotangents of the live elements of an output."""
        displaced = self.displaced
        shape = displaced.exact.initial[b].shape
        live = displaced.live_rows[displaced.spans[b]].reshape(shape)
        return np.where(live, self.rng.standard_normal(shape), 0.0)

    def flipped(self, w: Array) -> Array:
        """Other signs."""
        return np.asarray(w * self.rng.choice([-1.0, 1.0], w.shape))

    def gradients(self, evaluation: Evaluation, b: str, w: Array) -> dict[str, Array]:
        """The gradients of all inputs by an output."""
        grads = evaluation.vjp({b: w})
        return {a: grads[a].astype(np.float64) for a in self.inputs}

    def vanishing(self, a: str, b: str, w: Array, off: Array | float = 0.0) -> Array:
        """Which elements of a derivative are zero up to rounding: see `vanishing`."""
        return vanishing(self.displaced.evaluations, (a, b), w, off)

    def vanishes(self, a: str, b: str, w: Array, off: Array, most: float) -> bool:
        """Whether all elements are that which an adjoint is off by more than so much.

        off: in the shape of the input; finite.
        """
        far = self.displaced.live[a] & (off > most)
        return bool(self.vanishing(a, b, w, off)[far].all())


@dataclass(frozen=True)
class Directional:
    """What random directions say of each pair, and the first in which a pair failed."""

    pairs: Comparisons
    disagreements: Mapping[Pair, DirectionalProbe]


def compare_repeated(launch: ComparedLaunch, pairs: Comparisons) -> Comparisons:
    """Runs the launch and its adjoint twice: both must give the same again.

    An element that differs by a part of itself, beside larger ones, may be a sum that cancels, in
    another order: it must differ in float64, too, by more than rounding.
    """
    w = {b: launch.cotangent(b) for b in launch.outputs}
    runs = _twice(launch, launch.displaced.evaluations.own, w)
    finer: dict[str, tuple[Array, Array]] = {}
    out = dict(pairs)
    for a, b in pairs:
        if a not in launch.inputs or b not in launch.outputs:
            continue
        for what, name in (("its results", f"result {b}"), ("its adjoint", f"gradient {a}")):
            x, y = runs[name]
            with np.errstate(all="ignore"):
                spread, size = largest(x - y), largest(x)
            why = ""
            if spread > REPEATED * size:
                why = f"{spread / size:.1e} of the largest value" if size else f"{spread:.1e}"
            elif (suspect := _differ(x, y)).any():
                finer = finer or _twice(launch, launch.displaced.exact, w)
                x, y = finer[name]
                again = suspect & _differ(x, y, REORDERED * largest(x))
                if again.any():
                    part = float(
                        np.max(np.abs(x - y)[again] / np.maximum(np.abs(x[again]), 1e-300))
                    )
                    why = f"{part:.1e} of the value of an element"
            if why:
                found = Judgement("nondeterministic", f"{what} differ by {why}")
                out[a, b] = out[a, b].judged(found)
    return out


def _twice(
    launch: ComparedLaunch, evaluation: Evaluation, w: Mapping[str, Array]
) -> dict[str, tuple[Array, Array]]:
    """Results and gradients of two runs."""
    runs = []
    for _ in range(2):
        made = {f"result {b}": evaluation.forward()[b].copy() for b in launch.outputs}
        grads = evaluation.vjp(w)
        runs.append(made | {f"gradient {a}": grads[a].copy() for a in launch.inputs})
    first, second = runs
    return {name: (x, second[name]) for name, x in first.items()}


def _differ(x: Array, y: Array, least: float = 0.0) -> Array:
    """Where two runs differ by a part of an element, and by more than so much."""
    with np.errstate(all="ignore"):
        off = np.abs(x - y)
        return np.asarray((off > REPEATED * np.abs(x)) & (off > least))


def compare_directions(
    launch: ComparedLaunch, pairs: Comparisons, rtol: float | None
) -> Directional:
    """Compares w'Jv along random directions.

    rtol: what was asked for, if anything.

    The v are normal, so that w'Ev is so, too, for an error E of the Jacobian, and falls
    below a part TIGHT of its own standard deviation with probability sqrt(2/pi) TIGHT.
    An error of the tolerance's size, one whose w'Ev has the direction's tolerance for its
    standard deviation, stays below TIGHT in DIRECTIONS = 3 directions with probability
    (8e-4)^3 = 5e-10. A pass of less than that needs forward mode, whose only error is
    rounding, to agree as closely; where neither does (rough functions without a forward
    mode), an error of m tolerances passes with probability (0.8/m)^3 at most.
    """
    displaced = launch.displaced
    out = dict(pairs)
    disagreements: dict[Pair, DirectionalProbe] = {}
    grads: dict[str, dict[str, Array]] = {}
    w: dict[str, Array] = {}
    for _ in range(DIRECTIONS):
        # Later ones keep the magnitudes, so that `levelled` knows what each part counts for.
        w = {b: launch.flipped(w[b]) if w else launch.cotangent(b) for b in launch.outputs}
        v = {a: displaced.direction(a, launch.rng) for a in launch.inputs}
        if grads:
            v = {a: levelled(v[a], [grads[b][a] for b in launch.outputs], launch.rng) for a in v}
        grads = {b: launch.gradients(displaced.exact, b, w[b]) for b in launch.outputs}
        for a in launch.inputs:
            asked = [b for b in launch.outputs if (a, b) in out]
            found = [DirectionalProbe(a, b, w[b], grads[b][a], v[a]) for b in asked]
            sums = displaced.slope_of(displaced.weighted({a: v[a]}, {b: w[b] for b in asked}))
            for d, c in zip(found, _along(displaced, found, sums, out), strict=True):
                out[d.a, d.b] = c
                if c.verdict == "fail" or c.reason == OUTVOTED.reason:
                    disagreements.setdefault((d.a, d.b), d)
        for b in launch.outputs:
            out |= _in_own_precision(launch, out, b, w[b], grads[b], rtol)
    return Directional(out, disagreements)


def _along(
    displaced: DisplacedLaunch, asked: Sequence[DirectionalProbe], sums: Slope, pairs: Comparisons
) -> list[Comparison]:
    """Compares w'Jv of an input with several outputs. sums: by differences, one for each.

    What these do not confirm is looked at output by output, each with the step that
    suits it.
    """
    slope: Slope | None = None
    out = []
    for k, d in enumerate(asked):
        c = pairs[d.a, d.b]
        c = replace(c, directional=c.directional + 1)
        ref, error = float(sums.value[k]), float(sums.error[k])
        if not np.all(np.isfinite(d.g[displaced.live[d.a]])):
            out.append(c.measured(float("nan"), ref, 1.0).judged(NAN))
            continue
        parts = np.where(d.v == 0, 0.0, d.g * d.v)
        ad, size = float(parts.sum()), norm(parts)
        allowed = allowed_along(displaced, d.w, d.g, d.v, ref)
        if not (np.isfinite(ref) and abs(ad - ref) <= allowed):
            by_path = _on_path(displaced, d, ad, allowed)
            if by_path is not None:
                ref, found = by_path
                c = c.measured(ad, ref, max(allowed, 1e-300), size=size)
                out.append(c.judged(found))
                continue
            first = arbitrate(_opinions(displaced, d, ad, ref, error, allowed))
            if first.verdict != "pass":
                slope = slope or displaced.slope_along(d.a, d.v)
                ref, error = _summed(displaced, d, slope)
                allowed = allowed_along(displaced, d.w, d.g, d.v, ref)
        if allowed > 0 and TIGHT * allowed < abs(ad - ref) <= allowed:
            # It passes, if not as clearly as it should.
            forward = forward_along(displaced, d)
            found = FAIL if np.isfinite(forward) and abs(ad - forward) > allowed else PASS
        else:
            found = arbitrate(_opinions(displaced, d, ad, ref, error, allowed))
        if found != PASS or abs(ad - ref) <= allowed:  # else these differences were no reference
            c = c.measured(ad, ref, max(allowed, 1e-300), size=size)
        c = c.judged(found)
        out.append(c)
    return out


def _on_path(
    displaced: DisplacedLaunch, d: DirectionalProbe, ad: float, allowed: float
) -> tuple[float, Judgement] | None:
    """What confirms an adjoint that differences of the launch itself do not confirm.

    These are differences of the launch on the path that it took, where it has no kinks, and forward
    mode. None where they do not. The derivative of such a launch is one-sided or near a kink.
    """
    forward = forward_along(displaced, d)
    if not abs(ad - forward) <= allowed:
        return None
    beside = displaced.on_path
    if beside is None:
        return None
    ref = float(beside.slope_of(beside.weighted({d.a: d.v}, {d.b: d.w})).value[0])
    if not abs(ad - ref) <= allowed:
        return None
    # Kinks near a number that is next to nothing are not at it.
    size = np.abs(displaced.exact.initial[d.a])
    v = np.where(size > 0, np.clip(d.v, -size, size), d.v)
    return ref, KINK if between_one_sided(displaced, replace(d, v=v)) else PASS


def _summed(displaced: DisplacedLaunch, d: DirectionalProbe, slope: Slope) -> tuple[float, float]:
    """w'Jv by the differences of all outputs, and its error."""
    part, weights = displaced.spans[d.b], d.w.ravel()
    with np.errstate(all="ignore"):
        value = np.where(weights == 0, 0.0, weights * slope.value[part])
        error = np.where(weights == 0, 0.0, np.abs(weights) * slope.error[part])
        return float(value.sum()), float(error.sum())


def _opinions(
    displaced: DisplacedLaunch, d: DirectionalProbe, ad: float, ref: float, error: float,
    allowed: float,
) -> Opinions:  # fmt: skip
    """What forward mode and a closer look at the differences may be asked."""
    return Opinions(
        ad, ref, error, allowed, lambda: forward_along(displaced, d),
        lambda t: remeasured(displaced.weighted({d.a: d.v}, {d.b: d.w}), t, displaced.precision),
        displaced.tiny(d.a), lambda: _noise(displaced, d), displaced.tolerance.atol is None,
    )  # fmt: skip


def _noise(displaced: DisplacedLaunch, d: DirectionalProbe) -> float:
    """What rounding changes w'Jv by, in forward mode."""
    off = forward_noise(displaced, d.a, d.v)[displaced.spans[d.b]]
    with np.errstate(all="ignore"):
        return norm(np.where(d.w.ravel() == 0, 0.0, d.w.ravel() * off))


def _in_own_precision(
    launch: ComparedLaunch, pairs: Comparisons, b: str, w: Array, exact: Mapping[str, Array],
    rtol: float | None,
) -> dict[Pair, Comparison]:  # fmt: skip
    """The launch's own adjoint must be finite, and near the lifted one."""
    displaced = launch.displaced
    own = displaced.evaluations.own
    found = launch.gradients(own, b, w)
    out = {}
    for a in launch.inputs:
        if (a, b) not in pairs:
            continue
        c, live = pairs[a, b], displaced.live[a]
        mine, lifted = found[a][live], exact[a][live]
        if not np.all(np.isfinite(mine)):
            c = c.judged(NAN)
        elif np.all(np.isfinite(lifted)):
            c = replace(
                c, scale=max(c.scale, largest(lifted)), off=max(c.off, largest(mine - lifted))
            )
            kind = own.grads[a].dtype
            # One cotangent may make next to nothing of a derivative by cancellation.
            if c.directional >= DIRECTIONS and off_by_rounding(c.scale, c.off, kind, rtol):
                most = likely_rounding(kind, rtol) * c.scale
                off = np.abs(found[a] - exact[a])
                if rtol is not None or not launch.vanishes(a, b, w, off, most):
                    c = _rounded(c, kind)
        out[a, b] = c
    return out


def _rounded(c: Comparison, kind: Any) -> Comparison:
    """Says how many digits the launch's own adjoint, of a type of float, has lost."""
    unit = epsilon(kind)
    most = -float(np.log10(unit))
    lost = min(most, float(np.log10(c.off / c.scale / unit)))
    why = f"{lost:.1f} of {most:.1f} digits are lost to rounding"
    return replace(c, digits_lost=lost).judged(Judgement("rounding", why))


def off_by_rounding(scale: float, off: float, kind: Any, rtol: float | None) -> bool:
    """Whether an adjoint of a type of float is off by more than its rounding makes likely.

    scale: its largest element. rtol: what was asked for, if anything.
    """
    return off > likely_rounding(kind, rtol) * scale > 0


def likely_rounding(kind: Any, rtol: float | None) -> float:
    """The part of the largest element that rounding makes an adjoint of a type of float off by."""
    return float(max(ROUNDING if rtol is None else rtol, UNITS * epsilon(kind)))


def weakened(v: Array, part: Array, level: float, rng: np.random.Generator) -> Array:
    """The direction with no part of it counting for much more than a level.

    part: what each counts for. Each has some random size besides: parts that all count for the same
    cancel by chance, and with them an error that they have in common; two do in half of all cases.
    """
    with np.errstate(all="ignore"):
        short = np.where(part > 0, v * np.fmin(1.0, level / part), v)
    return np.asarray(short * rng.uniform(0.5, 1.5, v.shape))


def cancel(gradients: Iterable[Array], v: Iterable[Array]) -> bool:
    """Whether a derivative along a direction is next to nothing beside its parts.

    It says little about them then. A sum of random parts is so in 4 of 100 cases.
    """
    with np.errstate(all="ignore"):
        parts = [g * d for g, d in zip(gradients, v, strict=True)]
        size = float(np.sqrt(sum(norm(p) ** 2 for p in parts)))
        return abs(sum(float(p.sum()) for p in parts)) < CANCELS * size


def levelled(
    v: Array, grads: Sequence[Array], rng: np.random.Generator, least: float = LEVEL
) -> Array:
    """The direction with its strongest parts weakened, so that weak ones show beside them.

    v times the gradients of an earlier direction says how much each part counts; all are
    made to count as the weakest, or as `least` of their median, which rounding leaves visible.
    """
    with np.errstate(all="ignore"):
        part = np.max([np.abs(g * v) for g in grads], axis=0)
        level = level_of(part, least)
    return weakened(v, part, level if level > 0.0 else np.inf, rng)


def level_of(part: Array, least: float) -> float:
    """What parts are to count for at most: as the weakest, or that part of their median."""
    counts = part[np.isfinite(part) & (part > 0)]
    return max(float(counts.min()), least * median(counts)) if counts.size else 0.0
