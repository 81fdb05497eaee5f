"""gradcheck of kernels and functions: what it catches, what it lets pass, what it says."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_function, gradcheck
from tests.unit.autograd import jacobian_kernels as k
from tests.unit.autograd.test_jacobian import (
    bodies_arguments,
    contents,
    floats,
    mixed_arguments,
    of_function,
)


def test_right_gradients_pass(capsys) -> None:
    inputs, outputs = mixed_arguments()
    assert gradcheck(k.mixed, dim=2, inputs=inputs, outputs=outputs) is True
    out = capsys.readouterr().out
    assert out.count("PASS") == 4 and "Gradient check passed." in out
    assert gradcheck(of_function, inputs=inputs) is True
    assert "output_1" in capsys.readouterr().out
    (a, box), more = bodies_arguments()
    assert gradcheck(k.bodies, dim=2, inputs=[a, box], outputs=more, show_summary=False)
    assert capsys.readouterr().out == ""


def spoiled_arguments(n: int = 3):
    x = wp.array(np.linspace(0.5, 2.0, n), dtype=float, requires_grad=True)
    return [x, wp.ones(n, dtype=float, requires_grad=True)], [
        wp.zeros(n, dtype=float, requires_grad=True)
    ]


@pytest.mark.parametrize("n", [3, 3000])
def test_a_spoiled_gradient_is_caught_and_its_pair_named(n) -> None:
    inputs, outputs = spoiled_arguments(n)
    given = {"dim": n, "inputs": inputs, "outputs": outputs, "show_summary": False}
    assert gradcheck(k.spoiled, **given, raise_exception=False) is False
    with pytest.raises(ValueError, match="E403") as error:
        gradcheck(k.spoiled, **given)
    assert "'y' with respect to 'x'" in str(error.value)
    assert "'y' with respect to 'w'" not in str(error.value)
    assert "def adj_cube" in str(error.value)
    assert gradcheck(k.spoiled, **given, input_output_mask=[("w", "y")])
    verdicts = {p.input: p.verdict for p in check_function(
        k.spoiled, n, inputs, outputs).launches[0].pairs}  # fmt: skip
    assert verdicts == {"x": "fail", "w": "pass"}


@pytest.mark.parametrize("n", [3, 600])
def test_a_function_with_a_spoiled_gradient(n) -> None:
    inputs, outputs = spoiled_arguments(n)

    def function(x, w):
        wp.launch(k.spoiled, dim=n, inputs=[x, w], outputs=outputs)
        return outputs[0]

    with pytest.raises(ValueError, match="E403") as error:
        gradcheck(function, inputs=inputs, show_summary=False)
    assert "kernel 'spoiled': the gradient of 'y' with respect to 'x' is wrong" in str(error.value)


def test_a_function_whose_host_code_cuts_the_gradient() -> None:
    x = floats(1.0, 2.0)

    def function(x):
        y = wp.zeros_like(x)
        copied = wp.array(x.numpy() * 2.0, dtype=float, requires_grad=True)
        wp.launch(k.output_first, dim=2, inputs=[y, copied, 1.0])
        return y

    # Every launch is right; the function as a whole is not.
    with pytest.raises(ValueError, match="E403") as error:
        gradcheck(function, inputs=[x], show_summary=False)
    assert "function 'function': the gradient of 'output_0' with respect to 'x'" in str(error.value)


@pytest.mark.parametrize("n", [4, 2000])
def test_right_functions_pass(n) -> None:
    x = wp.array(np.linspace(0.3, 1.7, n), dtype=float, requires_grad=True)

    def function(x):
        y, z = wp.zeros_like(x), wp.zeros_like(x)
        wp.launch(k.output_first, dim=n, inputs=[y, x, 1.0])
        wp.launch(k.output_between, dim=n, inputs=[x, z, y])
        return z

    assert gradcheck(function, inputs=[x], show_summary=False)


def test_kinks_are_no_failure() -> None:
    x, y = floats(0.0, 1.0), wp.zeros(2, dtype=float, requires_grad=True)
    result = check_function(k.kinked, 2, [x], [y])
    assert [p.verdict for p in result.launches[0].pairs] == ["kink"]

    def function(x):
        wp.launch(k.kinked, dim=2, inputs=[x], outputs=[y])
        return y

    assert check_function(function, inputs=[x]).launches[0].pairs[0].verdict == "kink"
    assert gradcheck(function, inputs=[x], show_summary=False)


def test_given_tolerances_are_the_formula() -> None:
    # d/dx of x^3 is 3 x^2; the central difference is 3 x^2 + eps^2: off by 0.01 exactly.
    x, w = floats(1.0), floats(1.0)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    given = {"dim": 1, "inputs": [x, w], "outputs": [y], "eps": 0.1, "show_summary": False}
    off = abs(3.0 * 1.001 - (3.0 + 0.01))
    for kernel_given in (given,):
        assert gradcheck(k.spoiled, **kernel_given, atol=1.01 * off, rtol=0.0)
        assert not gradcheck(k.spoiled, **kernel_given, atol=0.99 * off, rtol=0.0,
                             raise_exception=False)  # fmt: skip


def test_nothing_checked_is_an_error() -> None:
    x = wp.zeros(0, dtype=float, requires_grad=True)
    with pytest.raises(ValueError, match="E404"):
        gradcheck(k.in_place, dim=0, inputs=[x, x], show_summary=False)
    with pytest.raises(ValueError, match="E404"):
        gradcheck(k.in_place, dim=1, inputs=[wp.ones(1, dtype=float), floats(1.0)])
    with pytest.raises(ValueError, match="E405"):
        gradcheck(k.in_place, dim=1, inputs=[floats(1.0), floats(1.0)],
                  input_output_mask=[("q", "y")])  # fmt: skip


def test_arrays_stay_bit_for_bit() -> None:
    inputs, outputs = spoiled_arguments()
    for i, a in enumerate((*inputs, *outputs)):
        a.grad.fill_(1.0 + i)
    before = contents(*inputs, *outputs)

    def function(x, w):
        wp.launch(k.spoiled, dim=3, inputs=[x, w], outputs=outputs)
        return outputs[0]

    for check in (
        lambda: gradcheck(k.spoiled, dim=3, inputs=inputs, outputs=outputs, show_summary=False),
        lambda: gradcheck(function, inputs=inputs, show_summary=False),
    ):
        with pytest.raises(ValueError):
            check()
        assert contents(*inputs, *outputs) == before


def test_second_derivatives_of_a_kernel() -> None:
    inputs, outputs = spoiled_arguments()
    first = check_function(k.kinked, 2, [floats(1.0, 3.0)], [floats(0.0, 0.0)])
    second = check_function(k.kinked, 2, [floats(1.0, 3.0)], [floats(0.0, 0.0)], order=2)
    assert len(second.launches[0].pairs) > len(first.launches[0].pairs)
    with pytest.raises(wp.LaunchError) as refused:
        check_function(k.kinked, 2, inputs, outputs, order=3)
    assert refused.value.diagnostics[0].code == "E405"
