"""Functions for kernels that programs make of Python functions."""

import re

import numpy as np
import pytest

import engine as wp
from engine import KernelError
from engine.utils import create_warp_function


def doubled_square(x: float):
    return 2.0 * x * x


def made(factor: float):
    func, module = create_warp_function(lambda x: factor * wp.sin(x))

    @wp.kernel(module="unique")
    def apply(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = func(x[i])

    return func, module, apply


def test_lambdas_have_names_that_their_text_decides():
    first, module, _ = made(2.0)
    second, _, _ = made(3.0)
    assert re.fullmatch(r"func_[0-9a-f]{16}", first.key)
    assert first.key == second.key
    assert module is wp.get_module(__name__)
    other, _ = create_warp_function(lambda x: x)
    assert other.key != first.key
    assert first(0.5) == pytest.approx(2.0 * np.sin(0.5))
    several, _ = create_warp_function(lambda q, qd: (
        q[0] == 0.0
        and q[1] == 0.0
    ))  # fmt: skip
    assert several((0.0, 0.0), (1.0, 1.0)) and not several((0.0, 1.0), (1.0, 1.0))


def test_gradients_flow_through_them():
    _, _, apply = made(2.0)
    x = wp.array([0.5, 1.5], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(apply, dim=2, inputs=[x, y])
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(y.numpy(), 2.0 * np.sin([0.5, 1.5]), rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), 2.0 * np.cos([0.5, 1.5]), rtol=1e-6)


def test_functions_keep_their_names():
    func, module = create_warp_function(doubled_square)
    assert (func.key, func(3.0), module.name) == ("doubled_square", 18.0, __name__)
    again, _ = create_warp_function(func)
    assert again is func


@pytest.mark.parametrize("given", [3, wp.sin, wp.vec3])
def test_what_is_no_function(given):
    with pytest.raises(KernelError, match="E103"):
        create_warp_function(given)
