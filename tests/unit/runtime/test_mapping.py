"""`map` and the operators of arrays: values by NumPy, gradients by calculus."""

import operator

import numpy as np
import pytest

import engine as wp
from engine.diagnostics import KernelError

RNG = np.random.default_rng(4)
SHIFT = 2.0


@wp.struct
class Pair:
    a: float
    b: wp.vec2


@wp.func
def swap(p: Pair, s: float):
    out = Pair()
    out.a = p.b[0] * s
    out.b = wp.vec2(p.a, p.b[1])
    return out


@wp.func
def both(x: float, k: int):
    return x * float(k), wp.vec2(x, x * x)


def plain(x, y):
    if x > y:
        return x - y
    return x * y + SHIFT


def made(shape, dtype=wp.float32, **kw):
    return wp.array(RNG.uniform(0.5, 2.0, shape), dtype=dtype, **kw)


def test_builtins_functions_and_lambdas() -> None:
    x, y = made((3, 4)), made((3, 4))
    a, b = x.numpy(), y.numpy()
    np.testing.assert_array_equal(wp.map(wp.clamp, x, 1.0, 1.5).numpy(), a.clip(1.0, 1.5))
    np.testing.assert_allclose(wp.map(plain, x, y).numpy(), np.where(a > b, a - b, a * b + 2), 1e-6)
    k = 3.0
    # fmt: off
    several = [lambda u, v: u * k + v, lambda u, v: u - v * k]
    # fmt: on
    np.testing.assert_allclose(wp.map(several[0], x, y).numpy(), a * 3 + b, rtol=1e-6)
    np.testing.assert_allclose(wp.map(several[1], x, y).numpy(), a - b * 3, rtol=1e-5, atol=1e-6)
    assert wp.map(lambda u: wp.vec3(u, u, k), x).dtype is wp.vec3
    conditions = wp.array([True, False, True])
    np.testing.assert_array_equal(wp.map(wp.where, conditions, 1.0, 0.0).numpy(), [1, 0, 1])
    first, second = wp.map(both, x, 2)
    np.testing.assert_allclose(first.numpy(), 2 * a)
    np.testing.assert_allclose(second.numpy()[..., 1], a * a, rtol=1e-6)


def test_what_is_captured_is_read_at_the_call() -> None:
    x = wp.array([1.0, 2.0])
    got = [wp.map(lambda u: u * s, x).numpy().tolist() for s in (2.0, 3.0, 2.0)]
    assert got == [[2.0, 4.0], [3.0, 6.0], [2.0, 4.0]]


def test_structs_and_indexed_arrays() -> None:
    p = Pair()
    p.a, p.b = 1.0, wp.vec2(2.0, 3.0)
    (q,) = wp.map(swap, wp.array([p], dtype=Pair), 10.0).list()
    assert (q.a, q.b) == (20.0, wp.vec2(1.0, 3.0))
    data = wp.array(np.arange(6.0), dtype=float)
    picked = data[wp.array([1, 3], dtype=int)]
    assert wp.map(lambda u: u * 10.0, picked).numpy().tolist() == [10.0, 30.0]
    picked += 0.5
    assert data.numpy().tolist() == [0.0, 1.5, 2.0, 3.5, 4.0, 5.0]


def test_gradients_and_broadcasting() -> None:
    x = made((1, 3), wp.float64, requires_grad=True)
    y = made((2, 1), wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        z = wp.map(lambda u, v: wp.sin(u) * v + 0.5, x, y)
    a, b = x.numpy(), y.numpy()
    np.testing.assert_allclose(z.numpy(), np.sin(a) * b + 0.5)
    seed = RNG.standard_normal((2, 3))
    tape.backward(grads={z: seed})
    np.testing.assert_allclose(x.grad.numpy(), (seed * np.cos(a) * b).sum(0, keepdims=True))
    np.testing.assert_allclose(y.grad.numpy(), (seed * np.sin(a)).sum(1, keepdims=True))


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod]


@pytest.mark.parametrize("op", OPERATORS)
def test_operators_of_arrays(op) -> None:
    x, y = (made(4, wp.float64, requires_grad=True) for _ in range(2))
    a, b = x.numpy().copy(), y.numpy().copy()
    with wp.Tape() as tape:
        z = op(x, y)
    np.testing.assert_allclose(z.numpy(), op(a, b))
    tape.backward(grads={z: np.ones(4)})
    h = 1e-6
    np.testing.assert_allclose(x.grad.numpy(), (op(a + h, b) - op(a - h, b)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(y.grad.numpy(), (op(a, b + h) - op(a, b - h)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(op(x, 1.5).numpy(), op(a, 1.5))
    np.testing.assert_allclose(op(2, x).numpy(), op(2, a))


def test_in_place_operators_pass_gradients() -> None:
    x = made(3, requires_grad=True)
    with wp.Tape() as tape:
        y = wp.clone(x)
        kept = y
        y += x
        y *= 3.0
        y -= 1.0
        y /= 2.0
    assert y is kept
    np.testing.assert_allclose(y.numpy(), (6 * x.numpy() - 1) / 2, rtol=1e-6)
    tape.backward(grads={y: np.float32([1, 2, 3])})
    np.testing.assert_allclose(x.grad.numpy(), [3, 6, 9])


def test_operators_of_integers_and_vectors() -> None:
    i, j = wp.array([7, -7, 5], dtype=int), wp.array([2, 2, -3], dtype=int)
    assert (i / j).numpy().tolist() == [3, -3, -1]  # as in kernels
    assert (i * 2 - j).numpy().tolist() == [12, -16, 13]
    assert (-i).numpy().tolist() == [-7, 7, -5]
    v = wp.array([[1.0, 2.0], [3.0, 4.0]], dtype=wp.vec2)
    np.testing.assert_array_equal((v + wp.vec2(1.0, 0.0)).numpy(), [[2, 2], [4, 4]])
    np.testing.assert_array_equal((wp.vec2(1.0, 0.0) - v).numpy(), [[0, -2], [-2, -4]])
    np.testing.assert_array_equal((2.0 * v).numpy(), v.numpy() * 2)
    np.testing.assert_array_equal(i.numpy() + i, [14, -14, 10])
    with pytest.raises(TypeError):
        _ = i + 0.5
    with pytest.raises(TypeError):
        _ = i + "a"


def test_a_kernel_alone() -> None:
    kernel = wp.map(lambda u: u + 2.0, wp.zeros(3, dtype=float), return_kernel=True)
    out = wp.zeros(5, dtype=float)
    wp.launch(kernel, dim=5, inputs=[wp.zeros(5, dtype=float)], outputs=[out])
    assert out.numpy().tolist() == [2.0] * 5


def test_refusals() -> None:
    x = wp.ones(3, dtype=float)
    for call, match in [
        (lambda: wp.map(wp.sin, 1.0), "one input at least"),
        (lambda: wp.map(wp.add, x, wp.ones(2, dtype=float)), r"\(3,\) and \(2,\) cannot be broad"),
        (lambda: wp.map(wp.sin, x, out=wp.ones(2, dtype=float)), r"needs shape \(3,\), got \(2,\)"),
        (lambda: wp.map(wp.sin, x, out=wp.ones(3, dtype=int)), "elements of float32, got int32"),
        (lambda: wp.map(both, x, 1, out=x), "2 results, but `out` has 1"),
        (lambda: wp.map(wp.sin, x, out=3), "is an array, got int"),
        (lambda: wp.map(wp.add, x, "a"), "'a' is no array, number"),
    ]:
        with pytest.raises(wp.EngineError, match=match) as e:
            call()
        assert isinstance(e.value, TypeError)
        assert "test_mapping.py" in str(e.value)
    for call, match in [
        (lambda: wp.map(both, x), "both"),
        (lambda: wp.map(lambda u: u + u.q, x), "q"),
        (lambda: wp.map(3, x), "no function that kernels can call"),
    ]:
        with pytest.raises(KernelError, match=match):
            call()


def test_a_function_that_does_not_take_the_elements_is_refused_at_the_call():
    """It was an error of a line that nobody wrote."""
    v = wp.ones(2, dtype=wp.vec2)
    with pytest.raises(KernelError, match=r"map: `mul` does not take \(vec2f, vec2f\)") as refused:
        wp.map(wp.mul, v, v)
    found = refused.value.diagnostics[0]
    assert (found.code, found.span.file) == ("E104", __file__)
