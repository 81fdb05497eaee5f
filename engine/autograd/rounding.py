"""How rounding inside of a function shows in values that are coarser than float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Line = Callable[[float], Array]

SAMPLES = 129
# A function that stands still and moves again and again this often has steps.
ALTERNATIONS = 4


def noise(line: Line, h: float) -> Array:
    """What each output is uncertain by.

    Fourth differences of a smooth function over steps far below its scale are next to
    nothing, so that what is left of them is rounding (More and Wild, Estimating
    Computational Noise, SIAM J. Sci. Comput. 33, 2011).
    """
    values = np.stack([line(k * h / 64.0) for k in range(-4, 5)])
    fourth = np.diff(values, 4, axis=0)
    level = np.sqrt(np.mean(fourth * fourth, axis=0) / 70.0)  # 70 = 8! / (4! 4!)
    return np.asarray(np.where(np.isfinite(level), 4.0 * level, 0.0))


@dataclass
class Stairs:
    """Notices outputs whose rounding is coarser than the steps of the best differences.

    Those stand still over such a step, which looks as sharp as it gets.
    """

    line: Line
    step: Any = 0.0  # of the best differences, by output
    still: Any = field(default_factory=lambda: np.False_)  # whether they saw no change
    moved: Any = np.inf  # the smallest step that changed each output

    def look(self, h: float, chosen: Any, values: list[Array]) -> None:
        """Takes note of evaluations with step h, which gave the best for the `chosen`."""
        still = np.logical_and.reduce([v == values[0] for v in values[1:]])
        self.moved = np.where(still, self.moved, np.minimum(self.moved, h))
        self.step = np.where(chosen, h, self.step)
        self.still = np.where(chosen, still, self.still)

    def bound(self) -> Array:
        """What derivatives are uncertain by because of it; zero where there are no steps."""
        doubtful = self.still & np.isfinite(self.moved)
        out = np.zeros(len(self.moved))
        if not doubtful.any():
            return out
        reach = 8.0 * float(self.moved[doubtful].max())
        at = np.linspace(-reach, reach, SAMPLES)
        changes = np.abs(np.diff(np.stack([self.line(float(t)) for t in at]), axis=0))
        stands = changes == 0
        often = np.count_nonzero(stands[1:] != stands[:-1], axis=0) >= ALTERNATIONS
        height = np.max(np.where(np.isfinite(changes), changes, 0.0), axis=0)
        return np.where(doubtful & often, height / self.step, out)
