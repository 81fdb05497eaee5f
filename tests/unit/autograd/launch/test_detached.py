"""Kernels that read back what they wrote to an array without a gradient."""

from __future__ import annotations

import warnings
from typing import Any

import engine as wp
from engine.autograd import check_tape

F = wp.array(dtype=float)


@wp.func
def bent(x: float):
    return x * x


@wp.func_grad(bent)
def adj_bent(x: float, adj_ret: float):
    wp.adjoint[x] += 3.0 * x * adj_ret


@wp.kernel
def push(f: F, v: F, q: F):
    i = wp.tid()
    v[i] = f[i] * f[i]
    q[i] = f[i] + 0.1 * v[i]


@wp.kernel
def push_wrongly(f: F, v: F, q: F):
    i = wp.tid()
    v[i] = f[i] * f[i]
    q[i] = bent(f[i]) + 0.1 * v[i]


@wp.kernel
def count(f: F, v: F, q: F):
    i = wp.tid()
    v[i] = v[i] + 1.0
    q[i] = f[i] * f[i]


def checked(kernel: Any, grad: bool) -> Any:
    f = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    v = wp.zeros(2, dtype=float, requires_grad=grad)
    q = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, 2, [f], [v, q])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tape.backward(grads={q: wp.ones_like(q)})
    return check_tape(tape).launches[0]


def test_the_array_is_named() -> None:
    launch = checked(push, False)
    assert [p.verdict for p in launch.pairs] == ["fail"] and launch.detached == ("v",)


def test_with_a_gradient_nothing_is_cut() -> None:
    launch = checked(push, True)
    assert {p.verdict for p in launch.pairs} == {"pass"} and launch.detached == ()


def test_a_wrong_derivative_stays_one() -> None:
    launch = checked(push_wrongly, False)
    assert [p.verdict for p in launch.pairs] == ["fail"] and launch.detached == ()


def test_what_is_read_back_and_does_not_matter() -> None:
    launch = checked(count, False)
    assert [p.verdict for p in launch.pairs] == ["pass"] and launch.detached == ()
