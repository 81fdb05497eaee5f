"""Slopes over steps of all sizes, for values in low precision.

One step may be too large for a function that is steep or bends near by, and too small
beside its rounding. So steps are taken from large to small; `comparison.convergence` says
which to believe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.autograd.reference.noise import Array
from engine.classes import dataclass

RATIO = 4.0  # from each step to the next
MOST = 40  # steps
LEAST = 8.0  # steps are at least as many units in the last place
WIDEST = 0.25  # and at most this much of the displaced value

# Displacement to the real displacement and the outputs.
Moved = Callable[[float], tuple[float, Array]]


@dataclass(frozen=True)
class Slopes:
    """Slopes of some outputs over one step: central, to the right, to the left.

    error: what rounding may put them off by. moved: where the output changed.
    """

    central: Array
    right: Array
    left: Array
    error: Array
    moved: NDArray[np.bool_]


def step_sizes(value: float, typical: float, precision: float) -> list[float]:
    """Displacements of a value, from large to small."""
    size = abs(value)
    top = WIDEST * max(size, typical)
    least = LEAST * precision * size if size else top * RATIO ** (1 - MOST)
    least = max(least, top * RATIO ** (1 - 4 * MOST))
    count = 1 + int(np.log(max(top / max(least, 1e-300), 1.0)) / np.log(RATIO))
    return [top * RATIO**-k for k in range(count)][-MOST:]


def sweep(
    line: Moved, sizes: Sequence[float], precision: float, tiny: float,
    noise: Array | float, rows: Array, weights: Array | None = None, spread: float = 0.0,
) -> list[Slopes]:  # fmt: skip
    """Slopes of the outputs `rows` over all steps; of one weighted sum of them, with `weights`.

    tiny: the smallest positive value of the outputs' type. noise: of each output. spread:
    what rounding of the displacements is relative to.
    """
    here = line(0.0)[1][rows]
    out: list[Slopes] = []
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
            out.append(Slopes(central, up / ahead, down / -behind, error, moved))
    return _without_stairs(out)


def _without_stairs(samples: list[Slopes]) -> list[Slopes]:
    """What stands still over small steps and moves over larger ones says nothing of its slope."""
    moves = np.zeros(1, bool)
    out = []
    for s in samples:
        moves = moves | s.moved
        out.append(replace(s, error=np.where(moves & ~s.moved, np.inf, s.error)))
    return out
