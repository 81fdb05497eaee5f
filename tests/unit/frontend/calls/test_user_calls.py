"""Functions that kernels call: instances, arguments, custom gradients and replays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.frontend import lower_function, lower_kernel
from engine.ir.interp import evaluate
from engine.ir.nodes import callees
from engine.ir.verify import verify
from engine.lang.types import FLOAT32, FLOAT64, INT32, VectorType

VEC3 = VectorType(FLOAT32, 3)


@wp.func
def blend(a, b, t=0.5):
    return a * (1.0 - t) + b * t


@wp.func
def sign_or_zero(x: float):
    if x > 0.0:
        return 1
    elif x < 0.0:
        return -1
    return 0.0 * x


@wp.func
def divide(n: int, d: int):
    return n / d, n % d


@wp.func
def safe_sqrt(x: float):
    return wp.sqrt(x)


@wp.func_grad(safe_sqrt)
def adj_safe_sqrt(x: float, adj_ret: float):
    if x > 0.0:
        wp.adjoint[x] += 1.0 / (2.0 * safe_sqrt(x)) * adj_ret


@wp.func
def scaled(v: wp.vec3, s: float, n: int):
    return v * s, float(n)


@wp.func_grad(scaled)
def adj_scaled(v: wp.vec3, s: float, n: int, adj_v: wp.vec3, adj_n: float):
    wp.adjoint[v][0] = adj_v[0] * s
    wp.adjoint[v][1] += adj_v[1] * s
    if n > 0:
        wp.adjoint[s] = wp.dot(adj_v, v)
        return
    wp.adjoint[s] -= 1.0


@wp.func
def counted(c: wp.array(dtype=int), i: int):
    return wp.atomic_add(c, 0, i)


@wp.func_replay(counted)
def replay_counted(c: wp.array(dtype=int), i: int):
    return c[i]


def test_one_instance_for_each_list_of_types_and_literals() -> None:
    @wp.kernel
    def k(a: wp.array(dtype=float), v: wp.array(dtype=wp.vec3)):
        a[0] = blend(a[1], a[2], a[3]) + blend(a[3], a[4], a[5])
        a[6] = blend(a[1], a[2]) + blend(a[3], a[4]) + blend(a[5], a[6], 0.5)
        v[0] = blend(v[1], v[2], v[3][0])

    one, half, other = callees(lower_kernel(k.func))
    assert (one.results, half.results, other.results) == ((FLOAT32,), (FLOAT32,), (VEC3,))
    assert lower_function(blend, (FLOAT64, FLOAT64, FLOAT64)).results == (FLOAT64,)
    verify(other)
    (got,) = evaluate(other, ([1.0, 2.0, 3.0], [3.0, 4.0, 5.0], 0.25))
    np.testing.assert_allclose(got, [1.5, 2.5, 3.5])


def test_defaults_and_names_of_arguments() -> None:
    @wp.kernel
    def k(a: wp.array(dtype=float)):
        a[0] = blend(a[1], a[2])
        a[1] = blend(b=a[1], a=a[2], t=0.25)

    fn = lower_kernel(k.func)
    calls = [s for s in fn.body if hasattr(s, "func")]
    assert [str(x) for x in calls[0].args] == ["%t", "%t_1", "0.5:float32"]
    assert [str(x) for x in calls[1].args] == ["%t_4", "%t_3", "0.25:float32"]


def test_results_of_all_returns_have_one_type() -> None:
    fn = lower_function(sign_or_zero, (FLOAT32,))
    verify(fn)
    assert fn.results == (FLOAT32,)
    assert [evaluate(fn, (x,))[0] for x in (2.0, -2.0, 0.0)] == [1.0, -1.0, 0.0]


def test_several_results() -> None:
    fn = lower_function(divide, (INT32, INT32))
    assert evaluate(fn, (-7, 2)) == (-3, -1)


def test_python_can_call_it() -> None:
    assert blend(2.0, 4.0) == 3.0
    assert divide.__name__ == "divide"


def test_custom_gradient() -> None:
    fn = lower_function(safe_sqrt, (FLOAT32,))
    assert fn.grad is not None
    verify(fn.grad)
    assert fn.grad.results == (FLOAT32,)
    assert [p.name for p in fn.grad.params] == ["x", "adj_ret"]
    assert evaluate(fn.grad, (4.0, 1.0)) == (0.25,)
    assert evaluate(fn.grad, (0.0, 1.0)) == (0.0,)
    # The function that the gradient itself calls is the plain one.
    assert [f.grad for f in callees(fn.grad)] == [None]


def test_custom_gradient_of_many_inputs() -> None:
    fn = lower_function(scaled, (VEC3, FLOAT32, INT32))
    assert fn.grad is not None
    verify(fn.grad)
    assert fn.grad.results == (VEC3, FLOAT32)
    v, adj = [1.0, 2.0, 3.0], [10.0, 20.0, 30.0]
    for n, expected in ((1, 140.0), (0, -1.0)):
        adj_v, adj_s = evaluate(fn.grad, (v, 2.0, n, adj, 1.0))
        np.testing.assert_array_equal(adj_v, [20.0, 40.0, 0.0])
        assert adj_s == expected


def test_replay() -> None:
    @wp.kernel
    def k(c: wp.array(dtype=int)):
        c[1] = counted(c, 2)

    (fn,) = callees(lower_kernel(k.func))
    assert fn.replay is not None and fn.replay.results == fn.results
    verify(fn.replay)


def test_a_gradient_given_later_counts() -> None:
    @wp.func
    def square(x: float):
        return x * x

    assert lower_function(square, (FLOAT32,)).grad is None

    @wp.func_grad(square)
    def adj_square(x: float, adj_ret: float):
        wp.adjoint[x] += 2.0 * x * adj_ret

    assert lower_function(square, (FLOAT32,)).grad is not None


@wp.func
def broken(x):
    return x + wp.nothing_here


def test_an_error_names_the_call_that_chose_the_types() -> None:
    @wp.kernel
    def k(a: wp.array(dtype=float)):
        a[0] = broken(a[1]) + broken(a[2])

    with pytest.raises(wp.KernelError) as caught:
        lower_kernel(k.func)
    (d,) = caught.value.diagnostics
    assert d.code == "E102"
    assert d.notes[0].startswith("in `broken(float32)`, called from ")


def test_deep_calls_are_not_recursion() -> None:
    chain: Any = wp.func(_leaf)
    for _ in range(30):
        chain = _wrap(chain)

    fn = lower_function(chain, (FLOAT32,))
    assert evaluate(fn, (1.0,)) == (32.0,)


def _leaf(x: float):
    return x + 1.0


def _wrap(inner: Any) -> Any:
    @wp.func
    def outer(x: float):
        return inner(x) + 1.0

    return outer
