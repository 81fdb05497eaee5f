"""Stores by which threads overwrite each other's values: refused where certain, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import TapeError
from engine.autograd import jvp


@wp.kernel
def last_wins(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] = x[i] * x[i] * 2.0


@wp.kernel
def replaced_by_two(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] = y[1] + x[i]


@wp.kernel
def at_a_uniform_place(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    n = y.shape[0]
    y[n - 1] = wp.sin(x[i - 1 + 1]) + 1.0


@wp.kernel
def component(x: wp.array(dtype=float), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[0][1] = x[i]


@wp.kernel
def column(x: wp.array2d(dtype=float), y: wp.array(dtype=float)):
    i, j = wp.tid()
    y[0] = x[i, j]


def launched(kernel: Any, dim: Any, grad: bool = True) -> tuple[Any, Any, Any]:
    shape = dim if isinstance(dim, tuple) else (dim,)
    x = wp.full(shape, 0.5, dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=wp.vec3 if kernel is component else float, requires_grad=grad)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=dim, inputs=[x, y])
    return tape, x, y


REFUSED = [
    (last_wins, 3), (replaced_by_two, 2), (at_a_uniform_place, 3), (component, 3),
    (column, (2, 1)), (column, (1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "dim"), REFUSED)
def test_refused(kernel: Any, dim: Any) -> None:
    tape, x, y = launched(kernel, dim)
    with pytest.raises(TapeError) as caught:
        tape.backward(grads={y: wp.ones_like(y)})
    (problem,) = caught.value.diagnostics
    assert problem.code == "E407" and problem.span is not None
    assert problem.span.file == __file__ and "atomic_add(y, ...)" in problem.help
    assert "test_clashes.py" in problem.notes[0]
    assert not x.grad.numpy().any()
    with pytest.raises(TapeError, match="one element of 'y'"):
        jvp(tape, tangents={x: wp.ones_like(x)})


def assert_derivatives(kernel: Any, dim: Any, expected: Any) -> None:
    """Both modes run without a diagnostic, and give the sums of the columns of the Jacobian."""
    tape, x, y = launched(kernel, dim)
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(x.grad.numpy().ravel(), expected, rtol=1e-6)
    moved = jvp(tape, tangents={x: wp.ones_like(x)})[y]
    np.testing.assert_allclose(moved.numpy().sum(), np.sum(expected), rtol=1e-6)


# The derivative of each at x = 0.5, by the one thread that runs.
SLOPES = {last_wins: 2.0, at_a_uniform_place: np.cos(0.5)}


@pytest.mark.parametrize("kernel", dict.fromkeys(k for k, _ in REFUSED), ids=lambda k: k.key)
def test_one_thread_is_alone(kernel: Any) -> None:
    assert_derivatives(kernel, (1, 1) if kernel is column else 1, [SLOPES.get(kernel, 1.0)])


def test_no_gradient_no_diagnostic() -> None:
    tape, x, y = launched(last_wins, 3, grad=False)
    tape.backward(grads={})
    assert y.grad is None
    assert x.grad.list() == [0.0] * 3


# ---- what only looks like it


@wp.kernel
def guarded(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if i == 0:
        y[0] = x[i]


@wp.kernel
def after_a_return(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if i > 0:
        return
    y[0] = x[i]


@wp.kernel
def own_element(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i // 2] = x[i]


@wp.kernel
def same_value(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] = x[0] * 2.0
    y[1] = x[i * 0]


@wp.kernel
def chosen(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] = wp.where(i == 1, x[i], y[0])


@wp.kernel
def overwritten_again(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] = x[i]
    y[0] = x[0]


@wp.func
def first(x: wp.array(dtype=float), i: int):
    return x[i - i]


@wp.kernel
def by_a_function(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] = first(x, i)


@wp.kernel
def cancelled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[0] = x[i] - x[i]


@wp.kernel
def atomic(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i])
    y[1] += x[i]


# Sums of the columns of each Jacobian; of `own_element`, whose second thread runs last on the CPU.
SAFE = {
    guarded: [1, 0, 0], after_a_return: [1, 0, 0], own_element: [0, 1, 1], same_value: [3, 0, 0],
    chosen: [0, 1, 0], overwritten_again: [1, 0, 0], by_a_function: [1, 0, 0],
    cancelled: [0, 0, 0], atomic: [2, 2, 2],
}  # fmt: skip


@pytest.mark.parametrize("kernel", SAFE, ids=lambda k: k.key)
def test_no_false_alarm(kernel: Any) -> None:
    assert_derivatives(kernel, 3, SAFE[kernel])


def test_a_record_says_what_its_threads_did():
    @wp.kernel
    def neighbours(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = 2.0 * y[i + 1] + x[0]

    x, y = wp.ones(1, requires_grad=True), wp.ones(5, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(neighbours, 4, [x, y])
    (record,) = tape.records
    classes = record.classes()
    told = {g.names: g.sharing for g in classes.groups}
    assert told == {("x",): "shared", ("y",): "ordered"} and not classes.order_free
    (why,) = [g.why for g in classes.groups if g.why]
    assert {a.kind for a in why} == {"read", "store"}
