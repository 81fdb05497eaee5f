"""Defects that a review found, so that none comes back."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import engine as wp


@wp.kernel
def _negative_component(x: wp.array(dtype=float), y: wp.array(dtype=float), o: int):
    v = wp.vec3(x[0], x[1], x[2])
    y[0] = v[o]


@wp.kernel
def _negative_index(x: wp.array(dtype=float), y: wp.array(dtype=float), o: int):
    y[0] = x[o]


@pytest.mark.parametrize("kernel", [_negative_index, _negative_component])
def test_negative_index_at_run_time(kernel: Any) -> None:
    # The view starts inside its memory, so that a read before it stays harmless.
    x = wp.array([9.0, 9.0, 2.0, 3.0, 4.0], dtype=float)[2:]
    y = wp.zeros(1, dtype=float)
    wp.launch(kernel, dim=1, inputs=[x, y, -1])
    assert y.numpy()[0] == 4.0


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


def test_result_of_atomic_add_across_threads() -> None:
    x = wp.array([1.0, 2.0, 3.0], dtype=wp.float64, requires_grad=True)
    z = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(_prefix, dim=3, inputs=[x, z, y])
    np.testing.assert_allclose(y.numpy(), [0.0, 1.0, 3.0])
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(x.grad.numpy(), [2.0, 1.0, 0.0])


@wp.func
def _late(a: float):
    return a


@wp.kernel
def _uses_late(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = _late(x[i])


def _late_gradient() -> float:
    x = wp.array([1.0], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(_uses_late, dim=1, inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.ones_like(y)})
    return float(x.grad.numpy()[0])


def test_custom_gradient_given_after_a_launch() -> None:
    assert _late_gradient() == 1.0

    @wp.func_grad(_late)
    def adj_late(a: float, g: float):
        wp.adjoint[a] += 7.0 * g

    assert _late_gradient() == 7.0


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


def test_long_expression(tmp_path: Any) -> None:
    script = tmp_path / "long.py"
    total = "+".join(["x[0]"] * 1200)
    script.write_text(
        "import engine as wp\n@wp.kernel\ndef k(x: wp.array(dtype=float)):\n"
        f"    x[0] = {total}\n"
        "wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=float)])\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert "RecursionError" not in done.stderr, done.stderr[-300:]
    assert "error[E101]" in done.stderr and "split the expression" in done.stderr
