"""Estimates the rounding noise in the values of a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.classes import dataclass

Array = NDArray[np.float64]
# Outputs, flat and one after the other, for inputs displaced by t along a line.
Line = Callable[[float], Array]

SAMPLES = 129
# A function that stands still and moves again and again this often has steps.
ALTERNATIONS = 4


def fourth_differences(line: Line, h: float) -> Array:
    """What each output is uncertain by, from a few values.

    Fourth differences of a smooth function over steps far below its scale are next to
    nothing, so that what is left of them is rounding (More and Wild, Estimating
    Computational Noise, SIAM J. Sci. Comput. 33, 2011).
    """
    values = np.stack([line(k * h / 64.0) for k in range(-4, 5)])
    fourth = np.diff(values, 4, axis=0)
    level = np.sqrt(np.mean(fourth * fourth, axis=0) / 70.0)  # 70 = 8! / (4! 4!)
    return np.asarray(np.where(np.isfinite(level), 4.0 * level, 0.0))


def side_noise(values: Array) -> Array:
    """What each output is uncertain by, from its values at equal steps to one side of a kink."""
    third = np.diff(values, 3, axis=0)
    level = np.sqrt(np.mean(third * third, axis=0) / 20.0)  # 20 = 6! / (3! 3!)
    return np.asarray(np.where(np.isfinite(level), 4.0 * level, 0.0))


def noise_level(value: Line, h: float, epsilon: float) -> float:
    """What rounding makes of a function's values close to t = 0.

    Differences of high order of a smooth function at close points are noise alone (More and
    Wild, Estimating computational noise, SIAM J. Sci. Comput. 33, 2011). A staircase is as
    high as its steps; infinite where there is no step from -h to h.
    """
    values = np.array([float(value(h * k / 4.0)[0]) for k in range(-4, 5)])
    distinct = len(np.unique(values))
    if distinct == 1:
        return float("inf")
    if distinct <= len(values) // 2:
        return float(np.ptp(values))
    noise = epsilon * float(np.abs(values).max())
    for spacing in (h / 16.0, h / 256.0):
        table = np.array([float(value(spacing * k)[0]) for k in range(-4, 5)])
        levels = []
        for order in range(1, 7):
            table = np.diff(table)
            gamma = factorial(order) ** 2 / factorial(2 * order)
            levels.append(float(np.sqrt(gamma * np.mean(table * table))))
        noise = max(noise, min(levels[3:]))
    return noise


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
