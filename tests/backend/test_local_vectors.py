"""Loops through a local vector or matrix, forward and backward.

The oracle is NumPy with float64, whose gradients are written down; values are small integers, of
which every sum and product is exact.
"""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen import cpp
from engine.frontend import lower_kernel
from tests.parts import cut

pytestmark = pytest.mark.host("loops of the host's compiler")
TURNS = 16
LENGTHS = (1, 7, 8, 9, TURNS, TURNS + 1)
SIZES = (0, 1, 37, 1000)


def mirrored(length: int, dtype: Any) -> Any:
    """s = sum of v[k] v[L - 1 - k] with v[k] = (k + 1) x."""
    vector = wp.types.vector(length, dtype)

    @wp.kernel(module="unique")
    def kernel(x: wp.array(dtype=dtype), out: wp.array(dtype=dtype)):  # type: ignore[valid-type]
        i = wp.tid()
        v = vector()
        for k in range(wp.static(length)):
            v[k] = x[i] * dtype(k + 1)
        s = dtype(0)
        for k in range(wp.static(length)):
            s += v[k] * v[wp.static(length - 1) - k]
        out[i] = s

    return kernel


def bounded(length: int, dtype: Any) -> Any:
    """The same, with a bound that is not known before."""
    vector = wp.types.vector(length, dtype)

    @wp.kernel(module="unique")
    def kernel(x: wp.array(dtype=dtype), many: int, out: wp.array(dtype=dtype)):  # type: ignore[valid-type]
        i = wp.tid()
        v = vector()
        for k in range(many):
            v[k] = x[i] * dtype(k + 1)
        s = dtype(0)
        for k in range(many):
            for j in range(2):
                s += v[k] * v[many - 1 - k] * dtype(j)
        out[i] = s

    return kernel


def product(rows: int, dtype: Any) -> Any:
    """out = a a, by three loops that add into a local matrix."""
    square = wp.types.matrix((rows, rows), dtype)

    @wp.kernel(module="unique")
    def kernel(a: wp.array(dtype=square), out: wp.array(dtype=square)):  # type: ignore[valid-type]
        i = wp.tid()
        m = a[i]
        r = square()
        for p in range(wp.static(rows)):
            for q in range(wp.static(rows)):
                for k in range(wp.static(rows)):
                    r[p, q] += m[p, k] * m[k, q]
        out[i] = r

    return kernel, square


def run(kernel: Any, x: Any, extra: Any, shape: Any, seed: Any) -> tuple[Any, Any]:
    out = wp.zeros(len(x), dtype=x.dtype if shape is None else shape, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=len(x), inputs=[x, *extra], outputs=[out])
    tape.backward(grads={out: wp.array(seed, dtype=out.dtype)})
    return out.numpy(), x.grad.numpy()


@pytest.mark.parametrize("make", [mirrored, bounded])
@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
@pytest.mark.parametrize("length", LENGTHS)
def test_vectors(length: int, dtype: Any, make: Any) -> None:
    rng = np.random.default_rng(length)
    kernel = make(length, dtype)
    factor = sum((k + 1) * (length - k) for k in range(length))
    for size in SIZES:
        x = rng.integers(-4, 5, size).astype(float)
        seed = rng.integers(-3, 4, size).astype(float)
        extra = [length] if make is bounded else []
        found = []
        for threads in (1, 2, 7):
            with cut(threads):
                given = wp.array(x, dtype=dtype, requires_grad=True)
                found.append(run(kernel, given, extra, None, seed))
        for value, gradient in found:
            np.testing.assert_array_equal(value, factor * x * x)
            np.testing.assert_array_equal(gradient, 2 * factor * x * seed)


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("rows", [2, 3, 4, 6])
def test_matrices(rows: int, strided: bool) -> None:
    rng = np.random.default_rng(rows)
    kernel, square = product(rows, wp.float32)
    for size in SIZES:
        a = rng.integers(-3, 4, (size, rows, rows)).astype(float)
        seed = rng.integers(-2, 3, (size, rows, rows)).astype(float)
        given = wp.array(np.repeat(a, 2, 0) if strided else a, dtype=square, requires_grad=True)
        value, gradient = run(kernel, given[::2] if strided else given, [], square, seed)
        turned = a.transpose(0, 2, 1)
        np.testing.assert_array_equal(value, a @ a)
        np.testing.assert_array_equal(gradient, seed @ turned + turned @ seed)


@wp.kernel
def numbers_alone(x: wp.array(dtype=float), many: int, out: wp.array(dtype=float)):
    i = wp.tid()
    s = x[i]
    for _ in range(many):
        s += wp.sin(s)
    out[i] = s


def test_blocks_of_threads_do_not_copy_vectors_for_one_component() -> None:
    """What a block keeps is of all its threads: all components would be moved in each turn."""
    assert "run_lanes" in cpp.emit(lower_kernel(numbers_alone), "s")
    for kernel in (mirrored(TURNS, wp.float32), bounded(5, wp.float32)):
        assert "run_lanes" not in cpp.emit(lower_kernel(kernel), "s")
