"""Allowed errors, and refused settings."""

from __future__ import annotations

import math

import numpy as np
import pytest

import engine as wp
from engine.autograd.comparison.tolerance import (
    AUTO_FLOOR,
    AUTO_RTOL,
    TINY,
    Tolerance,
    largest,
    whole,
)


def test_what_was_given_is_the_formula() -> None:
    found = Tolerance(1e-4, 1e-3, 1e-2)
    assert found.literal and not found.auto
    np.testing.assert_allclose(found.of(np.array([0.0, -2.0]), 7.0), [1e-3, 1e-3 + 2e-2])


def test_what_was_left_out_goes_by_scale() -> None:
    found = Tolerance()
    assert found.auto and not found.literal
    allowed = found.of(np.array([0.0, 2.0]), 100.0)
    np.testing.assert_allclose(allowed, AUTO_FLOOR * 100.0 + TINY + AUTO_RTOL * np.array([0, 2.0]))


def test_coarse_values_are_allowed_what_they_can_tell() -> None:
    coarse = Tolerance(epsilon=float(np.finfo(np.float32).eps))
    assert coarse.of(np.ones(1), 1.0)[0] > 50 * Tolerance().of(np.ones(1), 1.0)[0]


@pytest.mark.parametrize(
    "given",
    [{"eps": 0.0}, {"eps": -1.0}, {"atol": -1e-9}, {"rtol": math.nan}, {"eps": "a"}],
)
def test_settings_that_mean_nothing(given) -> None:
    with pytest.raises(wp.LaunchError, match="E405"):
        Tolerance(**given)


def test_counts_are_whole_numbers() -> None:
    assert whole(np.int32(3), "max_inputs") == 3
    with pytest.raises(wp.LaunchError, match="max_inputs"):
        whole(1.5, "max_inputs")


def test_the_largest_finite_magnitude() -> None:
    assert largest(np.array([1.0, -3.0, math.inf, math.nan])) == 3.0
    assert largest(np.zeros(0)) == 0.0
