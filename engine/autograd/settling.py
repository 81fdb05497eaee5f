"""A disagreement in coarse precision: settled by differences with many steps, or left open.

One step may be too large for a function that is steep or bends near by, and too small
beside its rounding. So steps are taken from large to small, and believed from the small
end, where some in a row are sharp and say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.autograd.results import Verdict
from engine.autograd.rounding import Array

RATIO = 4.0  # from each step to the next
MOST = 40  # steps
LEAST = 8.0  # steps are at least as many units in the last place
WIDEST = 0.25  # and at most this much of the displaced value
SHARP = 0.25  # an error this small beside a distance leaves no doubt of it
TIGHT = 0.05  # and beside a slope, so little that agreeing with it means something
FLAT = 0.1  # slopes this close beside a distance are the same

# Displacement to the real displacement and the outputs.
Moved = Callable[[float], tuple[float, Array]]


@dataclass(frozen=True)
class Sample:
    """Slopes of some outputs over one step: central, to the right, to the left.

    error: what rounding may put them off by. moved: where the output changed.
    """

    central: Array
    right: Array
    left: Array
    error: Array
    moved: NDArray[np.bool_]


def steps(value: float, typical: float, precision: float) -> list[float]:
    """Displacements of a value, from large to small."""
    size = abs(value)
    top = WIDEST * max(size, typical)
    least = LEAST * precision * size if size else top * RATIO ** (1 - MOST)
    least = max(least, top * RATIO ** (1 - 4 * MOST))
    count = 1 + int(np.log(max(top / max(least, 1e-300), 1.0)) / np.log(RATIO))
    return [top * RATIO**-k for k in range(count)][-MOST:]


def sampled(
    line: Moved, sizes: Sequence[float], precision: float, tiny: float,
    noise: Array | float, rows: Array, weights: Array | None = None, spread: float = 0.0,
) -> list[Sample]:  # fmt: skip
    """Slopes of the outputs `rows` over all steps; of one weighted sum of them, with `weights`.

    tiny: the smallest positive value of the outputs' type. noise: of each output. spread:
    what rounding of the displacements is relative to.
    """
    here = line(0.0)[1][rows]
    out: list[Sample] = []
    with np.errstate(all="ignore"):
        for h in sizes:
            (ahead, after), (behind, before) = line(h), line(-h)
            after, before = after[rows], before[rows]
            if not ahead > behind:
                continue
            size = np.maximum(np.abs(after), np.abs(before))
            rough = np.maximum(precision * size, noise) + tiny
            up, down, moved = after - here, here - before, (after != here) | (before != here)
            if weights is not None:
                up, down = np.array([weights @ up]), np.array([weights @ down])
                rough = np.array([np.linalg.norm(weights * rough) + precision * spread])
                moved = np.array([moved.any()])
            step = (ahead - behind) / 2.0
            error = 4.0 * rough / step
            central = (up + down) / (ahead - behind)
            error = np.where(np.isfinite(central), error, np.inf)
            out.append(Sample(central, up / ahead, down / -behind, error, moved))
    return _without_stairs(out)


def _without_stairs(samples: list[Sample]) -> list[Sample]:
    """What stands still over small steps and moves over larger ones says nothing of its slope."""
    moves = np.zeros(1, bool)
    out = []
    for s in samples:
        moves = moves | s.moved
        out.append(replace(s, error=np.where(moves & ~s.moved, np.inf, s.error)))
    return out


def settle(
    samples: Sequence[Sample], ad: Array, allowed: Array, rtol: float
) -> tuple[list[Verdict], Array]:
    """What the slopes say of each entry, and the slope that says so (NaN where none does).

    Verdicts are pass, kink, fail and inconclusive. rtol: what differences can tell at best.
    """
    verdicts: list[Verdict] = []
    slopes = np.full(len(ad), np.nan)
    for i in range(len(ad)):
        found = [(s.central[i], s.right[i], s.left[i], s.error[i]) for s in reversed(samples)]
        with np.errstate(all="ignore"):
            verdict = _one(found, float(ad[i]), float(allowed[i]), rtol)
        verdicts.append(verdict[0])
        slopes[i] = verdict[1]
    return verdicts, slopes


_Slopes = tuple[float, float, float, float]


def _one(found: list[_Slopes], ad: float, allowed: float, rtol: float) -> tuple[Verdict, float]:
    """found: central, right and left slopes and their error, the smallest step first.

    The smallest steps that settle it are believed, unless a smaller one contradicts them.
    """
    first = next((k for k, s in enumerate(found) if s[3] <= SHARP * max(map(abs, (ad, *s[:3])))),
                 len(found))  # fmt: skip
    near = found[first : first + 3]
    if len(near) == 3 and all(abs(x[0] - ad) <= 0.5 * abs(y[0] - ad) for x, y in pairwise(near)):
        return "pass", ad  # the slope nears the adjoint's as the step shrinks
    if any(_kink(ad, x, y) for x, y in pairwise(found[first : first + 5])):
        return "kink", np.nan
    for k in range(first, len(found)):
        slope, _, _, error = found[k]
        reach, distance = max(abs(slope), abs(ad)), abs(slope - ad)
        if error <= TIGHT * reach and distance <= allowed + 2 * error + rtol * reach:
            if _unopposed(found[:k], slope, reach):
                return "pass", slope
        elif _plateau(found[k : k + 3], ad) and _unopposed(found[:k], slope, distance):
            return "fail", slope
    return "inconclusive", np.nan


def _unopposed(smaller: list[_Slopes], slope: float, scale: float) -> bool:
    """Whether the slopes over smaller steps may be the same, beside that scale."""
    return all(abs(s[0] - slope) <= 2.0 * s[3] + FLAT * scale for s in smaller)


def _plateau(near: list[_Slopes], ad: float) -> bool:
    """Whether three steps agree on a slope that certainly is not the adjoint's."""
    if len(near) < 3 or not all(_differs(ad, s) for s in near):
        return False
    return all(
        abs(x[0] - y[0]) <= min(FLAT * abs(y[0] - ad), FLAT * abs(x[0]) + 0.5 * (x[3] + y[3]))
        for x, y in pairwise(near)
    )


def _kink(ad: float, *two: _Slopes) -> bool:
    """Whether one-sided slopes stay apart over two steps, and the adjoint lies between them."""
    (_, right, left, _), (_, other_right, other_left, _) = two
    if max(abs(right - other_right), abs(left - other_left)) > SHARP * abs(right - left):
        return False
    return all(
        min(right, left) - error <= ad <= max(right, left) + error
        and 2.0 * error <= SHARP * abs(right - left)
        for _, right, left, error in two
    )


def _differs(ad: float, s: _Slopes) -> bool:
    """Whether there is a slope, and it certainly is another one."""
    central, right, left, error = s
    distance = abs(central - ad)
    return error <= SHARP * distance and abs(right - left) <= SHARP * distance


__all__ = ["Sample", "sampled", "settle", "steps"]
