"""Sparse and compressed Jacobians: the same entries as dense ones, in fewer derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse as scipy_sparse

import engine as wp
from engine.autograd import jacobian, jacobian_fd
from engine.autograd.jacobians import compressed, of_launch
from engine.autograd.jacobians.sparsity import Pattern
from tests.unit.autograd import jacobian_kernels as k
from tests.unit.autograd.jacobian_kernels import bodies_arguments, floats, mixed_arguments


def random_floats(*shape: int, seed: int = 0) -> wp.array:
    values = np.random.default_rng(seed).uniform(0.5, 2.0, shape)
    return wp.array(values, dtype=float, requires_grad=True)


def zeros(*shape: int) -> wp.array:
    return wp.zeros(shape, dtype=float, requires_grad=True)


def cases() -> dict:
    ints = np.random.default_rng(5).integers(0, 6, 9).astype(np.int32)
    at = wp.array(ints, dtype=int)
    inputs, outputs = mixed_arguments()
    more, out = bodies_arguments()
    pairs = wp.array(np.ones((9, 2)), dtype=wp.vec2, requires_grad=True)
    x = random_floats(6)
    m = wp.array(np.random.default_rng(1).normal(size=(3, 2, 2)), dtype=wp.mat22,
                 requires_grad=True)  # fmt: skip
    v = wp.array(np.ones((2, 3, 2)), dtype=wp.vec2, requires_grad=True)
    vout = wp.zeros((2, 3), dtype=wp.vec2, requires_grad=True)
    return {
        "mixed": (k.mixed, 2, inputs, outputs),
        "bodies": (k.bodies, 2, more, out),
        "matrices": (k.matrices, (2, 3), [m, v], [vout]),
        "gather": (k.gather, 8, [x, at], [zeros(8)]),
        "scatter": (k.scatter, 9, [pairs, at], [zeros(6)]),
        "stencil": (k.stencil, (5, 7), [random_floats(5, 7)], [zeros(5, 7)]),
        "two_outputs": (k.two_outputs, 6, [x], [zeros(6), zeros(6)]),
        "all_to_one": (k.all_to_one, 6, [x], [zeros(1)]),
        "one_to_all": (k.one_to_all, 6, [x], [zeros(6)]),
        "in_place": (k.in_place, 6, [random_floats(6, seed=2), x], []),
        "running_sum": (k.running_sum, 6, [x], []),
        "serial": (k.serial, 1, [x, 6], [zeros(6)]),
        "roots": (k.roots, 4, [floats(1.0, 0.0, 4.0, 9.0)], [zeros(4)]),
    }


# Threads read what others wrote, or one thread does all: no pattern, or a full one.
COLOURS = {
    "two_outputs": 1, "all_to_one": 1, "one_to_all": 1, "gather": None, "stencil": None,
    "in_place": None, "running_sum": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", cases())
def test_sparse_and_dense_agree(name) -> None:
    kernel, dim, inputs, outputs = cases()[name]
    given = {"dim": dim, "inputs": inputs, "outputs": outputs}
    dense, found = jacobian(kernel, **given), jacobian(kernel, **given, sparse=True)
    assert list(dense) == list(found)
    for key, matrix in found.items():
        whole = dense[key].numpy().reshape(matrix.shape)
        if name == "roots":  # an infinite slope; elsewhere in its column the adjoint is 0 times inf
            known = np.zeros(matrix.shape, bool)
            known[matrix.rows, matrix.cols] = True
            whole = np.where(np.isnan(whole) & ~known, 0.0, whole)
            assert np.isinf(whole[1, 1])
        np.testing.assert_allclose(matrix.toarray(), whole, rtol=1e-6, atol=1e-7)
        order = matrix.rows * matrix.shape[1] + matrix.cols
        assert np.all(np.diff(order) > 0)
        if COLOURS.get(name) is not None:
            assert matrix.colours == COLOURS[name]


@pytest.mark.parametrize("name", ["mixed", "bodies", "gather", "stencil", "in_place", "scatter"])
@pytest.mark.parametrize("eps", [None, 1e-2])
def test_sparse_differences(name, eps) -> None:
    kernel, dim, inputs, outputs = cases()[name]
    given = {"dim": dim, "inputs": inputs, "outputs": outputs, "eps": eps}
    dense, found = jacobian_fd(kernel, **given), jacobian_fd(kernel, **given, sparse=True)
    for key, matrix in found.items():
        whole = dense[key].numpy().reshape(matrix.shape)
        np.testing.assert_allclose(matrix.toarray(), whole, rtol=1e-7, atol=1e-8)


def test_large_dense_jacobians_are_evaluated_compressed(monkeypatch) -> None:
    n = 20
    u, out = random_floats(n, n), zeros(n, n)
    given = {"dim": (n, n), "inputs": [u], "outputs": [out]}
    calls = []
    original = compressed.find_pattern
    monkeypatch.setattr(compressed, "find_pattern", lambda *a: calls.append(1) or original(*a))
    fast = jacobian(k.stencil, **given)[0, 0].numpy()
    quick = jacobian_fd(k.stencil, **given)[0, 0].numpy()
    limited = jacobian(k.stencil, **given, max_outputs_per_var=300)[0, 0].numpy()
    assert len(calls) == 3
    monkeypatch.setattr(of_launch, "FEW", 10**9)
    np.testing.assert_array_equal(fast, jacobian(k.stencil, **given)[0, 0].numpy())
    np.testing.assert_allclose(quick, fast, rtol=1e-6, atol=1e-7)
    assert np.isnan(limited[300:]).all()
    np.testing.assert_array_equal(limited[:300], fast[:300])


def test_a_sparse_jacobian_of_a_large_grid_is_right() -> None:
    n = 60
    u, out = random_floats(n, n), zeros(n, n)
    found = jacobian(k.stencil, dim=(n, n), inputs=[u], outputs=[out], sparse=True)[0, 0]
    assert found.nnz == 5 * (n - 2) ** 2 and found.colours <= 7
    x = u.numpy().astype(np.float64)
    row = 10 * n + 20
    mine = found.rows == row
    entries = dict(zip(found.cols[mine], found.values[mine], strict=True))
    around = x[9, 20] + x[11, 20] + x[10, 19] + x[10, 21]
    side = 0.1 * x[10, 20]
    expected = {row: 1.0 + 0.1 * around, row - n: side, row + n: side, row - 1: side, row + 1: side}
    assert entries.keys() == expected.keys()
    for col, value in expected.items():
        assert entries[col] == pytest.approx(value, rel=1e-6)


def test_limits_give_nan() -> None:
    kernel, dim, inputs, outputs = cases()["gather"]
    given = {"dim": dim, "inputs": inputs, "outputs": outputs, "sparse": True}
    rows = jacobian(kernel, **given, max_outputs_per_var=3)[0, 0]
    assert np.array_equal(np.isnan(rows.values), rows.rows >= 3)
    cols = jacobian_fd(kernel, **given, max_inputs_per_var=2)[0, 0]
    assert np.array_equal(np.isnan(cols.values), cols.cols >= 2)


def test_products_and_scipy() -> None:
    kernel, dim, inputs, outputs = cases()["gather"]
    found = jacobian(kernel, dim, inputs, outputs, sparse=True)[0, 0]
    rng = np.random.default_rng(0)
    v, w = rng.normal(size=found.shape[1]), rng.normal(size=found.shape[0])
    whole = found.toarray()
    np.testing.assert_allclose(found @ v, whole @ v, rtol=1e-5)
    np.testing.assert_allclose(w @ whole, found.__rmatmul__(w), rtol=1e-5, atol=1e-12)
    csr = found.tocsr()
    assert isinstance(csr, scipy_sparse.csr_array)
    np.testing.assert_array_equal(csr.toarray(), whole)
    with pytest.raises(wp.LaunchError, match="E207"):
        found @ np.ones(found.shape[1] + 1)


def test_of_functions() -> None:
    x = floats(1.0, 2.0, 3.0)

    def squared(x):
        y = wp.zeros_like(x)
        wp.launch(k.output_first, dim=3, inputs=[y, x, 1.0])
        return y

    found = jacobian(squared, inputs=[x], sparse=True)[0, 0]
    assert found.nnz == 3
    np.testing.assert_array_equal(found.toarray(), np.diag([2.0, 4.0, 6.0]))


@pytest.mark.parametrize("how", [jacobian, jacobian_fd])
def test_a_wrong_pattern_is_noticed(monkeypatch, how) -> None:
    """An entry is left out of the pattern: the product tells, and all is evaluated densely."""
    kernel, dim, inputs, outputs = cases()["stencil"]
    original = compressed.find_pattern

    def broken(*args) -> Pattern:
        p = original(*args)
        keep = np.arange(len(p.rows)) != 7
        return Pattern(p.shape, p.rows[keep], p.cols[keep])

    given = {"dim": dim, "inputs": inputs, "outputs": outputs}
    dense = how(kernel, **given)[0, 0].numpy()
    monkeypatch.setattr(compressed, "find_pattern", broken)
    found = how(kernel, **given, sparse=True)[0, 0]
    assert found.colours == 0
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-7, atol=1e-9)
    monkeypatch.setattr(of_launch, "MOST_DENSE", 10)
    with pytest.raises(wp.TapeError, match="E401") as error:
        how(kernel, **given, sparse=True)
    assert "random vector" in str(error.value)


def test_too_large_a_dense_matrix_is_refused() -> None:
    n = 1 << 20
    x = wp.zeros(n, dtype=float, requires_grad=True)
    with pytest.raises(wp.LaunchError, match="E209") as error:
        jacobian(k.in_place, dim=n, inputs=[x, x])
    assert "sparse=True" in str(error.value)
