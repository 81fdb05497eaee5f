"""`array_sum` and `array_inner`: values by NumPy, gradients by what sums are."""

import numpy as np
import pytest

import engine as wp
from engine.utils import UtilityError, array_inner, array_sum

RNG = np.random.default_rng(7)
KINDS = [(wp.float32, ()), (wp.float64, ()), (wp.vec3, (3,)), (wp.mat22d, (2, 2))]
AXES = [None, 0, 1, 2, -1, -3]


def made(kind, inner, shape=(2, 3, 4), **kw):
    return wp.array(RNG.standard_normal(shape + inner), dtype=kind, shape=shape, **kw)


def tolerance(a):
    return {"rtol": 1e-5 if a._parts.dtype == np.float32 else 1e-12, "atol": 1e-5}


@pytest.mark.parametrize(("kind", "inner"), KINDS)
@pytest.mark.parametrize("axis", AXES)
def test_sum_on_the_host_and_on_a_tape(kind, inner, axis) -> None:
    x = made(kind, inner, requires_grad=True)
    want = x.numpy().sum(axis % 3, keepdims=True) if axis is not None else None
    if want is None:
        want = x.numpy().reshape(-1, *inner).sum(0)[None]
    out = wp.zeros(want.shape[: want.ndim - len(inner)], dtype=kind, requires_grad=True)
    assert array_sum(x, out=out, axis=axis) is out
    np.testing.assert_allclose(out.numpy(), want, **tolerance(x))
    out.fill_(7.0)
    with wp.Tape() as tape:
        array_sum(x, out=out, axis=axis)
    np.testing.assert_allclose(out.numpy(), want, **tolerance(x))
    seed = RNG.standard_normal(want.shape).astype(out._parts.dtype)
    tape.backward(grads={out: seed})
    expected = np.broadcast_to(seed if axis is not None else seed[0], x.numpy().shape)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize(("kind", "inner"), KINDS)
@pytest.mark.parametrize("axis", AXES)
def test_inner_on_the_host_and_on_a_tape(kind, inner, axis) -> None:
    a, b = (made(kind, inner, requires_grad=True) for _ in range(2))
    product = a.numpy() * b.numpy()
    product = product.sum(tuple(range(3, product.ndim)))
    want = product.sum(axis, keepdims=True) if axis is not None else product.sum()[None]
    scalar = wp.types.type_scalar_type(kind)
    out = wp.zeros(want.shape, dtype=scalar, requires_grad=True)
    array_inner(a, b, out=out, axis=axis)
    np.testing.assert_allclose(out.numpy(), want, **tolerance(a))
    with wp.Tape() as tape:
        array_inner(a, b, out=out, axis=axis)
    np.testing.assert_allclose(out.numpy(), want, **tolerance(a))
    seed = RNG.standard_normal(want.shape).astype(out._parts.dtype)
    tape.backward(grads={out: seed})
    spread = np.broadcast_to(seed if axis is not None else seed[0], (2, 3, 4))
    spread = spread.reshape(2, 3, 4, *(1 for _ in inner))
    np.testing.assert_allclose(a.grad.numpy(), spread * b.numpy(), **tolerance(a))
    np.testing.assert_allclose(b.grad.numpy(), spread * a.numpy(), **tolerance(a))


def test_counts_and_strides() -> None:
    x = made(wp.float64, (), requires_grad=True)
    assert array_sum(x, value_count=5) == pytest.approx(x.numpy().ravel()[:5].sum())
    got = array_inner(x, x, count=2, axis=1).numpy()
    np.testing.assert_allclose(got, (x.numpy()[:, :2] ** 2).sum(1, keepdims=True))
    with wp.Tape() as tape:
        part = x[:, ::2].transpose((2, 0, 1))
        out = array_inner(part, part, axis=-1, count=1)
    np.testing.assert_allclose(out.numpy()[..., 0], x.numpy()[:, 0].T ** 2)
    tape.backward(grads={out: wp.ones_like(out)})
    want = np.zeros((2, 3, 4))
    want[:, 0] = 2 * x.numpy()[:, 0]
    np.testing.assert_allclose(x.grad.numpy(), want)


def test_strided_result_on_a_tape() -> None:
    x = made(wp.float32, (), (3, 4), requires_grad=True)
    whole = wp.full((3, 2), 5.0, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        array_sum(x, out=whole[:, 1:], axis=1)
    np.testing.assert_allclose(whole.numpy()[:, 1], x.numpy().sum(1), rtol=1e-5)
    assert (whole.numpy()[:, 0] == 5.0).all()
    tape.backward(grads={whole: np.float32([[9, 1], [9, 2], [9, 3]])})
    np.testing.assert_array_equal(x.grad.numpy(), np.repeat([[1], [2], [3]], 4, 1))


def test_empty_and_numbers() -> None:
    assert array_sum(wp.zeros(0, dtype=float)) == 0.0
    np.testing.assert_array_equal(array_sum(wp.zeros((0, 3), dtype=float), axis=0).numpy(),
                                  np.zeros((1, 3)))  # fmt: skip
    assert array_inner(wp.zeros(0, dtype=wp.vec2), wp.zeros(0, dtype=wp.vec2)) == 0.0
    np.testing.assert_array_equal(array_sum(wp.ones(4, dtype=wp.vec2)), [4.0, 4.0])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: array_sum(x, axis=2), IndexError, r"axis 2 is out of bounds"),
        (lambda x: array_sum(x, axis=1.0), TypeError, "axis must be an integer"),
        (lambda x: array_sum(x, value_count="1"), TypeError, "must be an integer"),
        (lambda x: array_sum(wp.zeros(3, dtype=int)), RuntimeError, "takes floats, got int32"),
        (lambda x: array_sum(x, out=wp.zeros(2, dtype=float)), RuntimeError, r"shape \(1,\)"),
        (lambda x: array_sum(x, out=wp.zeros(1, dtype=wp.float64)), RuntimeError, "float32"),
        (lambda x: array_sum(x, value_count=99), UtilityError, "99 elements"),
        (lambda x: array_inner(x, x.reshape(6)), ValueError, "differ in shape"),
        (lambda x: array_inner(x, wp.zeros((2, 3), dtype=wp.float64)), RuntimeError, "in type"),
        (lambda x: array_sum([1.0]), TypeError, "values is an array, got list"),
    ],
)  # fmt: skip
def test_refusals(call, error, match) -> None:
    with pytest.raises(error, match=match) as e:
        call(wp.ones((2, 3), dtype=float))
    assert "E20" in str(e.value) and __file__ in str(e.value)


def test_in_a_captured_graph() -> None:
    x = wp.ones((2, 3), dtype=float)
    whole = wp.zeros(1, dtype=float)
    with wp.ScopedCapture() as capture:
        rows = array_sum(x, axis=1)
        array_inner(x, x, out=whole)
    for k in (2.0, 3.0):
        x.fill_(k)
        wp.capture_launch(capture.graph)
        assert rows.numpy().tolist() == [[3 * k], [3 * k]]
        assert whole.numpy()[0] == 6 * k * k
