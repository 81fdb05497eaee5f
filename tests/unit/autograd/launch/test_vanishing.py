"""Derivatives that are zero up to rounding of their terms have lost no digits; others have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import Experience, check_tape

F = wp.array(dtype=float)


@wp.kernel
def average(z: F, mean: F):
    wp.atomic_add(mean, 0, z[wp.tid()] / float(z.shape[0]))


@wp.kernel
def spread(z: F, mean: F, loss: F):
    e = z[wp.tid()] - mean[0]
    wp.atomic_add(loss, 0, e * e)


@wp.kernel
def spread_in_turn(z: F, mean: F, loss: F):
    for i in range(z.shape[0]):
        e = z[i] - mean[0]
        loss[0] += e * e


@wp.kernel
def detour(x: F, y: F):
    i = wp.tid()
    far = x[i] + 3.0e4  # rounds away what the next line needs
    y[i] = far * far - 6.0e4 * x[i]


@wp.kernel
def moments(x: F, out: F):
    squares = float(0.0)
    mean = float(0.0)
    for i in range(x.shape[0]):
        squares += x[i] * x[i] / float(x.shape[0])
        mean += x[i] / float(x.shape[0])
    out[0] = squares - mean * mean


@wp.kernel
def logistic(x: F, n: int, y: F):
    i = wp.tid()
    a = x[i]
    for _ in range(n):
        a = 3.99 * a * (1.0 - a)
    y[i] = a


def array(values: Any) -> Any:
    return wp.array(values, dtype=float, requires_grad=True)


def checked(kernel: Any, dim: int, inputs: list[Any], size: int = 1, times: int = 1) -> list[Any]:
    """The pairs of all launches of a kernel, one after the other on tapes of their own."""
    experience, pairs = Experience(), []
    for _ in range(times):
        out = wp.zeros(size, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(kernel, dim, inputs, [out])
        tape.backward(grads={out: np.ones(size, np.float32)})
        pairs += check_tape(tape, experience=experience).launches[0].pairs
        tape.zero()
    return pairs


@pytest.mark.parametrize("offset", [0.0, 10.0])
@pytest.mark.parametrize("n", [4, 64, 3000])
@pytest.mark.parametrize("kernel", [spread, spread_in_turn])
def test_the_derivative_by_a_mean_that_minimises(kernel: Any, n: int, offset: float) -> None:
    z = array(np.random.default_rng(n).normal(size=n) + offset)
    mean = wp.zeros(1, dtype=float, requires_grad=True)
    wp.launch(average, n, [z], [mean])
    pairs = checked(kernel, n if kernel is spread else 1, [z, mean], times=6)
    assert {(p.input, p.verdict) for p in pairs} == {("z", "pass"), ("mean", "pass")}


def test_digits_that_are_lost_beside_a_zero() -> None:
    """The derivative is small, and next to nothing of it is right: inputs are not to blame."""
    (pair,) = checked(detour, 3, [array([1e-3, 2e-3, -1.5e-3])], 3)
    assert pair.verdict == "rounding" and pair.digits_lost > 4


def test_digits_that_are_lost_to_an_offset() -> None:
    x = np.random.default_rng(1).normal(size=32) + 4e5
    (pair,) = checked(moments, 1, [array(x)])
    assert pair.verdict == "rounding" and pair.digits_lost > 4


def test_a_derivative_that_explodes_is_not_zero() -> None:
    """It moves with the last digit of its input, as one that vanishes does."""
    (pair,) = checked(logistic, 3, [array([0.3, 0.4, 0.6]), 40], 3)
    assert pair.verdict in ("rounding", "inconclusive")


@wp.kernel
def bounce(x: F, v: F, out: F):
    """Time to the ground times the impulse there: the speed is in both, and cancels."""
    i = wp.tid()
    time = -(x[i] - 0.1) / wp.min(v[i], -1e-3)
    impulse = -1.4 * v[i] / 3.0
    wp.atomic_add(out, i, time * impulse)


@wp.func
def faint(v: float):
    return 1.0 + 1e-9 * v


@wp.func_grad(faint)
def adj_faint(v: float, adj_ret: float):
    wp.adjoint[v] += 0.0 * adj_ret


@wp.kernel
def drift(v: F, out: F):
    i = wp.tid()
    out[i] = faint(v[i])


def test_factors_whose_product_does_not_depend_on_an_input() -> None:
    rng = np.random.default_rng(1)
    x, v = array(0.1 + 1e-3 * rng.random(8)), array(-rng.random(8) - 0.1)
    pairs = checked(bounce, 8, [x, v], 8)
    assert {(p.input, p.verdict) for p in pairs} == {("x", "pass"), ("v", "pass")}


def test_a_faint_dependence_that_an_adjoint_leaves_out() -> None:
    (pair,) = checked(drift, 4, [array([1.0, 2.0, 3.0, 4.0])], 4)
    assert pair.verdict == "fail"


Doubles = wp.array(dtype=wp.float64)


@wp.kernel
def balance(k: wp.array(dtype=Any), x: wp.array2d(dtype=Any), out: wp.array(dtype=Any)):
    """The sum of each row, times a number that all threads share."""
    i = wp.tid()
    s = k[0] * x[i, 0]
    for j in range(1, x.shape[1]):
        s += k[0] * x[i, j]
    out[i] = s


@wp.func
def scaled(k: wp.float64, x: wp.float64):
    return k * x


@wp.func_grad(scaled)
def adj_scaled(k: wp.float64, x: wp.float64, adj_ret: wp.float64):
    wp.adjoint[k] += (x + wp.float64(1e-3)) * adj_ret
    wp.adjoint[x] += k * adj_ret


@wp.kernel
def balance_spoiled(k: Doubles, x: wp.array2d(dtype=wp.float64), out: Doubles):
    i = wp.tid()
    s = wp.float64(0.0)
    for j in range(x.shape[1]):
        s += scaled(k[0], x[i, j])
    out[i] = s


@wp.kernel
def lattice(x: wp.array2d(dtype=wp.vec2), k: F, f: wp.array2d(dtype=wp.vec2)):
    """Springs to eight neighbours: at rest the forces of all inner points cancel."""
    i, j = wp.tid()
    s = wp.vec2(0.0, 0.0)
    for di in range(-1, 2):
        for dj in range(-1, 2):
            a, b = i + di, j + dj
            inner = a >= 0 and a < x.shape[0] and b >= 0 and b < x.shape[1]
            if inner and not (di == 0 and dj == 0):
                d = x[a, b] - x[i, j]
                far = wp.length(d)
                s += d * (k[0] * (far - k[1]) / far)
    f[i, j] = s


def rows_that_cancel(some: int) -> Any:
    """Of 24 rows, so many have the sum zero up to rounding."""
    x = np.random.default_rng(some).normal(size=(24, 5))
    x[:some, -1] = -x[:some, :-1].sum(axis=1)
    return x


@pytest.mark.parametrize("dtype", [wp.float64, wp.float32])
@pytest.mark.parametrize("some", [0, 1, 23, 24])
def test_outputs_of_which_some_cancel(some: int, dtype: Any) -> None:
    k = wp.array([1.3], dtype=dtype, requires_grad=True)
    x = wp.array(rows_that_cancel(some), dtype=dtype, requires_grad=True)
    out = wp.zeros(24, dtype=dtype, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(balance, 24, [k, x], [out])
    pairs = check_tape(tape).launches[0].pairs
    assert {(p.input, p.verdict) for p in pairs} == {("k", "pass"), ("x", "pass")}


@pytest.mark.parametrize("some", [0, 1, 23, 24])
def test_a_wrong_derivative_of_sums_that_cancel(some: int) -> None:
    k = wp.array([1.3], dtype=wp.float64, requires_grad=True)
    x = wp.array(rows_that_cancel(some), dtype=wp.float64, requires_grad=True)
    out = wp.zeros(24, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(balance_spoiled, 24, [k, x], [out])
    pairs = check_tape(tape).launches[0].pairs
    assert {(p.input, p.verdict) for p in pairs} == {("k", "fail"), ("x", "pass")}


@pytest.mark.parametrize("step", [0.1, 0.11, 0.15, 0.2, 0.3, 1.1])
def test_a_lattice_at_rest(step: float) -> None:
    grid = np.stack(np.meshgrid(np.arange(6) * step, np.arange(6) * step, indexing="ij"), -1)
    x = wp.array(grid, dtype=wp.vec2, requires_grad=True)
    f = wp.zeros((6, 6), dtype=wp.vec2, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(lattice, (6, 6), [x, array([30.0, 0.1])], [f])
    pairs = check_tape(tape).launches[0].pairs
    assert {(p.input, p.verdict) for p in pairs} == {("x", "pass"), ("k", "pass")}
