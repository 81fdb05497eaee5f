"""Tapes: copies and overwrites."""

import numpy as np
import pytest

import engine as wp
from engine.tape.records import CopyRecord, FillRecord
from tests.unit.tape.kernels import (
    double,
    grad_of,
    source,
    total,
    total64,
)

# ---- copies and overwrites


@pytest.mark.parametrize(
    "how",
    [
        lambda z, y: wp.copy(z, y),
        lambda z, y: z.assign(y),
        lambda z, y: z.__setitem__(slice(None), y),
        lambda z, y: wp.copy(z[::-1], y[::-1]),
        lambda z, y: wp.copy(z.reshape((3, 1)), y),
    ],
)
def test_copies_pass_gradients(how):
    x = source()
    y, z = wp.zeros_like(x), wp.full_like(x, 9.0)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        how(z, y)
    assert isinstance(tape.records[1], CopyRecord)
    assert z.list() == [2, 4, 6]
    assert grad_of(tape, x, z) == [2, 2, 2]
    assert z.grad.list() == [0, 0, 0]


def test_clone_passes_gradients():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        z = wp.clone(y)
        cut = wp.clone(y, requires_grad=False)
    assert cut.list() == z.list()
    assert len(tape.records) == 2
    assert grad_of(tape, x, z) == [2, 2, 2]


def test_partial_copy():
    x = wp.array([1, 2, 3, 4], dtype=float, requires_grad=True)
    y = wp.array([5, 6, 7, 8], dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x, dest_offset=1, src_offset=2, count=2)
    assert y.list() == [5, 3, 4, 8]
    tape.backward(grads={y: np.array([1, 2, 3, 4])})
    assert x.grad.list() == [0, 0, 2, 3]
    assert y.grad.list() == [1, 0, 0, 4]


def test_copy_within_an_array():
    x = wp.array([1, 2, 3, 4], dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(x, x, dest_offset=1, count=3)
    tape.backward(grads={x: np.array([1, 10, 100, 1000])})
    assert x.grad.list() == [11, 100, 1000, 0]


def test_copy_between_widths():
    x = source()
    y, loss = wp.zeros(3, dtype=wp.float64, requires_grad=True), None
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x)
        wp.launch(total64, 3, [y, loss])
    tape.backward(loss)
    assert x.grad.list() == [2, 4, 6]
    assert x.grad.dtype is wp.float32


def test_copy_of_what_has_no_gradient_cuts_it():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        y.assign([1, 2, 3])
    assert grad_of(tape, x, y) == [0, 0, 0]


@pytest.mark.parametrize(
    "how", [lambda y: y.zero_(), lambda y: y.fill_(3.0), lambda y: y.__setitem__(slice(None), 1.0)]
)
def test_an_overwritten_array_passes_no_gradient(how):
    x = source()
    y, z = wp.zeros_like(x), wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        how(y)
        wp.launch(double, 3, [y], [z])
    assert isinstance(tape.records[1], FillRecord)
    assert grad_of(tape, x, z) == [0, 0, 0]


def test_a_buffer_zeroed_before_it_is_used():
    x = source()
    y, loss = wp.ones_like(x), wp.ones(1, requires_grad=True)
    with wp.Tape() as tape:
        y.zero_()
        loss.zero_()
        wp.launch(double, 3, [x], [y])
        wp.launch(total, 3, [y, loss])
    for _ in range(2):
        tape.backward(loss)
        assert x.grad.list() == [2, 2, 2]
        tape.zero()


def test_partly_overwritten():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        y[1] = 0.0
    assert grad_of(tape, x, y) == [2, 0, 2]


def test_writes_without_gradient_are_not_recorded():
    x = source()
    with wp.Tape() as tape:
        wp.zeros(3).zero_()
        x.grad.zero_()
        wp.clone(wp.zeros(3))
    assert tape.records == []


def test_copy_to_every_other_element_of_the_same_array():
    x = wp.array([0, 1, 2, 3, 4, 5], dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(x[::2], x[:3])
    assert x.list() == [0, 1, 1, 3, 2, 5]
    tape.backward(grads={x: np.array([1, 10, 100, 1000, 10000, 0])})
    assert x.grad.list() == [1, 110, 10000, 1000, 0, 0]
