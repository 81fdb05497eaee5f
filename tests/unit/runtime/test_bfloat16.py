"""bfloat16: rounding by ml_dtypes is the oracle for values, float64 for gradients."""

import pickle

import numpy as np
import pytest

import engine as wp
from engine.autograd import gradcheck, jvp
from engine.ir.interp import run as interpret

ml_dtypes = pytest.importorskip("ml_dtypes")
BF = np.dtype(ml_dtypes.bfloat16)
V3 = wp.types.vector(length=3, dtype=wp.bfloat16)
RNG = np.random.default_rng(11)


@wp.kernel
def steps(
    x: wp.array(dtype=wp.bfloat16), s: wp.bfloat16, y: wp.array(dtype=wp.bfloat16),
    wide: wp.array(dtype=float),
):  # fmt: skip
    i = wp.tid()
    v = x[i] * s + wp.bfloat16(0.3)
    for _ in range(2):
        v = wp.sqrt(wp.abs(v)) - x[i] / (v * v + wp.bfloat16(1.0))
    y[i] = wp.max(v, -v)
    wide[i] = float(v) * 2.0


@wp.kernel
def vectors(x: wp.array(dtype=V3), y: wp.array(dtype=wp.bfloat16)):
    i = wp.tid()
    wp.atomic_add(y, 0, wp.dot(x[i], x[i]))
    wp.atomic_max(y, 1, x[i][1])


@wp.kernel
def converted(x: wp.array(dtype=wp.bfloat16), i: wp.array(dtype=int), d: wp.array(dtype=wp.float64),
              h: wp.array(dtype=wp.float16), back: wp.array(dtype=wp.bfloat16)):  # fmt: skip
    k = wp.tid()
    i[k] = int(x[k])
    d[k] = wp.float64(x[k])
    h[k] = wp.float16(x[k])
    back[k] = wp.bfloat16(d[k] * wp.float64(1.01))


def expected(x, s):
    v = x * s + BF.type(0.3)
    for _ in range(2):
        v = np.sqrt(np.abs(v)) - x / (v * v + BF.type(1.0))
    return np.maximum(v, -v), v.astype(np.float32) * np.float32(2.0)


def test_arrays_hold_numpys_numbers() -> None:
    numbers = RNG.standard_normal((3, 4)) * 10.0 ** RNG.integers(-9, 9, (3, 4))
    a = wp.array(numbers, dtype=wp.bfloat16)
    assert a.numpy().dtype == BF
    np.testing.assert_array_equal(a.numpy(), numbers.astype(np.float32).astype(BF))
    assert wp.array(a.numpy()).dtype is wp.bfloat16
    bits = a.numpy().view(np.uint16)
    np.testing.assert_array_equal(wp.array(bits, dtype=wp.bfloat16).numpy(), a.numpy())
    assert a.list() == [float(wp.bfloat16(v)) for v in numbers.ravel()]
    assert a[1, 2] == float(wp.bfloat16(numbers[1, 2]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(a)).numpy(), a.numpy())
    assert wp.full(2, 0.1, dtype=wp.bfloat16).list() == [float(wp.bfloat16(0.1))] * 2
    wide = wp.zeros((3, 4), dtype=float)
    wp.copy(wide, a)
    np.testing.assert_array_equal(wide.numpy(), a.numpy().astype(np.float32))
    assert (a + a).dtype is wp.bfloat16
    assert V3(0.1, 1.0, 2.0)[0] == float(wp.bfloat16(0.1))


def test_kernels_round_every_operation() -> None:
    x = wp.array(RNG.uniform(-3, 3, 64), dtype=wp.bfloat16)
    y, wide = wp.zeros_like(x), wp.zeros(64, dtype=float)
    wp.launch(steps, 64, inputs=[x, 1.7], outputs=[y, wide])
    with np.errstate(all="ignore"):
        want = expected(x.numpy(), BF.type(1.7))
    np.testing.assert_array_equal(y.numpy(), want[0])
    np.testing.assert_array_equal(wide.numpy(), want[1])
    other = [np.zeros(64, BF), np.zeros(64, np.float32)]
    interpret(steps.ir, [x.numpy().copy(), BF.type(1.7), *other], 64)
    np.testing.assert_array_equal(other[0], y.numpy())
    np.testing.assert_array_equal(other[1], wide.numpy())


def test_conversions() -> None:
    x = wp.array([2.7, -2.7, 1e30, np.nan, np.inf], dtype=wp.bfloat16)
    i, d = wp.zeros(5, dtype=int), wp.zeros(5, dtype=wp.float64)
    h, back = wp.zeros(5, dtype=wp.float16), wp.zeros_like(x)
    wp.launch(converted, 5, inputs=[x], outputs=[i, d, h, back])
    assert i.numpy().tolist() == [2, -2, 2**31 - 1, 0, 2**31 - 1]
    np.testing.assert_array_equal(d.numpy(), x.numpy().astype(np.float64))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(h.numpy(), x.numpy().astype(np.float16))
    again = (d.numpy() * 1.01).astype(np.float32).astype(BF)
    np.testing.assert_array_equal(back.numpy().astype(float), again.astype(float))


def test_gradients() -> None:
    x = wp.array(RNG.uniform(0.2, 1.0, 6), dtype=wp.bfloat16, requires_grad=True)
    y, wide = wp.zeros_like(x), wp.zeros(6, dtype=float, requires_grad=True)
    assert gradcheck(steps, 6, inputs=[x, wp.bfloat16(1.5)], outputs=[y, wide])
    with wp.Tape() as tape:
        wp.launch(steps, 6, inputs=[x, 1.5], outputs=[y, wide])
    tape.backward(grads={wide: np.ones(6)})
    h, at = 1e-6, x.numpy().astype(np.float64)

    def lifted(v):
        u = v * 1.5 + float(wp.bfloat16(0.3))
        for _ in range(2):
            u = np.sqrt(np.abs(u)) - v / (u * u + 1.0)
        return 2.0 * u

    slope = (lifted(at + h) - lifted(at - h)) / (2 * h)
    np.testing.assert_allclose(x.grad.numpy().astype(float), slope, rtol=0.05, atol=0.03)
    assert x.grad.dtype is wp.bfloat16


def test_vectors_and_atomics() -> None:
    v = RNG.integers(-3, 4, (5, 3)).astype(np.float32)
    x = wp.array(v, dtype=V3, requires_grad=True)
    y = wp.zeros(2, dtype=wp.bfloat16, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(vectors, 5, inputs=[x], outputs=[y])
    assert y.list() == [float((v * v).sum()), max(float(v[:, 1].max()), 0.0)]
    tape.backward(grads={y: np.array([1.0, 0.0])})
    np.testing.assert_array_equal(x.grad.numpy().astype(np.float32), 2 * v)


def test_forward_mode() -> None:
    x = wp.array([0.5, 0.75], dtype=wp.bfloat16, requires_grad=True)
    y, wide = wp.zeros_like(x), wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(steps, 2, inputs=[x, 1.5], outputs=[y, wide])
    tangent = wp.array([1.0, 1.0], dtype=wp.bfloat16)
    got = jvp(tape, tangents={x: tangent}, outputs=[wide])
    tape.backward(grads={wide: np.ones(2)})
    np.testing.assert_allclose(
        got[wide].numpy(), x.grad.numpy().astype(np.float32), rtol=0.05, atol=0.03
    )
