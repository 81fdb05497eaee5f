"""The check of an operation of any framework: here of NumPy functions with written gradients."""

from __future__ import annotations

import numpy as np
import pytest

from engine.foreign import OperationFailed, check_operation
from tests.foreign.written import Written

RNG = np.random.default_rng(11)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def softmax_back(x, w):
    s = softmax(x[0])
    return [s * (w[0] - (w[0] * s).sum())]


def single(x):
    return np.sin(x.astype(np.float32)).astype(x.dtype)


CASES = {
    "cube": (lambda x: [x**3], lambda x, w: [3 * x[0] ** 2 * w[0]], 1, "pass"),
    "cube, too large": (lambda x: [x**3], lambda x, w: [3.003 * x[0] ** 2 * w[0]], 1, "fail"),
    "cube, sign": (lambda x: [x**3], lambda x, w: [-3 * x[0] ** 2 * w[0]], 1, "fail"),
    "product": (lambda x, y: [x * y], lambda x, w: [x[1] * w[0], x[0] * w[0]], 2, "pass"),
    "product, swapped": (lambda x, y: [x * y], lambda x, w: [x[0] * w[0], x[1] * w[0]], 2, "fail"),
    "product, None": (lambda x, y: [x * y], lambda x, w: [x[1] * w[0], None], 2, "fail"),
    "softmax": (lambda x: [softmax(x)], softmax_back, 1, "pass"),
    "sum of softmax": (
        lambda x: [softmax(x).sum()],
        lambda x, w: softmax_back(x, [np.full_like(x[0], w[0])]), 1, "pass",
    ),
    "two outputs": (
        lambda x: [np.sin(x), x.sum()], lambda x, w: [np.cos(x[0]) * w[0] + w[1]], 1, "pass",
    ),
    "two outputs, one forgotten": (
        lambda x: [np.sin(x), x.sum()], lambda x, w: [np.cos(x[0]) * w[0]], 1, "fail",
    ),
    "rounded inside": (lambda x: [single(x)], lambda x, w: [np.cos(x[0]) * w[0]], 1, "pass"),
    "rounded inside, wrong": (
        lambda x: [single(x)], lambda x, w: [1.01 * np.cos(x[0]) * w[0]], 1, "fail",
    ),
    "rounding as identity": (lambda x: [np.round(x)], lambda x, w: [w[0]], 1, "fail"),
    "small and large": (
        lambda x, y: [np.sin(1e-6 * x) * (1e6 * y)],
        lambda x, w: [np.cos(1e-6 * x[0]) * x[1] * w[0], np.sin(1e-6 * x[0]) * 1e6 * w[0]],
        2, "pass",
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [6, 3000])
@pytest.mark.parametrize("case", CASES)
def test_right_ones_pass_and_wrong_ones_fail(case, size, dtype) -> None:
    f, g, count, expected = CASES[case]
    xs = [RNG.standard_normal(size) for _ in range(count)]
    result = check_operation(Written(f, g, *xs, dtype=dtype))
    worst = "fail" if any(p.verdict == "fail" for p in result.pairs) else "pass"
    assert worst == expected, result.pairs
    if expected == "pass":
        assert all(p.verdict == "pass" for p in result.pairs), result.pairs
    assert result.by_hand.missing == (("y",) if case == "product, None" else ())


@pytest.mark.parametrize("size", [6, 3000])
@pytest.mark.parametrize("scale, expected", [(1.0, "kink"), (1.1, "fail")])
def test_corners_are_no_errors_and_hide_none(scale, expected, size) -> None:
    x = np.round(RNG.standard_normal(size))  # many exact zeros
    op = Written(
        lambda x: [np.maximum(x, 0)], lambda x, w: [(x[0] > 0) * scale * w[0]], x, dtype="float32"
    )
    assert check_operation(op).pairs[0].verdict == expected


def test_the_entry_that_is_wrong_is_named_in_a_large_one() -> None:
    def back(x, w):
        g = np.cos(x[0]) * w[0]
        g[1234] *= 1.01
        return [g]

    x = np.linspace(-2.0, 2.0, 5000)
    worst = check_operation(Written(lambda x: [np.sin(x)], back, x)).pairs[0].worst
    assert (worst.row_name, worst.col_name) == ("out0[1234]", "x[1234]")
    assert worst.oracle == pytest.approx(np.cos(x[1234]), rel=1e-7)
    assert worst.ad == pytest.approx(1.01 * worst.oracle, rel=1e-6)


@pytest.mark.parametrize("draw", range(20))
def test_a_derivative_that_is_zero_up_to_rounding_never_fails(draw) -> None:
    """In float32 all that there is of it is rounding, which may be the verdict."""
    f, g, _, _ = CASES["sum of softmax"]
    (pair,) = check_operation(Written(f, g, RNG.standard_normal(6), dtype="float32")).pairs
    assert pair.verdict in ("pass", "rounding")


@pytest.mark.parametrize("size", [5, 3000])
def test_a_gradient_that_is_not_finite(size) -> None:
    x = np.maximum(RNG.standard_normal(size), 0.0)
    x[1] = 0.0
    op = Written(lambda x: [np.sqrt(x)], lambda x, w: [0.5 * w[0] / np.sqrt(x[0])], x)
    assert check_operation(op).pairs[0].verdict == "nan"


def test_what_was_given_nan_is_not_judged() -> None:
    op = Written(lambda x: [x**2], lambda x, w: [2 * x[0] * w[0]], [1.0, np.nan])
    pair = check_operation(op).pairs[0]
    assert pair.verdict == "inconclusive" and "holds NaN or Inf" in pair.reason


def test_what_gives_other_results_each_time() -> None:
    draw = np.random.default_rng(0)
    op = Written(lambda x: [x * draw.random()], lambda x, w: [w[0]], [1.0, 2.0])
    assert check_operation(op).pairs[0].verdict == "nondeterministic"


def test_what_has_changed_since_is_not_judged() -> None:
    scale = [1.0]
    op = Written(lambda x: [x * scale[0]], lambda x, w: [w[0] * scale[0]], [1.0, 2.0])
    scale[0] = 2.0
    pair = check_operation(op).pairs[0]
    assert pair.verdict == "inconclusive" and "has changed" in pair.reason


def test_what_cannot_be_run_again_is_not_judged() -> None:
    class Failing(Written):
        def primal(self, inputs, lifted):
            raise OperationFailed("it wants more")

    op = Failing(lambda x: [x], lambda x, w: [w[0]], [1.0])
    pair = check_operation(op).pairs[0]
    assert pair.verdict == "inconclusive" and "it wants more" in pair.reason


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("large", [1.0, 1e3, 1e6])
def test_a_small_element_that_is_another_each_time(large: float, dtype: str) -> None:
    draw, s = np.random.default_rng(0), np.array([large, 1.0, 1.0])
    noisy = np.array([0.0, 0.1, 0.0])
    op = Written(
        lambda x: [s * x * (1 + noisy * draw.random())], lambda x, w: [s * w[0]],
        [1.0, 2.0, 3.0], dtype=dtype,
    )  # fmt: skip
    assert check_operation(op).pairs[0].verdict == "nondeterministic"


@pytest.mark.parametrize("factor", [0.0, 0.5, -1.0, 3.0])
def test_what_is_clearly_wrong_is_told_by_few_values(factor) -> None:
    """Many values measure how a function is rounded, which excuses no gradient that is far off."""
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return [x**3 + np.sin(x)]

    def g(x, w):
        return [factor * (3 * x[0] ** 2 + np.cos(x[0])) * w[0]]

    result = check_operation(Written(f, g, np.array([0.7, 1.1, 2.3])))
    assert result.pairs[0].verdict == "fail"
    assert calls < 250
