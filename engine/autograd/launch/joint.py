"""One direction through all inputs of a launch, which is enough where derivatives agree.

For w'Jv with a v that moves every input, one adjoint for each output, one run of forward mode and a
few displaced ones are needed, however many pairs of arrays there are. It only ever says that all is
right; whatever it does not confirm is looked at pair by pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.comparison.judgement import PASS
from engine.autograd.comparison.tolerance import largest
from engine.autograd.launch.directions import (
    DRAWS,
    LEVEL,
    TIGHT,
    ComparedLaunch,
    Comparisons,
    cancel,
    level_of,
    likely_rounding,
    off_by_rounding,
    weakened,
)
from engine.autograd.launch.displaced import DisplacedLaunch, norm
from engine.autograd.launch.evaluation import EvaluationFailed
from engine.autograd.reference.differences import bear_out
from engine.autograd.reference.noise import Line
from engine.classes import dataclass

Array = NDArray[Any]

# What counts for less than this part of all is moved by itself: it would not be seen beside the
# rest.
WEAK = 1e-2


@dataclass(frozen=True)
class _Numbers:
    """w'Jv by the adjoint and by a reference, the error allowed, and the size of its parts."""

    ad: float
    ref: float
    allowed: float
    size: float

    @staticmethod
    def of(displaced: DisplacedLaunch, ad: float, ref: float, size: float) -> _Numbers:
        allowed = float(displaced.tolerance.of(np.asarray(max(abs(ref), size)), size))
        return _Numbers(ad, ref, allowed, size)

    @property
    def agrees(self) -> bool:
        return bool(abs(self.ad - self.ref) <= self.allowed)


def compare_jointly(
    launch: ComparedLaunch, pairs: Comparisons, kinked: bool = False
) -> Comparisons | None:
    """The pairs, passed; None where they must be looked at one by one.

    kinked: differences of the launch on the path that it took will do.
    """
    displaced = launch.displaced
    if displaced.precision.coarse or displaced.nonfinite or not displaced.tolerance.auto:
        return None
    if not {(a, b) for a in launch.inputs for b in launch.outputs} <= set(pairs):
        return None
    w = {b: launch.cotangent(b) for b in launch.outputs}
    grads: dict[str, Mapping[str, Array]] = {}
    out = dict(pairs)
    for b in launch.outputs:
        found = launch.gradients(displaced.exact, b, w[b])
        if not all(np.isfinite(g).all() for g in found.values()):
            return None
        grads[b] = found
        mine = launch.gradients(displaced.evaluations.own, b, w[b])
        if any(_rounded(launch, a, b, w[b], mine[a], found[a]) for a in launch.inputs):
            return None
        for a in launch.inputs:
            scale, off = largest(found[a]), largest(mine[a] - found[a])
            if not off_by_rounding(scale, off, mine[a].dtype, None):
                out[a, b] = replace(out[a, b], scale=scale, off=off)
    groups = _telling_groups(launch, grads)
    if groups is None:
        return None
    for moves in groups:
        known = _agreement(launch, w, grads, moves, kinked)
        if known is None:
            return None
        for b, n in known.items():
            for a in moves:
                c = replace(out[a, b], directional=out[a, b].directional + 1)
                c = c.measured(n.ad, n.ref, max(n.allowed, 1e-300), size=n.size)
                if len(moves) > 1:  # the numbers are those of a sum, of which this is a part
                    c = replace(c, joint=True, worst=None)
                out[a, b] = c.judged(PASS)
    return out


def _rounded(launch: ComparedLaunch, a: str, b: str, w: Array, mine: Array, exact: Array) -> bool:
    """Whether the launch's own adjoint is not finite, or off by more than is likely."""
    if not np.isfinite(mine).all():
        return True
    scale, off = largest(exact), largest(mine - exact)
    suspect = off_by_rounding(scale, off, mine.dtype, None)
    most = likely_rounding(mine.dtype, None) * scale
    return suspect and not launch.vanishes(a, b, w, np.abs(mine - exact), most)


def _telling_groups(
    launch: ComparedLaunch, grads: Mapping[str, Mapping[str, Array]]
) -> list[dict[str, Array]] | None:
    """Directions along which no output's sum cancels; None where none were found."""
    for _ in range(DRAWS):
        groups = _groups(launch, grads)
        if not any(
            cancel((g[a] for a in moves), moves.values())
            for moves in groups for g in grads.values()
        ):  # fmt: skip
            return groups
    return None


def _groups(
    launch: ComparedLaunch, grads: Mapping[str, Mapping[str, Array]]
) -> list[dict[str, Array]]:
    """Directions, levelled over all inputs; those that count for little are moved by themselves."""
    displaced, rng = launch.displaced, launch.rng
    moves = {a: displaced.direction(a, rng) for a in launch.inputs}
    with np.errstate(all="ignore"):
        parts = {a: np.max([np.abs(g[a] * v) for g in grads.values()], axis=0)
                 for a, v in moves.items()}  # fmt: skip
        level = level_of(np.concatenate([p.ravel() for p in parts.values()]), LEVEL)
        if level > 0.0:
            moves = {a: weakened(v, parts[a], level, rng) for a, v in moves.items()}
    # By output, what each input adds to the sum.
    sizes = np.array([[norm(g[a] * moves[a]) for g in grads.values()] for a in moves])
    whole = np.sqrt((sizes**2).sum(axis=0))
    weak = [a for a, s in zip(moves, sizes, strict=True) if np.any(s < WEAK * whole) or not s.any()]
    if len(weak) == len(moves):
        return [{a: moves[a]} for a in moves]
    strong = {a: v for a, v in moves.items() if a not in weak}
    return [strong, *({a: moves[a]} for a in weak)]


def _agreement(
    launch: ComparedLaunch, w: Mapping[str, Array], grads: Mapping[str, Mapping[str, Array]],
    moves: Mapping[str, Array], kinked: bool,
) -> dict[str, _Numbers] | None:  # fmt: skip
    """What is known of each output's sum; None unless each adjoint agrees.

    Forward mode has no step, and answers for the digits; differences share no rule with the
    adjoint, and a coarse look at them answers for the rest. Without forward mode, differences must
    be as close as `compare_directions` asks for.
    """
    displaced = launch.displaced
    parts = {b: [grads[b][a] * v for a, v in moves.items()] for b in w}
    sizes = {b: float(np.sqrt(sum(norm(p) ** 2 for p in parts[b]))) for b in w}
    ads = {b: sum(float(p.sum()) for p in parts[b]) for b in w}
    line = displaced.weighted(moves, w)
    try:
        moved = displaced.exact.jvp(moves)
    except EvaluationFailed:
        return _closely(displaced, line, ads, sizes)
    forward = {b: float(np.einsum("i,i->", w[b].reshape(-1), moved[b].reshape(-1))) for b in w}
    out = {b: _Numbers.of(displaced, ads[b], forward[b], sizes[b]) for b in w}
    if not all(n.agrees for n in out.values()):
        return None
    numbers = list(out.values())
    ad, size, allowed = np.array([(n.ad, n.size, n.allowed) for n in numbers]).T
    # Where launches like it have kinks, their path is looked at first: at one, no step tells.
    beside = displaced.on_path if kinked else None
    steered = beside is not None and bear_out(beside.weighted(moves, w), ad, size, allowed)
    return out if steered or bear_out(line, ad, size, allowed) else None


def _closely(
    displaced: DisplacedLaunch, line: Line, ads: Mapping[str, float], sizes: Mapping[str, float]
) -> dict[str, _Numbers] | None:
    """What is known by differences with the step that suits them; None where that is too little."""
    found = displaced.slope_of(line)
    out = {b: _Numbers.of(displaced, ad, float(found.value[k]), sizes[b])
           for k, (b, ad) in enumerate(ads.items())}  # fmt: skip
    sharp = all(abs(n.ad - n.ref) <= TIGHT * n.allowed for n in out.values())
    return out if sharp and all(n.agrees for n in out.values()) else None
