"""Gradients that are exactly zero: in both modes, and never NaN from a branch not taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import jvp


@wp.kernel
def steps(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.floor(x[i]) + wp.sign(x[i]) + wp.step(x[i]) + float(int(x[i])) + wp.round(x[i])


@wp.kernel
def times_zero(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 0.0 * x[i] + (x[i] - x[i])


@wp.kernel
def branch_not_taken(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] > 100.0:
        y[i] = wp.sqrt(x[i] - 100.0)
    else:
        y[i] = 7.0


@wp.kernel
def choice_not_taken(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.where(x[i] > 100.0, x[i] * x[i], 7.0)


@wp.kernel
def overwritten(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]
    v = x[i] * 3.0
    v = 2.0
    y[i] = v


@wp.kernel
def extremum_lost(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.min(x[i], -5.0) + wp.clamp(x[i], 50.0, 60.0)


@wp.kernel
def loop_without_iterations(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = float(1.0)
    for j in range(i * 0):
        v = v * x[i]
    y[i] = v


@wp.kernel
def flat_at_its_peak(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - x[i]
    y[i] = d * d + wp.cos(d)


KERNELS = [
    steps, times_zero, branch_not_taken, choice_not_taken, overwritten, extremum_lost,
    loop_without_iterations, flat_at_its_peak,
]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.key)
def test_derivative_is_exactly_zero(kernel: Any) -> None:
    x = wp.array([0.25, 1.75, 3.5], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=3, inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.array([1.0, -2.0, 3.0], dtype=float)})
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros(3))
    moved = jvp(tape, tangents={x: np.array([1.0, -2.0, 3.0], np.float32)})
    np.testing.assert_array_equal(moved[y].numpy(), np.zeros(3))


@wp.kernel
def length_or_zero(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    if wp.dot(x[i], x[i]) > 0.0:
        y[i] = wp.length(x[i])


def test_guarded_singular_point() -> None:
    x = wp.array([[0, 0, 0], [3, 0, 4]], dtype=wp.vec3, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(length_or_zero, dim=2, inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0, 0], [0.6, 0, 0.8]], rtol=1e-6)
    moved = jvp(tape, tangents={x: np.ones((2, 3), np.float32)})
    np.testing.assert_allclose(moved[y].numpy(), [0, 1.4], rtol=1e-6)
