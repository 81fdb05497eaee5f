"""The same for memory that several arrays of a launch have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.tape import seeding
from tests.unit.tape.seeded import (
    F,
    adds,
    guarded,
    plain,
    recorded_pass,
    reverses,
    same,
)

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("small")]


def _shared_gradient(n: int) -> tuple[Any, ...]:
    x, y = (wp.array(np.full(n, 0.5, np.float32), requires_grad=True) for _ in range(2))
    y.grad = x.grad
    return [x, y, 2.0], y, x


def _shared_memory(n: int) -> tuple[Any, ...]:
    x, y = (wp.array(np.full(n, 0.5, np.float32), requires_grad=True) for _ in range(2))
    y.grad = x.grad[:]
    return [x, y, 2.0], y, x


def _gradient_as_input(n: int) -> tuple[Any, ...]:
    y = wp.array(np.full(n, 0.5, np.float32), requires_grad=True)
    x = y.grad
    x.requires_grad = True
    return [x, y, 2.0], y, x


def _input_as_gradient(n: int) -> tuple[Any, ...]:
    x, y = (wp.array(np.full(n, 0.5, np.float32), requires_grad=True) for _ in range(2))
    y.grad = x
    return [x, y, 2.0], y, x


@pytest.mark.parametrize(
    "make", [_shared_gradient, _shared_memory, _gradient_as_input, _input_as_gradient]
)
@pytest.mark.parametrize("kernel", [plain, adds, guarded, reverses], ids=lambda k: k.key)
def test_gradients_that_others_have_too(
    kernel: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their memory is another array's of the launch: it must have what it would have had."""

    def grads() -> list[np.ndarray[Any, Any]]:
        args, y, x = make(3000)
        recorded = wp.Tape()
        with recorded:
            wp.launch(kernel, 3000, args)
        out = []
        for k in range(6):
            recorded.backward(grads={y: np.full(3000, 1.0 + k, np.float32)})
            out += [np.array(wp.clone(a).numpy()) for a in (x.grad, y.grad)]
        return out

    with monkeypatch.context() as m:
        m.setattr(seeding, "VAST", 1 << 60)
        expected = grads()
    same(grads(), expected)


@wp.kernel
def two_names(x: F, y: F, z: F):
    i = wp.tid()
    y[i] = 2.0 * x[i]
    z[i] = 3.0 * x[i]


def test_results_with_two_names() -> None:
    x, y = (wp.array(np.full(3000, 0.5, np.float32), requires_grad=True) for _ in range(2))
    z = y.reshape(3000)
    recorded = wp.Tape()
    with recorded:
        wp.launch(two_names, 3000, [x, y, z])
    for k in range(1, 7):
        recorded.backward(grads={y: np.ones(3000, np.float32)})
        np.testing.assert_array_equal(x.grad.numpy(), np.full(3000, 3.0 * k, np.float32))


@wp.kernel
def unused(x: F, y: F, z: F):
    i = wp.tid()
    y[x.shape[0] - 1 - i] = 3.0 * x[i]


def test_a_gradient_that_goes_by_another_name() -> None:
    """The cotangent is that of an argument that the kernel does not touch."""
    x, y, z = (wp.array(np.full(3000, 0.5, np.float32), requires_grad=True) for _ in range(3))
    z.grad = y.grad
    recorded = wp.Tape()
    with recorded:
        wp.launch(unused, 3000, [x, y, z])
    c = np.linspace(0, 1, 3000, dtype=np.float32)
    for k in range(1, 5):
        recorded.backward(grads={z: c})
        np.testing.assert_allclose(x.grad.numpy(), 3 * k * c[::-1], rtol=1e-6)


@wp.kernel
def both(x: F, y: F, z: F):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * z[i]
    if x[i] > 0.0:
        z[i] = x[i] * 2.0


@wp.kernel
def ahead(x: F, y: F, z: F):
    i = wp.tid()
    if i + 1 < x.shape[0]:
        y[i + 1] = x[i] * 0.5
    z[i] = x[i] * x[i]


RANDOM = (two_names, unused, both, ahead)


def _random_passes(seed: int) -> list[np.ndarray[Any, Any]]:
    """Arrays and gradients that may meet each other, and passes with writes between them."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([256, 700, 1024]))
    one_of = lambda *of: of[int(rng.integers(len(of)))]  # noqa: E731
    values, grads = (wp.array(rng.normal(size=4 * n).astype(np.float32)) for _ in range(2))
    arrays: list[Any] = []
    for _ in range(3):
        how = one_of("own", "own", "own", "part", "view")
        if how == "part":
            at = int(rng.integers(3 * n))
            a = values[at : at + n]
        elif how == "view" and arrays:
            a = one_of(*arrays).reshape(n)
        else:
            a = wp.array(rng.normal(size=n).astype(np.float32))
        a.requires_grad = bool(rng.integers(6))
        if a.requires_grad and a._origin is None:
            where = one_of("own", "own", "own", "part", "shared", "input")
            if where == "part":
                at = int(rng.integers(3 * n))
                a.grad = grads[at : at + n]
            elif where == "shared" and arrays and arrays[-1].requires_grad:
                a.grad = arrays[-1].grad
            elif where == "input" and arrays:
                a.grad = one_of(*arrays)
        arrays.append(a)
    recorded, kernel, of = wp.Tape(), one_of(*RANDOM), one_of(*arrays)
    of.requires_grad = True
    with recorded:
        wp.launch(kernel, n, arrays)
    cotangent = wp.array(rng.normal(size=n).astype(np.float32))
    cotangent = one_of(cotangent, cotangent, cotangent, one_of(*arrays), grads[n // 2 : n // 2 + n])
    out = []
    for _ in range(4):
        recorded.backward(grads={of: cotangent})
        action = one_of("none", "none", "zero", "fill", "see", "address")
        gradient = of.grad
        if action == "zero":
            recorded.zero()
        elif action == "fill":
            gradient[1:7].fill_(2.0)
        elif action == "see":
            gradient.numpy()[3] = 5.0
        elif action == "address" and gradient.is_contiguous:
            wp.array(ptr=gradient.ptr, shape=(3,), dtype=float).fill_(7.0)
        made = [values, grads, *arrays, *(a.grad for a in arrays if a.grad is not None)]
        out += [np.array(wp.clone(a).numpy()) for a in made]
    return out


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 240, 120))
def test_random_arrays_that_meet(
    first: int, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(first, first + 120):
        with monkeypatch.context() as m:
            m.setattr(seeding, "VAST", 1 << 60)
            expected = _random_passes(seed)
        same(_random_passes(seed), expected)
    assert True in taken and False in taken


def test_writes_through_an_address(taken: list[bool]) -> None:
    recorded, x, y, c = recorded_pass(plain, (3000,))
    recorded.backward(grads={y: c})
    recorded.backward(grads={y: c})
    assert taken[-1] is True
    wp.array(ptr=y.grad.ptr, shape=(3000,), dtype=float).fill_(5.0)
    recorded.backward(grads={y: c})
    assert taken[-1] is False
    assert not y.grad.numpy().any()


def test_parts_of_a_larger_array(taken: list[bool]) -> None:
    whole = wp.array(np.linspace(-1, 1, 6000, dtype=np.float32), requires_grad=True)
    y = wp.zeros(6000, dtype=float, requires_grad=True)
    recorded = wp.Tape()
    with recorded:
        wp.launch(plain, dim=3000, inputs=[whole[1000:4000], y[2000:5000], 0.5])
    c = np.ones(6000, np.float32)
    for _ in range(2):
        recorded.backward(grads={y: c})  # of the array of which a part was written
    np.testing.assert_allclose(
        whole.grad.numpy()[1000:4000],
        2 * (0.5 * np.cos(whole.numpy()[1000:4000]) + 2 * whole.numpy()[1000:4000]),
        atol=1e-6,
    )
    assert (y.grad.numpy() == np.r_[np.ones(2000), np.zeros(3000), np.ones(1000)]).all()
