"""Bodies of derivative functions, which kernels call by `grad(f)`."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine import ad
from engine.ir import nodes as n
from tests.unit.ad.kernels import ran, statements


@wp.func
def smooth(a: float, b: float):
    return wp.sin(a) * b * b


@wp.func
def looped(a: float, b: float):
    s = float(0.0)
    for k in range(3):
        s = s * a + b
    return s


@wp.kernel
def straight(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    da, db = wp.grad(smooth)(x[i], 1.5)
    y[i] = da + 10.0 * db


@wp.kernel
def with_loop(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    da, db = wp.grad(looped)(x[i], 1.5)
    y[i] = da + 10.0 * db


@wp.kernel
def none(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = smooth(x[i], 1.5)


X = np.linspace(-1.0, 1.0, 5)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (straight, np.cos(X) * 1.5**2 + 10 * np.sin(X) * 3.0),
        (with_loop, 1.5 * (2 * X + 1) + 10 * (X * X + X + 1)),
    ],
    ids=["straight", "with a loop"],
)
def test_the_derivative_by_every_float(kernel, expected: np.ndarray) -> None:
    out = ad.derivatives(kernel.ir)
    _, y = ran(out, 5, X.astype(np.float32), np.zeros(5, np.float32))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_code_without_loops_is_differentiated_in_reverse() -> None:
    """The other way calls the tangent of the function, once for each float."""

    def inner_calls(kernel) -> int:
        made = [f for f in n.callees(ad.derivatives(kernel.ir)) if f.name.startswith("grad_")]
        assert made
        return sum(len(statements(f, n.Call)) for f in made)

    assert inner_calls(straight) == 0 and inner_calls(with_loop) > 0


def test_a_kernel_that_calls_none_is_itself() -> None:
    assert ad.derivatives(none.ir) is none.ir
