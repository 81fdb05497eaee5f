"""Slopes over many steps, in float32, and the verdicts that they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.autograd.comparison.convergence import judge_slopes
from engine.autograd.reference.step_sweep import step_sizes, sweep

SINGLE = np.finfo(np.float32)
RTOL = 1e-4


def verdict(f: Callable[[Any], Any], x: float, adjoint: float) -> tuple[str, float]:
    """f: evaluated in float32."""
    start = np.float32(x)

    def line(t: float) -> tuple[float, Any]:
        moved = np.float32(float(start) + t)
        return float(moved) - float(start), np.asarray([f(moved)], np.float64)

    sizes = step_sizes(x, 1.0, float(SINGLE.eps))
    with np.errstate(all="ignore"):
        found = sweep(line, sizes, float(SINGLE.eps), float(SINGLE.smallest_subnormal), 0.0,
                      np.arange(1))  # fmt: skip
    allowed = np.array([RTOL * abs(adjoint)])
    judgements, slopes = judge_slopes(found, np.array([adjoint]), allowed, RTOL)
    return judgements[0].verdict, float(slopes[0])


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (np.sin, 0.7, np.cos(0.7)),
        (lambda x: np.exp(np.float32(30) * x), 0.5, 30 * np.exp(15.0)),
        (lambda x: np.float32(1) / x, 1e-3, -1e6),
        (lambda x: x * x * x, 1.0, 3.0),
    ],
)
def test_smooth_functions(f, x, slope) -> None:
    assert verdict(f, x, slope)[0] == "pass"
    for factor in (0.0, 0.5, -1.0, 2.0):
        said, found = verdict(f, x, factor * slope)
        assert said == "fail" and abs(found - slope) <= 0.05 * abs(slope)


@pytest.mark.parametrize("adjoint", [-1.0, -0.2, 0.3, 1.0])
def test_any_slope_between_two_sides_of_a_kink(adjoint) -> None:
    assert verdict(np.abs, 0.0, adjoint)[0] == "kink"


def test_a_slope_beyond_both_sides_of_a_kink_is_not_excused() -> None:
    assert verdict(np.abs, 0.0, 3.0)[0] != "kink"


def test_noise_alone_tells_nothing() -> None:
    rng = np.random.default_rng(0)
    assert verdict(lambda x: np.float32(rng.normal()), 1.0, 5.0)[0] == "inconclusive"


def test_steps_go_from_large_to_small_and_reach_the_last_digits() -> None:
    sizes = step_sizes(2.0, 1.0, float(SINGLE.eps))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= 0.5 and sizes[-1] < 1e3 * float(SINGLE.eps)
