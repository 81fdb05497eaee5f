"""Unsigned integers as indices: none counts from the end."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import engine as wp

F = wp.array(dtype=float)


@wp.kernel
def before_last(x: F, n: wp.uint32, y: F):
    k = n - wp.uint32(2)
    y[wp.tid()] = x[k] + x[n - wp.uint32(1)]


@wp.kernel
def component(x: wp.array(dtype=wp.vec3), n: wp.uint64, y: F):
    i = wp.tid()
    v = x[i]
    y[i] = v[n - wp.uint64(1)]


@pytest.mark.parametrize("bounds", [False, True])
def test_a_difference_of_unsigned_integers(bounds: bool) -> None:
    x = wp.array([1.0, 2.0, 4.0], dtype=float, requires_grad=True)
    v = wp.array([[1.0, 2.0, 4.0]], dtype=wp.vec3, requires_grad=True)
    y, z = (wp.zeros(1, dtype=float, requires_grad=True) for _ in range(2))
    noted: list[object] = []
    with wp.watching(noted.append) if bounds else nullcontext(), wp.Tape() as tape:
        wp.launch(before_last, 1, inputs=[x, 3], outputs=[y])
        wp.launch(component, 1, inputs=[v, 2], outputs=[z])
    tape.backward(grads={y: np.ones(1), z: np.ones(1)})
    assert (y.numpy()[0], z.numpy()[0], noted) == (6.0, 2.0, [])
    assert x.grad.numpy().tolist() == [0.0, 1.0, 1.0]
    assert v.grad.numpy().tolist() == [[0.0, 1.0, 0.0]]
