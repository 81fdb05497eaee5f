"""Tapes: what the backward pass computes, and its seeds."""

import warnings

import numpy as np
import pytest

import engine as wp
from engine import TapeError
from engine.runtime.transfer import VAST
from tests.unit.tape.kernels import (
    double,
    grid,
    indices,
    lengths,
    no_backward,
    source,
    square,
    square_in_place,
    total,
)

# ---- what the adjoint needs


def test_in_place_is_exact():
    x, loss = source(), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square_in_place, 3, [x])
        wp.launch(square_in_place, 3, [x])
        wp.launch(total, 3, [x, loss])
    tape.backward(loss)
    assert x.grad.list() == [4.0 * v**3 for v in (1, 2, 3)]
    tape.zero()
    tape.backward(loss)  # the journal is read again
    assert x.grad.list() == [4.0 * v**3 for v in (1, 2, 3)]


def test_aliased_arguments_are_exact():
    x, loss = source(), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [x])  # read and written through two parameters
        wp.launch(total, 3, [x, loss])
    tape.backward(loss)
    assert x.grad.list() == [2, 4, 6]


def test_overlapping_views_are_exact():
    base = wp.array([2.0, 3, 5, 7], dtype=float, requires_grad=True)
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, 2, [base[1:4]], [base[1:3]])
        wp.launch(total, 4, [base, loss])
    tape.backward(loss)
    assert base.grad.list() == [1, 6, 10, 1]


def test_vectors_and_grids():
    v = wp.array([[1, 2, 3], [4, 5, 6]], dtype=wp.vec3, requires_grad=True)
    out = wp.zeros(2, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(lengths, 2, [v], [out])
    tape.backward(grads={out: wp.ones(2)})
    assert v.grad.list() == [wp.vec3(2, 4, 6), wp.vec3(8, 10, 12)]
    x = wp.array(np.arange(6).reshape(2, 3), dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(grid, (3, 2), [x.transpose()], [y.transpose()])
    tape.backward(grads={y: wp.ones((2, 3))})
    assert x.grad.list() == [0, 2, 4, 6, 8, 10]


def test_requires_grad_dropped_after_recording():
    x, w = source(), source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        wp.launch(square_in_place, 3, [w])
    x.requires_grad = False
    w.requires_grad = False
    tape.backward(grads={y: wp.ones(3)})
    assert x.grad is None
    assert y.grad.list() == [0, 0, 0]


def test_requires_grad_set_after_recording():
    x, y = wp.array([1, 2, 3], dtype=float), wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
    x.requires_grad = True
    tape.backward(grads={y: wp.ones(3)})
    assert x.grad.list() == [2, 4, 6]


def test_requires_grad_set_too_late():
    x = wp.array([1, 2, 3], dtype=float)
    with wp.Tape() as tape:
        wp.launch(square_in_place, 3, [x])
    x.requires_grad = True
    with pytest.raises(TapeError, match="requires_grad was set on x"):
        tape.backward(grads={x: wp.ones(3)})


def test_replaced_gradient_arrays_are_used():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
    mine = wp.zeros(3)
    x.grad = mine
    tape.backward(grads={y: wp.ones(3)})
    assert mine.list() == [2, 2, 2]


def test_kernels_without_backward_warn():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(no_backward, 3, [x], [y])
    with pytest.warns(UserWarning, match="no_backward"):
        tape.backward(grads={y: wp.ones(3)})
    assert x.grad.list() == [0, 0, 0]
    out = wp.zeros(3)
    with wp.Tape() as tape, warnings.catch_warnings():
        wp.launch(no_backward, 3, [x], [out])
        tape.backward()


def test_integer_launches_do_nothing_backward():
    a, b = wp.array([1, 2], dtype=int), wp.zeros(2, dtype=int)
    with wp.Tape() as tape:
        wp.launch(indices, 2, [a], [b])
    tape.backward()
    assert tape.gradients == {}


# ---- seeds


@pytest.mark.parametrize(
    "seed",
    [
        lambda: {"loss": wp.zeros(1)},
        lambda: {"loss": wp.zeros(2, requires_grad=True)},
        lambda: {"loss": wp.zeros(0, requires_grad=True)},
        lambda: {"loss": wp.zeros(1, dtype=wp.vec3, requires_grad=True)},
        lambda: {"loss": 1.0},
        lambda: {"grads": {wp.zeros(1): wp.zeros(2)}},
        lambda: {"grads": {wp.zeros(1, dtype=int): wp.zeros(1, dtype=int)}},
        lambda: {"grads": {wp.zeros(2, requires_grad=True): wp.zeros(3)}},
        lambda: {"grads": {wp.zeros(2, requires_grad=True): wp.zeros(2, dtype=wp.float64)}},
        lambda: {"grads": {wp.zeros(2, requires_grad=True): np.zeros(3)}},
        lambda: {"grads": {wp.zeros(2, requires_grad=True): ["a", "b"]}},
        lambda: {"grads": {"x": wp.zeros(3)}},
        lambda: {"grads": [wp.zeros(3)]},
    ],
)
def test_bad_seeds(seed):
    with pytest.raises(TapeError) as e:
        wp.Tape().backward(**seed())
    assert e.value.diagnostics[0].code == "E402"
    assert e.value.diagnostics[0].span.file == __file__


@wp.kernel
def doubled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


def test_an_output_comes_to_require_a_gradient_with_its_cotangent():
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    y, other = wp.zeros(2), wp.zeros(2)
    with wp.Tape() as tape:
        wp.launch(doubled, 2, [x], [y])
    with pytest.raises(TapeError):
        tape.backward(grads={y: [1.0, 1.0], other: [1.0, 1.0, 1.0]})
    assert not y.requires_grad  # nothing is done where something does not fit
    tape.backward(grads={y: np.array([1.0, 10.0])})
    assert x.grad.list() == [2, 20]
    assert y.requires_grad


@wp.struct
class Pair:
    n: int
    x: wp.array(dtype=float)
    y: wp.array(dtype=float)


@wp.struct
class Nested:
    pair: Pair
    scale: float


@wp.kernel
def through(s: Nested, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = s.pair.x[i] * s.pair.y[i] * s.scale


def test_gradients_of_structs():
    s = Nested(Pair(2, wp.array([1.0, 2.0], requires_grad=True, dtype=float), wp.ones(2)), 3.0)
    out = wp.zeros(2, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(through, 2, [s], [out])
    tape.backward(grads={out: [1.0, 1.0]})
    for got in (tape.gradients[s], tape.get_adjoint(s)):
        assert isinstance(got, Nested)
        assert got.pair.x is s.pair.x.grad
        assert got.pair.x.list() == [3, 3]
        assert got.pair.y is None  # requires none
        assert (got.pair.n, got.scale) == (2, 3.0)
    assert tape.gradients[s.pair.x] is s.pair.x.grad
    assert s in tape.gradients and s.pair.x in tape.gradients
    assert tape.gradients.get(s).pair.x is tape.gradients.get(s.pair.x) is s.pair.x.grad
    for stranger in (Pair(), Nested(), object(), wp.zeros(2)):
        with pytest.raises(KeyError):
            tape.gradients[stranger]
        assert stranger not in tape.gradients and tape.gradients.get(stranger, 5) == 5
    x = s.pair.x
    tape.reset()
    assert tape.gradients == {}
    assert tape.gradients[s].pair.x is tape.gradients[x] is x.grad
    assert x.grad.list() == [0, 0]
    with pytest.raises(KeyError):
        tape.gradients[Nested()]


def test_seeds_are_copied():
    y = wp.zeros(3, requires_grad=True)
    seed = wp.full(3, 5.0)
    wp.Tape().backward(grads={y: seed})
    assert y.grad.list() == [5, 5, 5]
    assert y.grad is not seed
    seed.zero_()
    assert y.grad.list() == [5, 5, 5]
    tape = wp.Tape()
    tape.backward(grads={y: None})
    assert y.grad.list() == [5, 5, 5]
    tape.backward(grads={y: y.grad})
    assert y.grad.list() == [5, 5, 5]
    tape.backward(grads={y: np.arange(3)})
    assert y.grad.list() == [0, 1, 2]
    tape.zero()
    assert y.grad.list() == [0, 0, 0]


def test_loss_and_seeds_together():
    x = source()
    y, loss = wp.zeros_like(x), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss, grads={y: wp.ones(3)})
    assert x.grad.list() == [3, 3, 3]


def test_empty_tape():
    tape = wp.Tape()
    tape.backward()
    assert tape.gradients == {}
    tape.reset()


@pytest.mark.parametrize("count", [3, VAST // 4 + 5])
def test_cotangents_that_lie_in_gradients(count: int) -> None:
    """Those that are set first do not change others."""

    @wp.kernel
    def scaled(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = 2.0 * x[i]
        z[i] = 10.0 * x[i]

    memory = wp.zeros(count + 1, dtype=float)
    x, y, z = (wp.zeros(count, dtype=float, requires_grad=True) for _ in range(3))
    y.grad, z.grad = memory[:-1], memory[1:]
    with wp.Tape() as tape:
        wp.launch(scaled, dim=count, inputs=[x], outputs=[y, z])
    found = []
    for copied in (True, False):
        x.grad.zero_()
        memory.assign(np.arange(count + 1) % 11)
        given = [memory[1:], memory[:-1]]
        tape.backward(
            grads=dict(zip((y, z), [g.numpy() for g in given] if copied else given, strict=True))
        )
        found.append([x.grad.numpy(), memory.numpy()])
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert found[0][0].any()


def test_many_cotangents_may_be_the_gradient_itself() -> None:
    n = VAST // 4 + 1
    x = wp.array(np.arange(n) % 7, dtype=float, requires_grad=True)
    y = wp.zeros(n, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=n, inputs=[x], outputs=[y])
    y.grad.fill_(3.0)
    tape.backward(grads={y: y.grad})
    np.testing.assert_array_equal(x.grad.numpy(), 6.0 * x.numpy())
