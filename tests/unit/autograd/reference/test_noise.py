"""Rounding of values is measured, not guessed."""

from __future__ import annotations

import numpy as np
import pytest

from engine.autograd.reference.noise import Stairs, fourth_differences, noise_level

SINGLE = float(np.finfo(np.float32).eps)


def rounded(size: float):
    """A function with a large summand, which absorbs most of its digits."""
    return lambda t: np.asarray([np.float32(np.float32(size) + np.sin(0.7 + t))], np.float64)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e5])
def test_noise_is_that_of_the_largest_number_inside(size) -> None:
    unit = SINGLE * size
    h = max(1e-2, 640 * unit)  # points far enough from each other to be rounded differently
    for found in (fourth_differences(rounded(size), h)[0], noise_level(rounded(size), h, SINGLE)):
        assert 0.05 * unit <= found <= 20 * unit


def test_smooth_values_have_none() -> None:
    assert fourth_differences(lambda t: np.asarray([np.sin(0.7 + t)]), 1e-3)[0] < 1e-14


def test_a_number_that_stands_still_is_all_noise() -> None:
    assert noise_level(lambda t: np.ones(1), 1e-3, SINGLE) == np.inf


def test_stairs_are_noticed() -> None:
    def stair(t: float):
        return np.asarray([np.floor(100 * t) / 100, t])

    stairs = Stairs(stair)
    stairs.look(0.05, np.array([True, True]), [stair(0.0), stair(0.05), stair(-0.05)])
    stairs.look(1e-3, np.array([True, True]), [stair(1e-9), stair(1e-3), stair(1e-3)])
    step, smooth = stairs.bound()
    assert step > 1.0 and smooth == 0.0
