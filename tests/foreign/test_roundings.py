"""Right functions whose values are rounded inside, and faults that such rounding does not hide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.foreign import check_operation
from tests.foreign.written import Written

erf = np.vectorize(math.erf)
C = math.sqrt(2 / math.pi)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_back(x, w):
    y = softmax(x)
    return y * (w - (w * y).sum(-1, keepdims=True))


def gelu_by_tanh(x):
    return 0.5 * x * (1 + np.tanh(C * (x + 0.044715 * x**3)))


def gelu_by_tanh_back(x, w):
    t = np.tanh(C * (x + 0.044715 * x**3))
    return w * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * C * (1 + 3 * 0.044715 * x * x))


def gelu_by_erf(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_by_erf_back(x, w):
    return w * (0.5 * (1 + erf(x / math.sqrt(2))) + 0.5 * x * C * np.exp(-x * x / 2))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def covered(u):
    return 1 - np.prod(1 - sigmoid(u), axis=0)


def covered_back(u, w):
    s = sigmoid(u)
    others = np.stack([np.prod(np.delete(1 - s, k, 0), axis=0) for k in range(len(s))])
    return w * others * s * (1 - s)


def softplus(x):
    return np.log(1 + np.exp(x))


def normal(scale, *shape):
    return lambda rng: scale * rng.standard_normal(shape)


FUNCTIONS = {
    "softmax": (softmax, softmax_back),
    "gelu by tanh": (gelu_by_tanh, gelu_by_tanh_back),
    "gelu by erf": (gelu_by_erf, gelu_by_erf_back),
    "covered": (covered, covered_back),
    "softplus": (softplus, lambda x, w: w * sigmoid(x)),
}
CASES = {
    "softmax, confident": ("softmax", lambda rng: np.array([[0.0, 1.0, 40.0], [0.0, 100.0, 3.0]])),
    "softmax, large": ("softmax", normal(20.0, 40, 6)),
    "gelu by tanh, far left": ("gelu by tanh", lambda rng: np.array([1.0, 0.5, -5.5, -6.0])),
    "gelu by tanh": ("gelu by tanh", normal(3.0, 20)),
    "gelu by tanh, large": ("gelu by tanh", normal(3.0, 300)),
    "gelu by erf, far left": ("gelu by erf", lambda rng: np.array([1.0, 0.5, -5.5, -6.0])),
    "gelu by erf, large": ("gelu by erf", normal(4.0, 300)),
    "covered, hardly": (
        "covered", lambda rng: np.array([[-20.0, 0.5, -1.0, 20.0], [-30.0, 1.0, -27.0, -3.0]]),
    ),
    "covered, large": ("covered", normal(10.0, 3, 100)),
    "softplus, large": ("softplus", normal(5.0, 300)),
}  # fmt: skip


def verdict(case: str, seed: int, factor: float, dtype: str) -> str:
    name, begin = CASES[case]
    f, back = FUNCTIONS[name]
    x = begin(np.random.default_rng([seed, 5]))
    op = Written(lambda x: [f(x)], lambda x, w: [factor * back(x[0], w[0])], x, dtype=dtype)
    return check_operation(op).pairs[0].verdict


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("case", CASES)
def test_right_ones_are_not_accused(case: str, seed: int, dtype: str) -> None:
    assert verdict(case, seed, 1.0, dtype) == "pass"


@pytest.mark.parametrize("factor", [1.01, -1.0])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_wrong_ones_are_found(case: str, seed: int, factor: float) -> None:
    assert verdict(case, seed, factor, "float64") == "fail"


@pytest.mark.parametrize("large", [1.0, 1e3, 1e5, 1e6])
def test_small_parts_of_a_sum_are_judged_beside_a_large_one(large: float) -> None:
    op = Written(
        lambda x: [np.array((x * x).sum())],
        lambda x, w: [np.where(np.abs(x[0]) < 10.0, 3.0, 2.0) * x[0] * w[0]],
        [10.0 * large, 1.0, 2.0, 3.0],
    )
    assert check_operation(op).pairs[0].verdict == "fail"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factor, expected", [(1.0, "kink"), (1.01, "fail")])
def test_one_row_at_a_kink_hides_no_fault_of_others(factor, expected, seed) -> None:
    def back(x, w):
        n = np.linalg.norm(x, axis=-1)
        return factor * np.where(n > 0, w / np.maximum(n, 1e-30), 0.0)[:, None] * x

    x = np.random.default_rng([seed, 6]).standard_normal((80, 3))
    x[2] = 0.0
    op = Written(lambda x: [np.linalg.norm(x, axis=-1)], lambda x, w: [back(x[0], w[0])], x)
    found = check_operation(op).pairs[0].verdict
    assert found == expected or (factor == 1.0 and found == "pass")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [20, 300])
def test_not_linear_where_values_have_all_sizes(size: int, seed: int) -> None:
    def back(x, w):
        t = w / x
        return np.where(np.abs(t) < 0.05 * np.abs(t).max(), 1.5 * t, t)

    x = 10 ** (3 * np.random.default_rng([seed, 7]).standard_normal(size))
    op = Written(lambda x: [np.log(x)], lambda x, w: [back(x[0], w[0])], x)
    assert check_operation(op).pairs[0].verdict == "fail"


@pytest.mark.parametrize("seed", range(5))
def test_half_of_the_elements_are_wrong_beside_a_large_one(seed: int) -> None:
    x = np.random.default_rng([seed, 8]).standard_normal(200)
    x[::2] *= 1e-6
    x[7] = 1e8
    op = Written(
        lambda x: [x * x],
        lambda x, w: [np.where(np.abs(x[0]) < 1e-4, 3.0, 2.0) * x[0] * w[0]],
        x,
    )
    assert check_operation(op).pairs[0].verdict == "fail"
