"""Derivatives written by hand for functions that are steep, where most steps tell little."""

from __future__ import annotations

from typing import Any

import pytest

import engine as wp
from engine.autograd import PairResult, check_tape

D = wp.float64
A = wp.array(dtype=wp.float64)


@wp.func
def wave(x: D, factor: D):
    return wp.sin(D(1e6) * x)


@wp.func_grad(wave)
def adj_wave(x: D, factor: D, adj_ret: D):
    wp.adjoint[x] += factor * D(1e6) * wp.cos(D(1e6) * x) * adj_ret


@wp.func
def step(x: D, factor: D):
    return wp.tanh(D(1e6) * (x - D(0.5)))


@wp.func_grad(step)
def adj_step(x: D, factor: D, adj_ret: D):
    y = wp.tanh(D(1e6) * (x - D(0.5)))
    wp.adjoint[x] += factor * D(1e6) * (D(1.0) - y * y) * adj_ret


@wp.func
def corner(x: D, factor: D):
    return wp.atan2(x - D(0.5), D(1e-6))


@wp.func_grad(corner)
def adj_corner(x: D, factor: D, adj_ret: D):
    wp.adjoint[x] += factor * D(1e-6) / ((x - D(0.5)) * (x - D(0.5)) + D(1e-12)) * adj_ret


@wp.kernel
def entries(f: int, x: A, factor: D, y: A):
    i = wp.tid()
    if f == 0:
        y[i] = wave(x[i], factor)
    elif f == 1:
        y[i] = step(x[i], factor)
    else:
        y[i] = corner(x[i], factor)


@wp.kernel
def total(f: int, x: A, factor: D, y: A):
    i = wp.tid()
    if f == 0:
        wp.atomic_add(y, 0, wave(x[i], factor))
    elif f == 1:
        wp.atomic_add(y, 0, step(x[i], factor))
    else:
        wp.atomic_add(y, 0, corner(x[i], factor))


def pair_of(kernel: Any, f: int, values: list[float], factor: float) -> PairResult:
    x = wp.array(values, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(len(values), dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=len(values), inputs=[f, x, factor], outputs=[y])
    (pair,) = check_tape(tape).launches[0].pairs
    return pair


FUNCTIONS = pytest.mark.parametrize("f", range(3), ids=("wave", "step", "corner"))
KERNELS = pytest.mark.parametrize("kernel", [entries, total], ids=lambda k: k.key)
VALUES = pytest.mark.parametrize("values", [[0.5], [0.5, 0.31, 0.77]], ids=["one", "three"])


@KERNELS
@FUNCTIONS
@VALUES
def test_right_ones_pass(kernel: Any, f: int, values: list[float]) -> None:
    assert pair_of(kernel, f, values, 1.0).verdict == "pass"


@KERNELS
@FUNCTIONS
@VALUES
@pytest.mark.parametrize("factor", [1.003, 1.01, 1.1, 2.0, -1.0, 0.0])
def test_wrong_ones_do_not(kernel: Any, f: int, values: list[float], factor: float) -> None:
    pair = pair_of(kernel, f, values, factor)
    assert pair.verdict == "fail"
    assert pair.worst is not None
    if factor:  # what is said to be right is so, where differences cannot tell it either
        assert pair.worst.oracle == pytest.approx(pair.worst.ad / factor, rel=1e-3)
