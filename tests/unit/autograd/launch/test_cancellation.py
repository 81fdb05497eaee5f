"""Derivatives written by hand because those by the rules lose digits: where numbers cancel.

Differences of such a function, and its derivative by the rules, are both spoilt by rounding inside
of it; the derivative that a user wrote is the best of the three.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape

D = wp.float64
A = wp.array(dtype=wp.float64)


@wp.func
def growth(x: D, factor: D):
    return (wp.exp(x) - D(1.0)) / x


@wp.func_grad(growth)
def adj_growth(x: D, factor: D, adj_ret: D):
    series = D(0.5) + x / D(3.0) + x * x / D(8.0) + x * x * x / D(30.0)
    wp.adjoint[x] += factor * series * adj_ret


@wp.func
def versine(x: D, factor: D):
    return (D(1.0) - wp.cos(x)) / (x * x)


@wp.func_grad(versine)
def adj_versine(x: D, factor: D, adj_ret: D):
    wp.adjoint[x] += factor * (-x / D(12.0) + x * x * x / D(180.0)) * adj_ret


@wp.func
def share(x: D, factor: D):
    return x / (x - D(0.99999) * x)


@wp.func_grad(share)
def adj_share(x: D, factor: D, adj_ret: D):
    wp.adjoint[x] += (factor - D(1.0)) * adj_ret


@wp.func
def gap(x: D, factor: D):
    return D(1e6) * (wp.sqrt(D(1.0) + x) - D(1.0))


@wp.func_grad(gap)
def adj_gap(x: D, factor: D, adj_ret: D):
    wp.adjoint[x] += factor * D(0.5e6) / wp.sqrt(D(1.0) + x) * adj_ret


@wp.func
def bernoulli(x: D, factor: D):
    return x / (wp.exp(x) - D(1.0))


@wp.func_grad(bernoulli)
def adj_bernoulli(x: D, factor: D, adj_ret: D):
    wp.adjoint[x] += factor * (x / D(6.0) - D(0.5)) * adj_ret


@wp.func
def slope(x: D, factor: D):
    return (D(1.0) - wp.cos(x)) / (x * x)


@wp.func_grad(slope)
def adj_slope(x: D, factor: D, adj_ret: D):
    wp.adjoint[x] += factor * (x * x * x / D(180.0) - x / D(12.0)) * adj_ret


@wp.func
def large(x: D, factor: D):
    return wp.log(x + wp.sqrt(x * x + D(1.0)))


@wp.func_grad(large)
def adj_large(x: D, factor: D, adj_ret: D):
    wp.adjoint[x] += factor / wp.sqrt(x * x + D(1.0)) * adj_ret


@wp.func
def border(x: D, factor: D):
    return wp.log(x + wp.sqrt(x * x - D(1.0)))


@wp.func_grad(border)
def adj_border(x: D, factor: D, adj_ret: D):
    wp.adjoint[x] += factor / wp.sqrt(x * x - D(1.0)) * adj_ret


@wp.kernel
def noisy(f: int, x: A, factor: D, y: A):
    i = wp.tid()
    if f == 0:
        y[i] = bernoulli(x[i], factor)
    elif f == 1:
        y[i] = slope(x[i], factor)
    elif f == 2:
        y[i] = large(x[i], factor)
    else:
        y[i] = border(x[i], factor)


@wp.kernel
def entries(f: int, x: A, factor: D, y: A):
    i = wp.tid()
    if f == 0:
        y[i] = growth(x[i], factor) + x[i]
    elif f == 1:
        y[i] = versine(x[i], factor) + x[i]
    elif f == 2:
        y[i] = share(x[i], factor) + x[i]
    else:
        y[i] = gap(x[i], factor) + x[i]


@wp.kernel
def total(f: int, x: A, factor: D, y: A):
    i = wp.tid()
    if f == 0:
        wp.atomic_add(y, 0, growth(x[i], factor))
    elif f == 1:
        wp.atomic_add(y, 0, versine(x[i], factor) + x[i])
    elif f == 2:
        wp.atomic_add(y, 0, share(x[i], factor) + x[i])
    else:
        wp.atomic_add(y, 0, gap(x[i], factor))


FUNCTIONS = ("growth", "versine", "share", "gap")


def verdicts(kernel: Any, f: int, size: float, factor: float) -> set[str]:
    rng = np.random.default_rng(7)
    return verdicts_at(
        kernel, f, size * rng.uniform(0.5, 2.0, 6) * rng.choice([-1.0, 1.0], 6), factor
    )


def verdicts_at(kernel: Any, f: int, values: Any, factor: float) -> set[str]:
    x = wp.array(values, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(len(values), dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=len(values), inputs=[f, x, factor], outputs=[y])
    tape.backward(grads={y: wp.ones(len(values), dtype=wp.float64)})
    found = check_tape(tape)
    assert found.whole is not None
    return {p.verdict for launch in found.launches for p in launch.pairs} | {found.whole.verdict}


# Sizes of inputs at which it can be told: above, the series ends; below, all is rounding.
SIZES = {
    "growth": (1e-2, 1e-4, 1e-6), "versine": (1e-1, 1e-2, 1e-3), "share": (1.0, 1e-2, 1e-4),
    "gap": (1e-1, 1e-3, 1e-6),
}  # fmt: skip
CASES = pytest.mark.parametrize(
    ("f", "size"), [(k, x) for k, name in enumerate(FUNCTIONS) for x in SIZES[name]],
    ids=[f"{name}-{x:g}" for name in FUNCTIONS for x in SIZES[name]],
)  # fmt: skip
KERNELS = pytest.mark.parametrize("kernel", [entries, total], ids=lambda k: k.key)


@KERNELS
@CASES
def test_a_better_derivative_than_that_by_the_rules_is_not_called_wrong(
    kernel: Any, f: int, size: float
) -> None:
    assert "fail" not in verdicts(kernel, f, size, 1.0)


@KERNELS
@pytest.mark.parametrize("factor", [-1.0, 0.5, 1.1, 2.0])
@CASES
def test_a_worse_one_is(kernel: Any, f: int, size: float, factor: float) -> None:
    assert "fail" in verdicts(kernel, f, size, factor)


# Where forward mode has few digits left, and differences tell what it does not.
NOISY = pytest.mark.parametrize(
    ("f", "value"),
    [(0, 1.3952532984909735e-07), (0, 4.5143531853953927e-07), (1, 4.73e-4), (1, 4.107e-4),
     (1, 9e-4), (2, -1e5), (2, -896332.1442411131)],
)  # fmt: skip


@NOISY
def test_right_ones_where_forward_mode_is_spoilt(f: int, value: float) -> None:
    assert "fail" not in verdicts_at(noisy, f, [value], 1.0)


@NOISY
@pytest.mark.parametrize("factor", [0.9, 0.93, 1.05, 1.1, 2.0, -1.0, 0.0])
def test_wrong_ones_where_forward_mode_is_spoilt(f: int, value: float, factor: float) -> None:
    assert "fail" in verdicts_at(noisy, f, [value], factor)


@pytest.mark.parametrize("factor", [1.0, 0.0, -1.0, 1.1])
def test_at_the_border_of_a_domain_nothing_passes_unseen(factor: float) -> None:
    """Most steps leave the domain, so that no difference is a number."""
    found = verdicts_at(noisy, 3, [1.0000001], factor)
    assert found <= {"inconclusive", "fail"} and ("fail" not in found or factor != 1.0)
