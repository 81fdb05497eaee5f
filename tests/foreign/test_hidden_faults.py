"""Faults that one element of an operation hides, because it is singular, chaotic or very large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from engine.autograd.tape.options import Options
from engine.foreign import check_operation
from tests.foreign.written import Written

SOFT = 1e-12
STEPS = 60


def field(d):
    return d / (d * d + SOFT) ** 1.5


def field_slope(d):
    r = d * d + SOFT
    return r**-1.5 - 3 * d * d * r**-2.5


def potential(d):
    return np.array(((d * d + SOFT) ** -0.5).sum())


def potential_slope(d):
    return -d * (d * d + SOFT) ** -1.5


def rates(x):
    a, r = np.full_like(x, 0.99), np.full_like(x, 0.01)
    a[0], r[0] = 0.0, 3.99
    return a, r


def logistic(x):
    a, r = rates(x)
    for _ in range(STEPS):
        x = a * x + r * x * (1 - x)
    return x


def logistic_slope(x):
    a, r = rates(x)
    slope = np.ones_like(x)
    for _ in range(STEPS):
        slope, x = slope * (a + r * (1 - 2 * x)), a * x + r * x * (1 - x)
    return slope


def weights(x):
    w = np.ones_like(x)
    w[0] = 1e8
    return w


def weighted(x):
    return np.array((weights(x) * np.sin(x)).sum())


def weighted_slope(x):
    return weights(x) * np.cos(x)


# A function, its slope, what it begins with, and the verdict where the gradient is right: the slope
# by a chaotic element is a number of which no digit is known.
CASES: dict[str, tuple[Callable, Callable, float | None, str]] = {
    "on its site beside a softened pole": (field, field_slope, 0.0, "pass"),
    "a sum with a point on its site": (potential, potential_slope, 0.0, "pass"),
    "a chaotic element": (logistic, logistic_slope, None, "inconclusive"),
    "a weight that outweighs all": (weighted, weighted_slope, None, "pass"),
}


def checked(case: str, size: int, seed: int, factor: float, where: slice) -> Sequence[Any]:
    f, slope, begin, _ = CASES[case]
    x = np.random.default_rng([seed, size]).uniform(0.2, 0.7, size)
    if begin is not None:
        x[0] = begin
    spoiled = np.ones(size)
    spoiled[where] = factor
    op = Written(lambda x: [f(x)], lambda x, w: [spoiled * slope(x[0]) * w[0]], x)
    return check_operation(op, Options(seed=seed)).pairs


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("size", [8, 300])
@pytest.mark.parametrize("case", CASES)
def test_a_right_gradient_is_not_accused(case: str, size: int, seed: int) -> None:
    (pair,) = checked(case, size, seed, 1.0, slice(None))
    assert pair.verdict == CASES[case][3], pair


@pytest.mark.parametrize("where", [slice(None), slice(1, None)], ids=["everywhere", "elsewhere"])
@pytest.mark.parametrize("factor", [0.01, 0.9, 1.01])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("size", [8, 300])
@pytest.mark.parametrize("case", CASES)
def test_a_wrong_one_is(case: str, size: int, seed: int, factor: float, where: slice) -> None:
    (pair,) = checked(case, size, seed, factor, where)
    assert pair.verdict == "fail", pair


def test_a_fault_at_a_branch_is_no_noise() -> None:
    x = np.array([0.5, 1.0, 2.0, 3.0])
    op = Written(lambda x: [x**2], lambda x, w: [np.where(x[0] == 1.0, 0.0, 2 * x[0]) * w[0]], x)
    assert check_operation(op).pairs[0].verdict == "fail"


def test_a_gradient_that_is_another_each_time_is_no_noise() -> None:
    draw = np.random.default_rng(0)
    op = Written(
        lambda x: [x**2], lambda x, w: [draw.uniform(1.0, 3.0) * x[0] * w[0]], [0.5, 1.0, 2.0]
    )
    assert check_operation(op).pairs[0].verdict == "fail"


@pytest.mark.parametrize("size", [8, 300])
def test_the_chaotic_element_is_named_and_the_others_are_judged(size: int) -> None:
    (pair,) = checked("a chaotic element", size, 0, 1.0, slice(None))
    assert pair.worst is not None and (pair.worst.row, pair.worst.col) == (0, 0)
    assert 0.0 < pair.max_rel_error < 1e-5 and "changes the function" in pair.reason
