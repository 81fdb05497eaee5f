"""Gradients through results of atomics, and through elements that are changed after them."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp


@wp.kernel
def _max_then_scale(x: wp.array(dtype=wp.float64), z: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_max(z, i, x[i] * x[i])
    z[i] = z[i] * wp.float64(2.0)


def test_element_changed_after_atomic_max() -> None:
    x = wp.array([2.0, 3.0], dtype=wp.float64, requires_grad=True)
    z = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(_max_then_scale, dim=2, inputs=[x, z])
    tape.backward(grads={z: wp.ones_like(z)})
    np.testing.assert_allclose(x.grad.numpy(), [8.0, 12.0])


@wp.kernel
def _prefix(x: wp.array(dtype=wp.float64), z: wp.array(dtype=wp.float64),
            y: wp.array(dtype=wp.float64)):  # fmt: skip
    i = wp.tid()
    y[i] = wp.atomic_add(z, 0, x[i])


@pytest.mark.host("the order of threads")
def test_result_of_atomic_add_across_threads() -> None:
    x = wp.array([1.0, 2.0, 3.0], dtype=wp.float64, requires_grad=True)
    z = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(_prefix, dim=3, inputs=[x, z, y])
    np.testing.assert_allclose(y.numpy(), [0.0, 1.0, 3.0])
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(x.grad.numpy(), [2.0, 1.0, 0.0])


@wp.kernel
def _vector_max(x: wp.array(dtype=wp.vec3), z: wp.array(dtype=wp.vec3)):
    wp.atomic_max(z, 0, x[wp.tid()])


def test_atomic_max_of_vectors_on_a_tape() -> None:
    x = wp.array([[1, 5, 2], [3, 1, 9]], dtype=wp.vec3, requires_grad=True)
    z = wp.zeros(1, dtype=wp.vec3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(_vector_max, dim=2, inputs=[x, z])
    tape.backward(grads={z: wp.ones_like(z)})
    np.testing.assert_allclose(x.grad.numpy(), [[0, 1, 0], [1, 0, 1]])
