"""Functions that iterate until a float is small enough, with the derivative of the limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import LaunchResult, TapeResult, check_tape

D = wp.array(dtype=wp.float64)
SMALL = wp.constant(1.0e-6)


def kernel_of(root: Any, factor: float) -> Any:
    """A kernel of a function with the derivative of a square root, times a factor."""

    @wp.func_grad(root)
    def adj_root(a: wp.float64, adj_ret: wp.float64):
        wp.adjoint[a] += adj_ret * wp.float64(factor) / wp.sqrt(a)

    @wp.kernel
    def roots(a: D, y: D):
        i = wp.tid()
        y[i] = root(a[i])

    return roots


def newton(factor: float = 0.5) -> Any:
    @wp.func
    def root(a: wp.float64):
        x = a
        while wp.abs(x * x - a) > wp.float64(1.0e-5) * a:
            x = wp.float64(0.5) * (x + a / x)
        return x

    return kernel_of(root, factor)


@wp.func
def improved(x: wp.float64, a: wp.float64):
    return wp.float64(0.5) * (x + a / x)


def with_break() -> Any:
    @wp.func
    def root(a: wp.float64):
        x = a
        for _ in range(50):
            y = improved(x, a)
            if wp.abs(y - x) < wp.float64(SMALL):
                break
            x = y
        return x

    return kernel_of(root, 0.5)


def with_flag() -> Any:
    @wp.func
    def root(a: wp.float64):
        x = a
        done = bool(False)
        while not done:
            y = improved(x, a)
            done = wp.abs(y - x) < wp.float64(1.0e-6)
            x = y
        return x

    return kernel_of(root, 0.5)


def in_another_function() -> Any:
    @wp.func
    def iterate(a: wp.float64, tolerance: wp.float64):
        x = a
        while wp.abs(x * x - a) > tolerance:
            x = improved(x, a)
        return x

    @wp.func
    def root(a: wp.float64):
        return iterate(a, wp.float64(1.0e-5))

    return kernel_of(root, 0.5)


def coarse() -> Any:
    @wp.func
    def root(a: wp.float64):
        x = a
        while wp.abs(x * x - a) > wp.float64(1.0e-3):
            x = improved(x, a)
        return x

    return kernel_of(root, 0.5)


def counted() -> Any:
    @wp.func
    def root(a: wp.float64):
        x = a
        k = 0
        while k < 8:
            x = improved(x, a)
            if x < wp.float64(1.0e-3):
                x = wp.float64(1.0e-3)
            k += 1
        return x

    return kernel_of(root, 0.5)


def checked(kernel: Any, **options: Any) -> TapeResult:
    a = wp.array(np.linspace(0.5, 9.0, 8), dtype=wp.float64, requires_grad=True)
    y = wp.zeros(8, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=8, inputs=[a], outputs=[y])
    return check_tape(tape, **options)


def launch_of(kernel: Any, **options: Any) -> LaunchResult:
    (launch,) = checked(kernel, **options).launches
    return launch


@pytest.mark.parametrize(
    ("made", "left"),
    [(newton, 1e-3), (with_break, 1e-4), (with_flag, 1e-4), (in_another_function, 1e-3),
     (coarse, 1e-2)],
)  # fmt: skip
def test_loops_that_floats_end_are_found(made: Any, left: float) -> None:
    ((name, error),) = launch_of(made()).iterated
    assert name == "root" and error == pytest.approx(left)


def test_counted_loops_leave_nothing() -> None:
    launch = launch_of(counted())
    assert not launch.iterated and {p.verdict for p in launch.pairs} == {"pass"}


def test_a_relative_tolerance_accepts_the_derivative_of_the_limit() -> None:
    launch = launch_of(newton())
    ((_, left),) = launch.iterated
    assert {p.verdict for p in launch.pairs} == {"fail"}
    assert max(p.max_rel_error for p in launch.pairs) < left
    assert checked(newton(), rtol=left).passed


@pytest.mark.parametrize("factor", [1.0, -0.5, 0.505])
def test_it_accepts_no_wrong_derivative(factor: float) -> None:
    launch = launch_of(newton(factor), rtol=1e-3)
    assert {p.verdict for p in launch.pairs} == {"fail"}
