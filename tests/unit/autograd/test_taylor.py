"""The remainder test: right derivatives converge with the rates of theory, wrong ones do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import Remainders, check_tape, taylor_test
from engine.autograd.reference.remainders import remainders
from engine.diagnostics import LaunchError

F = wp.array(dtype=float)


@wp.func
def cube(x: float):
    return x * x * x


@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 3.001 * x * x * adj_ret


@wp.kernel
def waves(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * wp.exp(x[i])


@wp.kernel
def total(y: F, loss: F):
    i = wp.tid()
    wp.atomic_add(loss, 0, y[i] * y[i] * y[i])


@wp.kernel
def cubes_by_hand(x: F, y: F):
    i = wp.tid()
    y[i] = cube(x[i])


@wp.kernel
def line(x: F, y: F):
    i = wp.tid()
    y[i] = 3.0 * x[i] + 1.0


def taped(*kernels: Any) -> tuple[wp.Tape, Any]:
    x = wp.array(np.linspace(0.4, 1.9, 6), dtype=float, requires_grad=True)
    start = x
    with wp.Tape() as tape:
        for k in kernels:
            y = wp.zeros(1 if k is total else 6, dtype=float, requires_grad=True)
            wp.launch(k, 6, [x], [y])
            x = y
    return tape, start


def clear(r: Remainders) -> list[Any]:
    return [row for row in r.rows if not row.rounding]


@pytest.mark.parametrize("order", [1, 2])
def test_right_derivatives_converge_as_theory_says(order: int) -> None:
    tape, x = taped(waves, total)
    before = x.numpy().copy()
    found = taylor_test(tape, order=order)
    assert [(r.launch, r.direction) for r in found] == [
        (launch, k) for launch in (0, 1, -1) for k in (0, 1)
    ]
    for r in found:
        assert r.verdict == "pass" and len(clear(r)) >= 3
        assert r.rate == pytest.approx(order + 1, abs=0.1)
        assert [row.rounding for row in r.rows] == sorted(row.rounding for row in r.rows)
        for row in clear(r)[1:]:
            assert row.rate_zeroth == pytest.approx(1.0, abs=0.1)
            assert row.rate_first == pytest.approx(2.0, abs=0.1)
            assert row.zeroth > row.first > r.floor > 0
            assert np.isnan(row.second) == (order == 1)
    assert np.array_equal(x.numpy(), before)


@pytest.mark.parametrize("order", [1, 2])
def test_a_wrong_derivative_has_a_lower_rate(order: int) -> None:
    tape, _ = taped(cubes_by_hand)
    for r in taylor_test(tape, order=order):
        assert r.verdict == "fail" and r.rate < order + 0.5
        assert clear(r)[-1].rate_first == pytest.approx(1.0, abs=0.1)


def test_nothing_is_left_of_a_line() -> None:
    tape, _ = taped(line)
    for r in taylor_test(tape):
        assert (r.verdict, r.rows) == ("pass", ()) and np.isnan(r.rate) and "rounding" in r.reason


def test_what_cannot_be_tested_says_why() -> None:
    x, y = (wp.zeros(6, dtype=float) for _ in range(2))
    with wp.Tape() as tape:
        wp.launch(waves, 6, [x], [y])
    found = taylor_test(tape)
    assert found and all(r.verdict == "skipped" and r.reason for r in found)
    with pytest.raises(LaunchError, match="order must be 1 or 2"):
        taylor_test(tape, order=3)


def test_each_kind_of_launch_is_tested_once() -> None:
    tape, _ = taped(waves, waves, waves)
    assert [r.launch for r in taylor_test(tape, directions=1)] == [0, -1]
    assert check_tape(tape).remainders == ()
    assert [r.launch for r in check_tape(tape, taylor=True).remainders] == [0, -1]


def test_rates_of_a_known_function() -> None:
    def value(t: float) -> Any:
        return np.asarray([np.exp(t)])

    right, wrong = remainders(value, 1.0), remainders(value, 1.0001)
    assert right.rate == pytest.approx(2.0, abs=0.01) and right.clear == 6
    assert wrong.rate == pytest.approx(1.0, abs=0.1)
    assert remainders(value, 1.0, 1.0).rate == pytest.approx(3.0, abs=0.01)
    assert remainders(value, 1.0, 1.01).rate == pytest.approx(2.0, abs=0.1)
