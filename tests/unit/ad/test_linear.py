"""Forward mode refuses a gradient of arrays that is not linear in its cotangents."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp

A = wp.array(dtype=wp.float64)


@wp.func
def picked(z: A, n: int):
    return z[n]


@wp.func_grad(picked)
def adj_picked(z: A, n: int, adj_ret: wp.float64):
    wp.adjoint[z][n] += adj_ret * adj_ret


@wp.kernel
def gather(x: A, y: A):
    i = wp.tid()
    y[i] = picked(x, i)


def test_a_square_of_the_cotangent_is_refused() -> None:
    x = wp.array([1.0, 2.0], dtype=wp.float64, requires_grad=True)
    y = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(gather, 2, [x, y])
    with pytest.raises(wp.KernelError) as caught:
        wp.autograd.jvp(tape, tangents={x: np.ones(2)})
    assert caught.value.diagnostics[0].code == "E110"
