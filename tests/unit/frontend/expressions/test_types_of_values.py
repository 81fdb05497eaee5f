"""Attributes of values from their types: `length`, `shape`, `dtype`."""

from typing import Any

import numpy as np

import engine as wp


@wp.func
def total(v: wp.types.vector(length=Any, dtype=Any)):
    out = v.dtype(0)
    for i in range(v.length):
        out += v[i] * v[i]
    return out


@wp.kernel
def facts(x: wp.array(dtype=Any), y: wp.array(dtype=float)):
    v = x[0]
    m = wp.matrix_from_rows(v, v)
    y[0] = float(total(v))
    y[1] = float(v.length) + 10.0 * float(x[0].length)
    y[2] = float(m.shape[0]) + 10.0 * float(m.shape[1])
    y[3] = float(v.shape[0])
    y[4] = float(m.dtype(2.5))


def test_of_vectors_and_matrices() -> None:
    for dtype, n in [(wp.vec3, 3), (wp.vec2d, 2), (wp.types.vector(5, wp.float64), 5)]:
        data = np.arange(1.0, n + 1)
        x = wp.array([data], dtype=dtype, requires_grad=True)
        y = wp.zeros(5, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(facts, dim=1, inputs=[x], outputs=[y])
        assert y.numpy().tolist() == [(data**2).sum(), 11 * n, 2 + 10 * n, n, 2.5]
        tape.backward(grads={y: wp.ones(5, dtype=float)})
        np.testing.assert_array_equal(x.grad.numpy(), [2 * data])
