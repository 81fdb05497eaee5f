"""Second order: gradients of gradients, where the adjoint is itself a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check, gradcheck_tape
from tests.unit.autograd.verdict_kernels import floats, recorded

F = wp.array(dtype=float)


@wp.func
def slope(a: float):
    return 3.0 * a * a


@wp.func_grad(slope)
def adj_slope(a: float, adj_ret: float):
    wp.adjoint[a] += 6.06 * a * adj_ret  # 1 % too much: only the second derivative needs it


@wp.func
def cube(a: float):
    return a * a * a


@wp.func_grad(cube)
def adj_cube(a: float, adj_ret: float):
    wp.adjoint[a] += slope(a) * adj_ret


@wp.kernel
def cubes(x: F, y: F):
    i = wp.tid()
    y[i] = cube(x[i])


@wp.kernel
def coupled(x: F, w: F, y: F):
    i = wp.tid()
    n = x.shape[0]
    y[i] = wp.sin(x[i] * w[(i + 1) % n]) * wp.exp(x[(i + 1) % n])


@wp.kernel
def spread(x: F, y: F):
    i = wp.tid()
    wp.atomic_add(y, i // 2, x[i] * x[i] * x[i])


@wp.kernel
def in_place(x: F):
    i = wp.tid()
    x[i] = wp.sin(x[i])


@wp.kernel
def powers(x: F, y: F):
    i = wp.tid()
    p = float(1.0)
    for _ in range(x.shape[0]):
        p *= x[i]
    y[i] = p


X = np.linspace(0.4, 1.6, 6)


def zeros() -> Any:
    return wp.zeros(6, dtype=float, requires_grad=True)


def second(tape: Any) -> dict[tuple[str, str], str]:
    (launch,) = check(tape, order=2).launches
    return {(p.input, p.output): p.verdict for p in launch.pairs if p.output.startswith("adj_")}


def test_right_second_derivatives_pass() -> None:
    found = second(recorded(coupled, floats(X), floats(X[::-1]), zeros()))
    assert set(found.values()) == {"pass"}
    assert {("x", "adj_w"), ("w", "adj_x"), ("x", "adj_x"), ("adj_y", "adj_x")} <= set(found)
    assert set(second(recorded(spread, floats(X), zeros())).values()) == {"pass"}


def test_a_wrong_second_derivative_of_a_right_gradient() -> None:
    tape = recorded(cubes, floats(X), zeros())
    assert {p.verdict for p in check(tape).launches[0].pairs} == {"pass"}
    assert second(tape) == {("x", "adj_x"): "fail", ("adj_y", "adj_x"): "pass"}
    assert gradcheck_tape(tape, show_summary=False)
    with pytest.raises(wp.GradcheckError, match="'adj_x' with respect to 'x' is wrong"):
        gradcheck_tape(tape, show_summary=False, order=2)


@pytest.mark.parametrize(
    ("kernel", "arrays", "reason"),
    [
        (in_place, 1, "overwrites values that its adjoint reads"),
        (powers, 2, "saves values of loops"),
    ],
)
def test_refused_with_the_reason(kernel: Any, arrays: int, reason: str) -> None:
    tape = recorded(kernel, *[floats(X), zeros()][:arrays])
    result = check(tape, order=2)
    assert {p.verdict for p in result.launches[0].pairs} == {"pass"}
    assert reason in result.launches[0].no_second
    assert any("second derivative" in u.what and reason in u.reason for u in result.unchecked)
    assert not check(tape).unchecked


def test_no_other_order() -> None:
    with pytest.raises(wp.LaunchError, match="E405"):
        check(recorded(spread, floats(X), zeros()), order=3)
