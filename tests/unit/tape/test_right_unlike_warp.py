"""Gradients that Warp does not track or counts twice are exact here, without a warning."""

import warnings

import numpy as np
import pytest

import engine as wp
from tests.unit.tape.kernels import double, total

VALUES = np.arange(1.0, 5.0, dtype=np.float32)


def arrays(*kept):
    return [wp.array(VALUES, dtype=float, requires_grad=True, retain_grad=k) for k in kept]


@pytest.fixture(autouse=True)
def _silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_retained_gradients_do_not_revive_what_was_overwritten():
    x, s, y = arrays(False, False, True)
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, 4, [x], [y])
        wp.copy(y, s)
        wp.launch(total, 4, [y, loss])
    tape.backward(loss)
    assert s.grad.list() == [1, 1, 1, 1]
    assert x.grad.list() == [0, 0, 0, 0]  # the loss is the sum of `s` alone
    assert y.grad.list() == [1, 1, 1, 1]  # kept


@pytest.mark.parametrize(("to", "since", "count"), [(1, 0, 3), (0, 1, 3), (2, 0, 2), (1, 0, 1)])
def test_copies_within_an_array(to, since, count):
    weights = np.array([1.0, 10.0, 100.0, 1000.0], dtype=np.float32)
    (y,) = arrays(False)
    with wp.Tape() as tape:
        wp.copy(y, y, dest_offset=to, src_offset=since, count=count)
    after = VALUES.copy()
    after[to : to + count] = VALUES[since : since + count]
    np.testing.assert_array_equal(y.numpy(), after)
    tape.backward(grads={y: wp.array(weights, dtype=float)})
    slope = weights.copy()  # of what no copy replaced; then what was copied elsewhere
    slope[to : to + count] = 0.0
    slope[since : since + count] += weights[to : to + count]
    np.testing.assert_array_equal(y.grad.numpy(), slope)


def test_copies_of_a_component_that_is_not_contiguous():
    base = wp.array(np.ones((4, 2)), dtype=float, requires_grad=True)
    (s,) = arrays(False)
    with wp.Tape() as tape:
        wp.copy(base[:, 1], s)
    tape.backward(grads={base: wp.array(np.arange(8.0).reshape(4, 2), dtype=float)})
    assert s.grad.list() == [1, 3, 5, 7]
    assert base.grad.numpy().tolist() == [[0, 0], [2, 0], [4, 0], [6, 0]]
