"""Finds the input elements behind a disagreement along a random direction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.judgement import TRUST
from engine.autograd.launch.displaced import DisplacedLaunch, norm
from engine.autograd.reference.differences import Slope
from engine.classes import dataclass

Array = NDArray[Any]

MOST = 8  # elements to find
# Directional derivatives to take for it: fewer where each moves much memory.
EFFORT = (40, 200)
TRAFFIC = 40_000_000
# Outputs may be off by this many units of rounding, through the sums that they are.
NOISE = 64.0
# A disagreement is certain that is so many times what differences may be off by.
SURE = 16.0


@dataclass(frozen=True)
class DirectionalProbe:
    """What is known of w'J v by the adjoint, for one output b and one input a.

    w: cotangent. g: the adjoint J'w. v: the direction.
    """

    a: str
    b: str
    w: Array
    g: Array
    v: Array


def allowed_along(displaced: DisplacedLaunch, w: Array, g: Array, v: Array, ref: float) -> float:
    """The error of w'J v that is no error: by the size of its parts, not of their sum."""
    with np.errstate(all="ignore"):
        products = np.where(v == 0, 0.0, g * v)
        spread = norm(products)
        weight = 1.0 if displaced.tolerance.atol is None else norm(w) * norm(v)
    return float(displaced.tolerance.of(np.asarray(max(abs(ref), spread)), spread, weight))


def differs(displaced: DisplacedLaunch, d: DirectionalProbe, v: Array) -> bool:
    """Whether adjoint and differences disagree along v, beyond the differences' own error."""
    slope = displaced.slope_along(d.a, v)
    part = displaced.spans[d.b]
    weights = d.w.ravel()
    with np.errstate(all="ignore"):
        ref = float(np.where(weights == 0, 0.0, weights * slope.value[part]).sum())
        error = float(np.where(weights == 0, 0.0, np.abs(weights) * slope.error[part]).sum())
        diff = abs(float(np.where(v == 0, 0.0, d.g * v).sum()) - ref)
    allowed = allowed_along(displaced, d.w, d.g, v, ref)
    return bool(np.isfinite(diff) and diff > allowed and diff > TRUST * error)


def differs_forward(displaced: DisplacedLaunch, d: DirectionalProbe, v: Array) -> bool:
    """Whether adjoint and forward mode disagree along v: one run, and no step."""
    forward = forward_along(displaced, replace(d, v=v))
    with np.errstate(all="ignore"):
        diff = abs(float(np.where(v == 0, 0.0, d.g * v).sum()) - forward)
    return bool(diff > allowed_along(displaced, d.w, d.g, v, forward))


def agrees_forward(displaced: DisplacedLaunch, d: DirectionalProbe) -> bool:
    """Whether there is a forward mode that agrees with the adjoint along the whole direction."""
    forward = forward_along(displaced, d)
    with np.errstate(all="ignore"):
        diff = abs(float(np.where(d.v == 0, 0.0, d.g * d.v).sum()) - forward)
    return bool(diff <= allowed_along(displaced, d.w, d.g, d.v, forward))


def is_sure(displaced: DisplacedLaunch, d: DirectionalProbe) -> bool:
    """Whether differences along a direction are sharp, and forward mode gives the same."""
    if displaced.tolerance.eps is not None or displaced.precision.coarse:
        return False
    line = displaced.weighted({d.a: d.v}, {d.b: d.w})
    slope, forward = displaced.slope_of(line), forward_along(displaced, d)
    ref, error = float(slope.value[0]), float(slope.error[0])
    with np.errstate(all="ignore"):
        ad = float(np.where(d.v == 0, 0.0, d.g * d.v).sum())
    unsure = TRUST * error + allowed_along(displaced, d.w, d.g, d.v, ref)
    return bool(abs(ref - forward) <= unsure and abs(ad - ref) > SURE * unsure)


def columns_behind(displaced: DisplacedLaunch, d: DirectionalProbe) -> tuple[list[int], bool]:
    """Elements of the input along which the two differ, and whether these are all.

    Halves the elements again and again; groups that agree are left out.
    """
    found: list[int] = []
    effort = min(max(EFFORT[0], TRAFFIC // (len(displaced.live_rows) + d.v.size)), EFFORT[1])
    stack = [np.flatnonzero(d.v)]
    ask = differs_forward if differs_forward(displaced, d, d.v) else differs
    while stack and len(found) < MOST and effort > 0:
        group = stack.pop()
        effort -= 1
        v = np.zeros_like(d.v)
        v.flat[group] = d.v.flat[group]
        if not ask(displaced, d, v):
            continue
        if len(group) == 1:
            found.append(int(group[0]))
            continue
        middle = len(group) // 2
        stack += [group[middle:], group[:middle]]
    return sorted(found), not stack


def row_behind(
    displaced: DisplacedLaunch, d: DirectionalProbe, col: int, column: Slope
) -> int | None:
    """The output whose entry in one column disagrees; None where it cannot be made out."""
    part = displaced.spans[d.b]
    value, error = column.value[part], column.error[part]
    group = np.flatnonzero(displaced.live_rows[part] & (d.w.ravel() != 0))
    while len(group) > 1:
        for half in (group[: len(group) // 2], group[len(group) // 2 :]):
            w = np.zeros_like(d.w)
            w.flat[half] = d.w.flat[half]
            ad = float(displaced.exact.vjp({d.b: w})[d.a].reshape(-1)[col])
            parts = w.ravel() * value
            with np.errstate(all="ignore"):
                diff, spread = abs(ad - float(parts.sum())), float(np.linalg.norm(parts))
                unsure = float(np.abs(w).ravel() @ error)
            if diff > float(displaced.tolerance.of(np.asarray(spread), spread)) and diff > unsure:
                group = half
                break
        else:
            return None
    return int(group[0]) if len(group) else None


def between_one_sided(displaced: DisplacedLaunch, d: DirectionalProbe) -> bool:
    """Whether the adjoint lies between the one-sided slopes along the whole direction."""
    line = displaced.along(d.a, d.v)
    h = displaced.precision.side
    with np.errstate(all="ignore"):
        here = line(0.0)
        part = displaced.spans[d.b]
        right = d.w.ravel() * ((line(h) - here) / h)[part]
        left = d.w.ravel() * ((here - line(-h)) / h)[part]
        noise = (
            float(np.abs(d.w.ravel()) @ np.abs(here[part]))
            * NOISE
            * displaced.precision.epsilon
            / h
        )
        lo, hi = float(np.minimum(right, left).sum()), float(np.maximum(right, left).sum())
        ad = float(np.where(d.v == 0, 0.0, d.g * d.v).sum())
    slack = 1e-4 * (abs(lo) + abs(hi)) + noise
    if not (hi - lo > 4 * slack and lo - slack <= ad <= hi + slack):
        return False
    if not displaced.exact.generated:
        return True
    # Both modes choose the same side of a kink.
    forward = forward_along(displaced, d)
    allowed = allowed_along(displaced, d.w, d.g, d.v, forward)
    return not abs(forward - ad) > allowed


def forward_along(displaced: DisplacedLaunch, d: DirectionalProbe) -> float:
    """w' J v by forward mode; NaN where there is none."""
    moved = displaced.forward_along(d.a, d.v)[displaced.spans[d.b]]
    with np.errstate(all="ignore"):
        return float(np.where(d.w.ravel() == 0, 0.0, d.w.ravel() * moved).sum())


def only_by_size(displaced: DisplacedLaunch, d: DirectionalProbe) -> bool:
    """Whether the two agree once elements far smaller than the others move by their own size.

    A direction moves them by the others' size, across poles and kinks if there are some.
    """
    small = (displaced.own_scales(d.a) < displaced.scales(d.a)).reshape(d.v.shape)
    if not small.any():
        return False
    size = np.abs(displaced.exact.initial[d.a]) / (0.1 * displaced.typical(d.a))
    return not differs(displaced, d, np.where(small, d.v * size, d.v))


def differs_near_by(
    displaced: DisplacedLaunch, d: DirectionalProbe, rng: np.random.Generator
) -> bool:
    """Whether the two also disagree at a random point close by, away from kinks."""
    exact = displaced.exact
    beside = {}
    for a, live in displaced.live.items():
        x = exact.initial[a]
        size = np.maximum(np.abs(np.where(live, x, 0.0)), 0.1 * displaced.typical(a))
        shift = 1e-3 * size * rng.uniform(0.5, 1.0, x.shape) * rng.choice([-1.0, 1.0], x.shape)
        beside[a] = np.where(live, x + shift, x)
    with exact.at(beside):
        g = exact.vjp({d.b: d.w})[d.a].astype(np.float64)
        return differs(displaced, replace(d, g=g), d.v)
