"""Differences and their own error, against derivatives that are known."""

from __future__ import annotations

import numpy as np
import pytest

from engine.autograd.reference import differences
from engine.autograd.reference.differences import (
    FLOAT64,
    Slope,
    fixed,
    nearer,
    one_sided,
    remeasured,
    slope,
    working_precision,
)

CASES = [
    pytest.param(np.sin, np.cos, 0.7, id="sin"),
    pytest.param(np.exp, np.exp, 3.0, id="exp"),
    pytest.param(lambda x: np.sin(300 * x), lambda x: 300 * np.cos(300 * x), 0.7, id="fast"),
    pytest.param(lambda x: x**7, lambda x: 7 * x**6, 1e-3, id="flat"),
    pytest.param(lambda x: 1 / x, lambda x: -1 / x**2, 1e-4, id="near a pole"),
    pytest.param(lambda x: 1e8 + np.sin(x), np.cos, 0.7, id="beside something large"),
]


def line(f, x):
    return lambda t: np.asarray([f(x + t)])


def tolerance(d):
    return 1e-5 * np.abs(d)


@pytest.mark.parametrize(("f", "derivative", "x"), CASES)
def test_the_error_is_no_larger_than_it_says(f, derivative, x) -> None:
    found = slope(line(f, x), abs(x), tolerance)
    true = derivative(x)
    assert abs(found.value[0] - true) <= found.error[0] + 1e-12 * abs(true)
    assert abs(found.value[0] - true) <= 1e-6 * abs(true)


def test_every_output_has_the_step_that_suits_it() -> None:
    both = slope(lambda t: np.array([np.sin(1.0 + t), np.sin(1e4 * (1.0 + t))]), 1.0, tolerance)
    np.testing.assert_allclose(both.value, [np.cos(1.0), 1e4 * np.cos(1e4)], rtol=1e-6)


def test_a_jump_at_the_point_is_no_slope() -> None:
    found = slope(line(np.sign, 0.0), 1.0, tolerance)
    assert found.error[0] > 1.0 or not np.isfinite(found.error[0])


STILL = {
    "constant": lambda x: np.full_like(x, 3.0),
    "zero": lambda x: 0.0 * x,
    "far away": lambda x: 3.0 + np.maximum(0.0, x - 5.0),
    "two-sided": lambda x: np.maximum(0.0, np.abs(x) - 40.0) ** 2,
    "steps": lambda x: 3.0 + np.floor(x / 7.0),
    "back again": lambda x: 3.0 + np.where((x > 4.0) & (x < 9.0), 1.0, 0.0),
    "hidden": lambda x: 1e13 + 1e-3 * x,
    "hidden and bent": lambda x: 1e13 + 1e-3 * np.sin(x),
    "hidden, then a jump": lambda x: 1e13 + 1e-3 * x + np.where(x > 300.0, 1e6, 0.0),
    "lost": lambda x: 1e30 + x,
}


@pytest.mark.parametrize("name", STILL)
def test_what_does_not_move_is_seen_in_few_steps(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    asked: list[float] = []

    def counted(t):
        asked.append(t)
        return np.asarray([STILL[name](np.float64(1.0) + t)])

    found = slope(counted, 1.0, tolerance)
    few = len(asked)
    monkeypatch.setattr(differences, "_still", lambda *a: None)
    asked.clear()
    known = slope(counted, 1.0, tolerance)
    assert found.value == known.value
    assert known.error <= found.error < np.inf  # never surer than with all steps
    assert few <= len(asked) or known.value != 0


def test_single_precision_knows_how_coarse_it_is() -> None:
    single = working_precision(float(np.finfo(np.float32).eps))
    assert single.coarse and not FLOAT64.coarse and working_precision(0.0) is FLOAT64

    def f(t):
        return np.asarray([np.float32(np.sin(np.float32(0.7 + t)))], np.float64)

    found = slope(f, 1.0, tolerance, single)
    assert abs(found.value[0] - np.cos(0.7)) <= found.error[0]
    assert 1e-9 < found.error[0] < 1e-2


def test_one_step_is_taken_at_its_word() -> None:
    found = fixed(line(lambda x: x**3, 1.0), 0.5)
    assert found.value[0] == pytest.approx(3.25) and found.error[0] == 0.0


def test_the_two_sides_of_a_kink() -> None:
    right, left, noise = one_sided(line(np.abs, 0.0), 1.0)
    assert (right[0], left[0]) == pytest.approx((1.0, -1.0)) and noise[0] < 1e-6


def test_of_two_searches_the_nearer_one_may_contradict() -> None:
    wide = Slope(np.array([1.0, 1.0, 1.0]), np.array([1e-6, 1e-6, np.inf]))
    near = Slope(np.array([2.0, 1.0, 3.0]), np.array([1e-3, 1e-3, 1e-3]))
    np.testing.assert_array_equal(nearer(wide, near).value, [2.0, 1.0, 3.0])


def test_a_number_that_does_not_move_is_not_known() -> None:
    value, error = remeasured(line(lambda x: 1e30 + 0 * x, 1.0), 1.0, FLOAT64)
    assert np.isnan(value) and np.isinf(error)
    value, error = remeasured(line(np.sin, 0.7), 1.0, FLOAT64)
    assert abs(value - np.cos(0.7)) <= error < 1e-6
