"""Launches that lie where nothing changes: contacts that nothing touches, at the very border."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape
from tests.unit.autograd.verdict_kernels import floats, recorded

F = wp.array(dtype=float)


@wp.func
def ramp(a: float, slope: float):
    r = wp.max(a, 0.0)
    return r * r


@wp.func_grad(ramp)
def adj_ramp(a: float, slope: float, adj_ret: float):
    wp.adjoint[a] += (2.0 * wp.max(a, 0.0) + slope) * adj_ret


@wp.kernel
def contact(x: F, y: F):
    i = wp.tid()
    r = wp.max(x[i], 0.0)
    y[i] = r * r


@wp.kernel
def cubic(x: F, y: F):
    i = wp.tid()
    if x[i] > 0.0:
        y[i] = x[i] * x[i] * x[i]


@wp.kernel
def two_sides(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * wp.abs(x[i])


@wp.kernel
def energy(x: F, y: F):
    i = wp.tid()
    r = wp.max(x[i], 0.0)
    wp.atomic_add(y, 0, 0.5e4 * r * r)


@wp.kernel
def by_hand(x: F, slope: float, y: F):
    i = wp.tid()
    y[i] = ramp(x[i], slope)


def verdict(tape: Any) -> str:
    (launch,) = check_tape(tape).launches
    (pair,) = launch.pairs
    return pair.verdict


@pytest.mark.parametrize("values", [[0.0], [0.0, 0.0, -1.0], [-1.0], [0.0] * 30])
@pytest.mark.parametrize("kernel", [contact, cubic, two_sides, energy], ids=lambda k: k.key)
def test_a_derivative_that_is_zero_everywhere(kernel: Any, values: list[float]) -> None:
    y = floats(np.zeros(len(values)))
    assert verdict(recorded(kernel, floats(values), y)) == "pass"


@pytest.mark.parametrize("values", [[0.0], [0.0, 0.0, -1.0]])
@pytest.mark.parametrize("slope", [1.0, 1e-2, 1e-5, -1e-8])
def test_one_that_should_be_is_found(slope: float, values: list[float]) -> None:
    x, y = floats(values), floats(np.zeros(len(values)))
    with wp.Tape() as tape:
        wp.launch(by_hand, dim=len(values), inputs=[x, slope], outputs=[y])
    assert verdict(tape) == "fail"
