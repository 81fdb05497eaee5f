"""Functions of Python, `math` and NumPy in kernels: the builtins of the same meaning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import engine as wp

F = wp.float64


@wp.kernel
def borrowed(x: wp.array(dtype=F), y: wp.array2d(dtype=F)):
    i = wp.tid()
    y[i, 0] = round(x[i])
    y[i, 1] = np.sin(x[i]) * np.exp(x[i])
    y[i, 2] = math.sin(x[i]) * math.exp(x[i])
    y[i, 3] = np.arctan2(x[i], F(2.0)) + np.floor(x[i])
    y[i, 4] = max(abs(x[i]), min(x[i], F(1.0))) + pow(x[i] * x[i], F(1.5))


def test_they_mean_builtins_with_their_gradients() -> None:
    data = np.array([0.5, 1.5, -2.5, 0.3])
    x = wp.array(data, dtype=F, requires_grad=True)
    y = wp.zeros((4, 5), dtype=F, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(borrowed, 4, inputs=[x], outputs=[y])
    waves = np.sin(data) * np.exp(data)
    want: Any = [
        [1.0, 2.0, -3.0, 0.0],  # halves away from zero
        waves,
        waves,
        np.arctan2(data, 2) + np.floor(data),
        np.abs(data) + np.abs(data) ** 3,
    ]
    np.testing.assert_allclose(y.numpy().T, want, rtol=1e-14)
    tape.backward(grads={y: wp.ones_like(y)})
    slopes = 2 * np.exp(data) * (np.sin(data) + np.cos(data)) + 2 / (4 + data**2)
    slopes += np.sign(data) + 3 * data * np.abs(data)
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-13)
