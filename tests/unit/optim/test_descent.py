"""`Adam` and `SGD` against the same steps in float64."""

import numpy as np
import pytest

import engine as wp
from engine.optim import SGD, Adam

RNG = np.random.default_rng(3)
KINDS = [
    (wp.float32, (), 1e-6),
    (wp.float64, (), 1e-14),
    (wp.float16, (), 2e-3),
    (wp.vec3, (3,), 1e-6),
]


def adam(p, grads, lr, b1, b2, eps):
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        p = p - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    return p


def sgd(p, grads, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    b = None
    for g in grads:
        g = g + weight_decay * p
        if momentum:
            b = g if b is None else momentum * b + (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        p = p - lr * g
    return p


def run(optimizer, params, grads):
    optimizer.set_params([params])
    for g in grads:
        optimizer.step([wp.array(g, dtype=params.dtype, shape=params.shape)])
    return params.numpy().astype(np.float64)


@pytest.mark.parametrize(("kind", "inner", "rtol"), KINDS)
def test_adam(kind, inner, rtol) -> None:
    start, grads = RNG.standard_normal((2, 4, *inner)), RNG.standard_normal((5, 2, 4, *inner))
    got = run(Adam(lr=0.1, betas=(0.8, 0.99), eps=1e-6), wp.array(start, dtype=kind), grads)
    np.testing.assert_allclose(got, adam(start, grads, 0.1, 0.8, 0.99, 1e-6), rtol=0, atol=8 * rtol)


@pytest.mark.parametrize("options", [
    {}, {"momentum": 0.9}, {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
    {"momentum": 0.9, "nesterov": True},
])  # fmt: skip
@pytest.mark.parametrize(("kind", "inner", "rtol"), KINDS)
def test_sgd(kind, inner, rtol, options) -> None:
    start, grads = RNG.standard_normal((2, 4, *inner)), RNG.standard_normal((5, 2, 4, *inner))
    got = run(SGD(lr=0.1, **options), wp.array(start, dtype=kind), grads)
    np.testing.assert_allclose(got, sgd(start, grads, 0.1, **options), rtol=0, atol=8 * rtol)


@wp.kernel
def bowl(x: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.dot(x[i], x[i]))


def test_a_loop_of_steps_finds_the_minimum() -> None:
    x = wp.array([[0.5, -0.3], [0.1, 0.2]], dtype=wp.vec2, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(bowl, dim=2, inputs=[x, loss])
    optimizer = Adam([x.flatten()], lr=0.05)
    for _ in range(100):
        tape.zero()
        tape.backward(loss)
        optimizer.step([x.grad.flatten()])
    assert np.abs(x.numpy()).max() < 0.02


def test_strided_parameters_and_state() -> None:
    whole = wp.ones(6, dtype=float)
    optimizer = SGD([whole[::2]], lr=0.5, momentum=0.5)
    optimizer.step([wp.ones(3, dtype=float)])
    np.testing.assert_array_equal(whole.numpy(), [0.5, 1, 0.5, 1, 0.5, 1])
    direction = optimizer.b[0]
    optimizer.set_params([wp.zeros(3, dtype=float)])
    assert optimizer.b[0] is direction
    optimizer.reset_internal_state()
    assert optimizer.t == 0
    assert not direction.numpy().any()
    half = Adam([wp.zeros(3, dtype=wp.float16)])
    assert half.m[0].dtype is wp.float32
    kept = half.m[0]
    half.set_params([wp.zeros(3, dtype=wp.float16)])
    assert half.m[0] is kept


@pytest.mark.parametrize("cls", [Adam, SGD])
def test_refusals(cls) -> None:
    p = wp.zeros(2, dtype=float)
    with pytest.raises(RuntimeError, match="must be set before"):
        cls().step([])
    with pytest.raises(TypeError, match="dtype float32, got int32"):
        cls([p]).step([wp.zeros(2, dtype=int)])
    with pytest.raises(ValueError, match=r"shape \(2,\), got \(2, 1\)"):
        cls([p]).step([wp.zeros((2, 1), dtype=float)])
    with pytest.raises(TypeError, match="a gradient is an array, got NoneType"):
        cls([p]).step([p.grad])
    for wrong in (None, "0.1"):
        with pytest.raises(TypeError, match=f"lr must be a number, got {wrong!r}"):
            cls([p], lr=wrong).step([p])
    with pytest.raises(TypeError, match=r"betas are two numbers, got \(0.5,\)"):
        Adam([p], betas=(0.5,))
    assert not p.numpy().any()
    with pytest.raises(RuntimeError, match="1 parameters, but 2 gradients"):
        cls([p]).step([p, p])
    with pytest.raises(TypeError, match="arrays of floats, got int32"):
        cls([wp.zeros(2, dtype=int)])
    with pytest.raises(ValueError, match="nesterov needs momentum"):
        SGD([p], nesterov=True)


@pytest.mark.parametrize("kind", [wp.optim.Adam, wp.optim.SGD])
def test_several_arrays_are_a_list(kind):
    a = wp.ones(2, dtype=float, requires_grad=True)
    for use in (lambda: kind(a), lambda: kind([a]).step(None), lambda: kind([a]).step(a.grad)):
        with pytest.raises(TypeError, match="list of arrays") as refused:
            use()
        assert refused.value.diagnostics[0].code == "E202"
    assert a.list() == [1.0, 1.0]
