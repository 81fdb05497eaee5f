"""Functions checked in their own precision: no false alarm, nothing wrong let through."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_function, gradcheck, jacobian, jacobian_fd


@wp.kernel
def absolute(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.abs(x[i])


@wp.kernel
def clamped(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.clamp(x[i], 0.0, 1.0)


@wp.kernel
def steep(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.tanh(1.0e4 * (x[i] - 0.5))


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def inverse(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 1.0 / x[i]


@wp.kernel
def oscillating(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(1000.0 * x[i])


@wp.kernel
def cancelling(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = (x[i] + 1.0e6) - 1.0e6


@wp.kernel
def arc(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.acos(x[i])


@wp.kernel
def odd(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sign(x[i]) * x[i] * x[i]


@wp.kernel
def widened(x: wp.array(dtype=wp.float64), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = float(wp.exp(x[i]))


@wp.kernel
def product(x: wp.array(dtype=float), w: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * w[i]


@wp.func
def reciprocal(v: float):
    return 1.0 / v


@wp.func_grad(reciprocal)
def adj_reciprocal(v: float, adj_ret: float):
    wp.adjoint[v] -= 1.01 * adj_ret / (v * v)


@wp.kernel
def spoiled_inverse(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = reciprocal(x[i])


def array(values, dtype=float):
    return wp.array(np.array(values), dtype=dtype, requires_grad=True)


def of(kernel):
    def function(x):
        y = wp.zeros(x.size, dtype=float, requires_grad=True)
        wp.launch(kernel, dim=x.size, inputs=[x], outputs=[y])
        return y

    return function


WIDE = 10.0 ** np.random.default_rng(1).uniform(-15, 15, 30)
RIGHT = [
    (absolute, [1e-7, -1e-7, 1e-20], {"pass"}),
    (absolute, [0.0, 1.0, -2.0], {"kink"}),
    (clamped, [0.0, 1.0, 0.5, 2.0, -1.0], {"kink"}),
    (steep, [0.5, 0.50001, 0.4999, 0.3], {"pass"}),
    (square, [1e-30, 1e-38, 1e-42], {"inconclusive"}),  # it underflows to zero
    (square, [1e18, 2e18], {"pass"}),
    (inverse, [1e-15, 1e15, 1.0], {"pass"}),
    (oscillating, np.linspace(-2.0, 2.0, 30), {"pass"}),
    (cancelling, [1.0, 2e-3], {"pass", "inconclusive"}),
    (arc, [0.999999, 0.0, -0.9], {"pass", "inconclusive"}),
    (odd, [0.0, 1.0, -2.0], {"pass"}),
]


@pytest.mark.parametrize(("kernel", "values", "verdicts"), RIGHT)
def test_right_functions_raise_no_alarm(kernel, values, verdicts) -> None:
    x = array(values)
    before = x.numpy().tobytes()
    result = check_function(of(kernel), inputs=[x])
    (pair,) = result.launches[0].pairs
    assert pair.verdict in verdicts and result.passed
    # What was not settled is no error.
    assert pair.max_rel_error < 0.05 or pair.verdict != "pass"
    assert x.numpy().tobytes() == before


@pytest.mark.parametrize("n", [2, 600])
def test_right_functions_of_large_arrays(n) -> None:
    x = array(np.linspace(-1.0, 1.0, n))
    for kernel in (absolute, clamped, steep, oscillating, cancelling, odd):
        assert gradcheck(of(kernel), inputs=[x], show_summary=False)


def copied(x):
    """The gradient ends at the copy."""
    y = wp.zeros_like(x)
    copy = wp.array(x.numpy() * 2.0, dtype=float, requires_grad=True)
    wp.launch(square, dim=x.size, inputs=[copy], outputs=[y])
    return y


def half_copied(x):
    """One factor of three goes without a gradient."""
    y, z = wp.zeros_like(x), wp.zeros_like(x)
    wp.launch(square, dim=x.size, inputs=[x], outputs=[y])
    wp.launch(product, dim=x.size, inputs=[y, wp.array(x.numpy(), dtype=float)], outputs=[z])
    return z


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("n", [3, 600])
def test_gradients_that_host_code_cuts_are_caught(n, scale) -> None:
    x = array(np.random.default_rng(2).normal(size=n) * scale)
    for function in (copied, half_copied):
        with pytest.raises(ValueError, match=r"E403.*'output_0'"):
            gradcheck(function, inputs=[x], show_summary=False)


def test_arguments_that_are_not_finite() -> None:
    result = check_function(of(square), inputs=[array([np.nan, 1.0])])
    (pair,) = result.launches[0].pairs
    assert (pair.verdict, pair.reason) == ("inconclusive", "argument 'x' holds NaN or Inf")
    x = wp.zeros(0, dtype=float, requires_grad=True)
    with pytest.raises(ValueError, match="the array is empty"):
        gradcheck(of(square), inputs=[x], show_summary=False)


def test_elements_of_very_different_size() -> None:
    x, y = array(WIDE), wp.zeros(len(WIDE), dtype=float, requires_grad=True)
    given = {"dim": len(WIDE), "inputs": [x], "outputs": [y]}
    slopes = np.diag(-1.0 / x.numpy().astype(np.float64) ** 2)
    # The kernel's float64 differences are good to nine digits, the function's to float32.
    for found in (
        jacobian_fd(inverse, **given)[0, 0].numpy(),
        jacobian_fd(inverse, **given, sparse=True)[0, 0].toarray(),
    ):
        np.testing.assert_allclose(found, slopes, rtol=1e-9)
    found = jacobian_fd(of(inverse), inputs=[x])[0, 0].numpy()
    np.testing.assert_allclose(found, slopes, rtol=1e-4)
    assert gradcheck(inverse, **given, show_summary=False)
    with pytest.raises(ValueError, match="adj_reciprocal"):
        gradcheck(spoiled_inverse, **given, show_summary=False)


@pytest.mark.parametrize("decades", [5, 10, 15])
def test_many_elements_of_very_different_size(decades) -> None:
    n = 2500
    x = array(10.0 ** np.random.default_rng(1).uniform(-decades, decades, n))
    y = wp.zeros(n, dtype=float, requires_grad=True)
    right, wrong = (
        check_function(kernel, n, [x], [y]).launches[0].pairs[0].verdict
        for kernel in (inverse, spoiled_inverse)
    )
    assert right == ("pass" if decades == 5 else "inconclusive")
    assert wrong == "fail"


def test_float32_results_of_float64_arguments() -> None:
    x = array([0.5, 1.0], wp.float64)
    found = jacobian_fd(of(widened), inputs=[x])[0, 0].numpy()
    np.testing.assert_allclose(found, np.diag(np.exp([0.5, 1.0])), rtol=1e-4)


# ---- what cannot be evaluated


def test_functions_that_change_their_results() -> None:
    runs = []

    def growing(x):
        runs.append(1)
        y = wp.zeros(x.size + len(runs), dtype=float, requires_grad=True)
        wp.launch(square, dim=x.size, inputs=[x], outputs=[y])
        return y

    def fewer(x):
        runs.append(1)
        return [of(square)(x)] * (2 if len(runs) == 1 else 1)

    for function in (growing, fewer):
        for how in (jacobian_fd, lambda *a, **k: gradcheck(*a, **k, show_summary=False)):
            runs.clear()
            with pytest.raises(ValueError, match="returns different arrays from run to run"):
                how(function, inputs=[array([1.0, 2.0])])


def test_options_of_the_wrong_kind() -> None:
    given = {"dim": 1, "inputs": [array([1.0])], "outputs": [array([0.0])]}
    for how, options, said in (
        (jacobian, {"max_outputs_per_var": "a"}, "max_outputs_per_var must be a whole number"),
        (jacobian_fd, {"max_inputs_per_var": 1.5}, "max_inputs_per_var must be a whole number"),
        (gradcheck, {"max_inputs_per_var": None}, "max_inputs_per_var must be a whole number"),
        (jacobian_fd, {"eps": "small"}, "eps must be a positive number, got 'small'"),
        (gradcheck, {"atol": -1.0}, "atol must be 0 or a positive number"),
        (jacobian, {"metadata": "names"}, "metadata is a FunctionMetadata"),
    ):
        with pytest.raises(wp.LaunchError, match=said) as error:
            how(square, **given, **options)
        assert error.value.diagnostics[0].span.file == __file__


@pytest.mark.parametrize("inputs", [None, [], [1.0, 2.0, 3.0]])
def test_functions_that_do_not_take_the_inputs(inputs) -> None:
    for how in (jacobian, jacobian_fd, gradcheck):
        with pytest.raises(ValueError, match=r"E201.*'copied' cannot be called"):
            how(copied, inputs=inputs)
