"""Jacobians by less usual arguments: indexed, strided, empty, missing and half-precision arrays."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import gradcheck, jacobian, jacobian_fd
from tests.unit.autograd import jacobian_kernels as k
from tests.unit.autograd.jacobian_kernels import floats

HOW = [
    pytest.param(how, sparse, id=f"{how.__name__}-{'sparse' if sparse else 'dense'}")
    for how in (jacobian, jacobian_fd)
    for sparse in (False, True)
]


@pytest.mark.parametrize(("how", "sparse"), HOW)
def test_indexed_arrays(how, sparse) -> None:
    x, y = floats(1.0, 2.0, 3.0, 4.0), wp.zeros(2, dtype=float, requires_grad=True)
    seen = wp.indexedarray(x, [wp.array([3, 1], dtype=int)])
    found = how(k.indexed, dim=2, inputs=[seen], outputs=[y], sparse=sparse)[0, 0]
    np.testing.assert_allclose(found.numpy(), [[0, 0, 0, 8], [0, 4, 0, 0]], rtol=1e-9)
    assert gradcheck(k.indexed, dim=2, inputs=[seen], outputs=[y], show_summary=False)


@pytest.mark.parametrize(("how", "sparse"), HOW)
def test_strided_arrays(how, sparse) -> None:
    whole = wp.array(np.arange(12.0).reshape(3, 4) + 1, dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    found = how(k.rows, dim=2, inputs=[whole[:, ::2]], outputs=[y], sparse=sparse)[0, 0]
    expected = np.zeros((3, 6))
    expected[0, :2], expected[1, 2:4] = (2.0, 6.0), (10.0, 14.0)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize(("how", "sparse"), HOW)
def test_nothing_runs(how, sparse) -> None:
    empty = wp.zeros(0, dtype=float, requires_grad=True)
    found = how(k.in_place, dim=0, inputs=[empty, empty], sparse=sparse)
    assert {key: m.shape for key, m in found.items()} == {(0, 0): (0, 0), (1, 0): (0, 0)}
    # A launch without threads leaves what was there.
    x = floats(1.0, 2.0)
    found = how(k.in_place, dim=0, inputs=[x, floats(1.0, 1.0)], sparse=sparse)
    np.testing.assert_allclose(found["y", "y"].numpy(), np.eye(2), rtol=1e-9)
    np.testing.assert_array_equal(found["x", "y"].numpy(), np.zeros((2, 2)))


def test_no_array_at_all() -> None:
    x, y = floats(1.0, 2.0), wp.zeros(2, dtype=float, requires_grad=True)
    for how in (jacobian, jacobian_fd):
        found = how(k.optional, dim=2, inputs=[x, None], outputs=[y])
        assert list(found) == [(0, 0)]
        np.testing.assert_allclose(found[0, 0].numpy(), np.eye(2), rtol=1e-9)


def test_half_precision() -> None:
    x = wp.array([1.0, 2.0], dtype=wp.float16, requires_grad=True)
    y = wp.zeros(2, dtype=wp.float16, requires_grad=True)
    found = jacobian(k.halves, dim=2, inputs=[x], outputs=[y])[0, 0]
    assert found.dtype is wp.float16
    np.testing.assert_array_equal(found.numpy(), np.diag([2.0, 4.0]))
    assert jacobian_fd(k.halves, dim=2, inputs=[x], outputs=[y])[0, 0].dtype is wp.float64

    def function(x):
        wp.launch(k.halves, dim=2, inputs=[x], outputs=[y])
        return y

    assert gradcheck(function, inputs=[x], show_summary=False)


def test_the_same_array_twice() -> None:
    x, y = floats(2.0, 3.0), wp.zeros(2, dtype=float, requires_grad=True)
    for how in (jacobian, jacobian_fd):
        found = how(k.output_between, dim=2, inputs=[x, x], outputs=[y])
        for key in ((0, 0), (1, 0)):  # the derivative by the array, wherever it was passed
            np.testing.assert_allclose(found[key].numpy(), np.diag([4.0, 6.0]), rtol=1e-6)


def test_results_that_are_arguments() -> None:
    x = floats(1.0, 2.0)
    found = jacobian(lambda a, b: (a, b), inputs=[x, x[:1]])
    np.testing.assert_array_equal(found[0, 0].numpy(), np.eye(2))
    np.testing.assert_array_equal(found[0, 1].numpy(), [[1.0, 0.0]])
    np.testing.assert_array_equal(found[1, 1].numpy(), [[1.0]])


# ---- kernels


@pytest.mark.parametrize(("how", "sparse"), HOW)
def test_native_functions(how, sparse) -> None:
    x, y = floats(1.0, 2.0, 3.0), wp.zeros(3, dtype=float, requires_grad=True)
    given = {"dim": 3, "inputs": [x], "outputs": [y], "sparse": sparse}
    cubes, squares = how(k.natives, **given)[0, 0], how(k.native_arrays, **given)[0, 0]
    np.testing.assert_allclose(cubes.numpy(), np.diag([3.0, 12.0, 27.0]), rtol=1e-4)
    np.testing.assert_allclose(squares.numpy(), np.diag([2.0, 4.0, 6.0]), rtol=1e-4)
    if sparse:  # what C++ does to arrays is not seen
        assert (cubes.colours, squares.colours) == (1, 0)


def test_a_native_function_without_adjoint() -> None:
    x, y = floats(1.0, 2.0, 3.0), wp.zeros(3, dtype=float, requires_grad=True)
    given = {"dim": 3, "inputs": [x], "outputs": [y]}
    with pytest.warns(UserWarning, match="native_without_adjoint") as told:
        found = jacobian(k.native_stop, **given, sparse=True)[0, 0]
    assert told[0].filename == __file__
    np.testing.assert_array_equal(found.toarray(), np.eye(3))
    with pytest.raises(ValueError, match="E403") as error:
        gradcheck(k.native_stop, **given, show_summary=False)
    assert "'y' with respect to 'x'" in str(error.value)


@pytest.mark.parametrize("scalar", [wp.float32, wp.float64])
@pytest.mark.parametrize("inputs_first", [True, False])
def test_generic_kernels(scalar, inputs_first) -> None:
    x = wp.array([1.0, 2.0], dtype=scalar, requires_grad=True)
    y = wp.zeros(2, dtype=scalar, requires_grad=True)
    given = {"inputs": [x], "outputs": [y]} if inputs_first else {"inputs": [y, x]}
    found = jacobian(k.generic, dim=2, **given)["x", "y"]
    assert found.dtype is scalar
    np.testing.assert_array_equal(found.numpy(), np.diag([2.0, 4.0]))
    assert gradcheck(k.generic, dim=2, **given, show_summary=False)


def test_kernels_without_a_backward_pass() -> None:
    x, y = floats(1.0, 2.0), wp.zeros(2, dtype=float, requires_grad=True)
    given = {"dim": 2, "inputs": [x], "outputs": [y]}
    with pytest.raises(wp.TapeError, match="enable_backward"):
        jacobian(k.no_backward, **given)
    with pytest.raises(ValueError, match="E404"):
        gradcheck(k.no_backward, **given, show_summary=False)
    np.testing.assert_allclose(
        jacobian_fd(k.no_backward, **given)[0, 0].numpy(), np.diag([2.0, 4.0]), rtol=1e-9
    )
