"""Loops through a local vector or matrix: the compiler writes them out, and nothing else changes.

The oracle is NumPy with float64, whose gradients are written down; values are small integers, of
which every sum and product is exact.
"""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.codegen import unrolled as module
from engine.codegen.unrolled import TURNS, unrolled
from engine.frontend import lower_kernel
from engine.ir import nodes as n
from tests.parts import cut

pytestmark = pytest.mark.host("loops of the host's compiler")
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


def loops(kernel: Any) -> list[bool]:
    """Of each loop of a kernel, whether it is written out."""
    fn = lower_kernel(kernel)
    found = unrolled(fn)
    return [id(s) in found for s in n.walk(fn.body) if isinstance(s, n.For)]


@wp.kernel
def others(x: wp.array2d(dtype=float), m: wp.array(dtype=wp.mat33), many: int):
    i = wp.tid()
    v = wp.vec3()
    for k in range(3):  # of an array
        x[i, k] = x[i, k] + v[0]
    for k in range(many):  # as many turns as somebody says
        v[k] = x[i, k]
    for k in range(3):
        for j in range(2):
            v[j + k * 0] = x[i, k]
    for j in range(3):
        w = m[i][j]
        x[i, j] = w[0]
    for j in range(0, 4, 2):
        row = j / 2
        v[row] = 1.0
    x[i, 0] = v[0]


def test_which_loops_are() -> None:
    assert loops(mirrored(TURNS, wp.float32)) == [True, True]
    assert loops(mirrored(TURNS + 1, wp.float32)) == [False, False]
    assert loops(bounded(5, wp.float32)) == [False, False, False]
    assert loops(product(4, wp.float32)[0]) == [True, True, True]
    assert loops(others) == [False, False, True, True, True, True]


@wp.func
def long_one(x: float) -> float:
    for _ in range(3):
        x = wp.sin(x) * wp.cos(x) + wp.exp(-x)
    return x


@wp.kernel
def calls(x: wp.array(dtype=float), out: wp.array(dtype=wp.vec4)):
    i = wp.tid()
    v = wp.vec4()
    for k in range(4):
        v[k] = long_one(x[i])
    out[i] = v


def test_what_is_called_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loops(calls) == [True]
    monkeypatch.setattr(module, "MOST", 30)
    assert loops(calls) == [False]


def test_a_nest_is_as_long_as_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _ = product(4, wp.float32)
    inner = len(list(n.walk(lower_kernel(kernel).body)))
    monkeypatch.setattr(module, "MOST", 4 * inner)
    assert loops(kernel) == [False, False, True]
    monkeypatch.setattr(module, "MOST", 0)
    assert loops(kernel) == [False, False, False]
