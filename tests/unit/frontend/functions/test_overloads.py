# ruff: noqa: F811
"""Functions of one name by the types of their arguments, and functions as arguments."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.frontend import signature_of
from engine.frontend.functions.overloads import candidates
from tests.unit.frontend import shared_functions as shared


@wp.func
def custom(x: int):
    return x + 1


@wp.func
def custom(x: float):
    return x + 1.5


@wp.func
def custom(x: wp.vec3):
    return x + wp.vec3(1.0, 0.0, 0.0)


@wp.func
def custom(x: int):  # takes the place of the first one
    return x + 2


@wp.func
def special(a: float, b: float):
    return a * b


@wp.func
def special(a: Any, b: Any):
    return a + b


@wp.func
def special(a: int, b: int):
    return a - b


@wp.func
def special(a: float, b: float, c: float):
    return a * b * c


@wp.func
def first(a: wp.array(dtype=Any), i: int):
    return a[i]


@wp.func
def first(a: wp.array2d(dtype=Any), i: int):
    return a[i, 0] + a[i, 0]


@wp.kernel
def resolve(out: wp.array(dtype=wp.float64), a: wp.array(dtype=float), b: wp.array2d(dtype=int)):
    out[0] = wp.float64(custom(1))
    out[1] = wp.float64(custom(1.0))
    out[2] = wp.float64(custom(wp.vec3(1.0, 2.0, 3.0))[0])
    out[3] = wp.float64(special(17, 25))
    out[4] = wp.float64(special(7.0, 10.0))
    out[5] = wp.float64(special(wp.vec2(1.0, 2.0), wp.vec2(3.0, 5.0))[1])
    out[6] = wp.float64(special(7.0, b=10.0, c=2.0))
    out[7] = wp.float64(first(a, 1))
    out[8] = wp.float64(first(b, 1))
    out[9] = special(wp.float64(1.0), wp.float64(2.0))


def test_calls_choose_by_types() -> None:
    out = wp.zeros(10, dtype=wp.float64)
    a, b = wp.array([3.0, 4.0], dtype=float), wp.array([[3, 4], [5, 6]], dtype=int)
    wp.launch(resolve, dim=1, inputs=[out, a, b])
    assert out.numpy().tolist() == [3, 2.5, 2, -8, 70, 7, 140, 4, 10, 3]


def test_python_chooses_likewise() -> None:
    assert (custom(1), custom(1.0)) == (3, 2.5)
    assert custom(wp.vec3(1, 2, 3)) == wp.vec3(2, 2, 3)
    assert special(1.0, 2.0, 3.0) == 6.0


def test_each_definition_is_a_function_of_its_own() -> None:
    made = []
    for factor in (2.0, 3.0, 4.0):

        @wp.func
        def scale(x: float):
            return x * factor

        made.append(scale)
    assert len({id(f) for f in made}) == 3

    def signature(f):
        return signature_of(f.func, kernel=False)

    assert all(len(candidates(f.overloads, signature)) == 1 for f in made)


@wp.kernel
def no_match(out: wp.array(dtype=float)):
    out[0] = custom(wp.vec2(1.0, 2.0))


def test_candidates_are_told_with_their_places() -> None:
    with pytest.raises(wp.KernelError, match="no overload of `custom` takes \\(vec2\\)") as e:
        wp.launch(no_match, dim=1, inputs=[wp.zeros(1)])
    (d,) = e.value.diagnostics
    assert d.code == "E104" and d.span.line == no_match.func.__code__.co_firstlineno + 2
    assert d.help.count("test_overloads.py:") == 3 and "custom(x: vec3)" in d.help


@wp.func
def pair(x: float, y: float):
    return x * y, x + y


@wp.func_grad(pair)
def adj_pair(x: float, y: float, a: float, b: float):
    wp.adjoint[x] += 10.0 * a + b
    wp.adjoint[y] += 20.0 * a + b


@wp.func
def pair(v: wp.vec2):
    return v[0] * v[1], 0.0


@wp.func_grad(pair)
def adj_pair(v: wp.vec2, a: float, b: float):
    wp.adjoint[v] += wp.vec2(30.0, 40.0) * a


@wp.kernel
def both(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    a, b = pair(x[0], x[1])
    c, d = pair(wp.vec2(x[2], x[3]))
    out[0] = a + b
    out[1] = c + d


def test_custom_gradients_belong_to_the_overload_of_their_signature() -> None:
    x = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, requires_grad=True)
    out = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(both, dim=1, inputs=[x], outputs=[out])
    tape.backward(grads={out: wp.ones_like(out)})
    assert out.numpy().tolist() == [5, 12]
    assert x.grad.numpy().tolist() == [11, 21, 30, 40]


# ---- functions as arguments


@wp.func
def double_it(x: float):
    return 2.0 * x


@wp.func
def apply(g: Callable, x: Any):
    return g(x)


@wp.func
def apply_named(g: wp.Function, x: float):
    f = g
    return f(x)


@wp.func
def apply_default(g: Callable[[float], float] = double_it, x: float = 3.0):
    return g(x)


@wp.func
def apply_twice(g: Callable, x: float):
    return apply(g, apply(g, x))


@wp.func
def convert(to: Any, x: Any):
    return to(x)


@wp.func
def compose(g: wp.Function, h: wp.Function, x: float):
    return g(apply(h, x))


@wp.kernel
def functions(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    out[0] = apply(double_it, x[0])
    out[1] = apply(wp.sin, x[0])
    out[2] = apply_named(g=shared.triple_it, x=x[0])
    out[3] = apply_default()
    out[4] = apply_twice(double_it, x[0])
    out[5] = float(convert(wp.int32, x[0]))
    f = double_it
    out[6] = compose(f, wp.exp, x[0])
    out[7] = wp.length(apply(wp.normalize, wp.vec3(x[0], 1.0, 2.0)))


def test_functions_as_arguments() -> None:
    x = wp.array([1.25], dtype=float, requires_grad=True)
    out = wp.zeros(8, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(functions, dim=1, inputs=[x], outputs=[out])
    e = math.exp(1.25)
    want = [2.5, math.sin(1.25), 3.75, 6, 5, 1, 2 * e, 1]
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6)
    tape.backward(grads={out: wp.ones_like(out)})
    np.testing.assert_allclose(x.grad.numpy(), [2 + math.cos(1.25) + 3 + 4 + 2 * e], rtol=1e-6)


@wp.func
def apply_own(g: wp.Function, x: float):
    return g(x)


@wp.func_grad(apply_own)
def adj_apply_own(g: wp.Function, x: float, adj_ret: float):
    wp.adjoint[x] += 100.0 * g(x) * adj_ret


def test_a_custom_gradient_gets_the_function_too() -> None:
    @wp.kernel
    def k(x: wp.array(dtype=float), out: wp.array(dtype=float)):
        out[0] = apply_own(double_it, x[0])

    x = wp.array([3.0], dtype=float, requires_grad=True)
    out = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(k, dim=1, inputs=[x], outputs=[out])
    tape.backward(grads={out: wp.ones_like(out)})
    assert x.grad.numpy().tolist() == [600.0]


@wp.func
def endless(g: Callable, x: float):
    return endless(g, x)


@wp.kernel
def wrong(out: wp.array(dtype=float)):
    out[0] = apply_named(1.0, 2.0)
    out[0] = custom(double_it)
    out[0] = double_it(double_it)
    out[0] = endless(wp.sin, 1.0)
    out[0] = first(1.0, 1)


@wp.kernel
def takes_a_function(g: Callable, out: wp.array(dtype=float)):
    out[0] = g(1.0)


def test_refusals() -> None:
    with pytest.raises(wp.KernelError) as e:
        wp.launch(wrong, dim=1, inputs=[wp.zeros(1)])
    told = [(d.code, d.span.line - wrong.func.__code__.co_firstlineno) for d in e.value.diagnostics]
    first_line = endless.func.__code__.co_firstlineno - wrong.func.__code__.co_firstlineno
    assert sorted(told) == sorted(
        [("E104", 2), ("E104", 3), ("E104", 4), ("E108", first_line + 2), ("E104", 6)]
    )
    with pytest.raises(wp.KernelError, match="cannot take a function"):
        wp.launch(takes_a_function, dim=1, inputs=[double_it, wp.zeros(1)])


@wp.func
def shortened(v: wp.vec3, k: float = 2.0):
    return wp.normalize(v) / k


@wp.func
def either(x: float):
    return x


@wp.func
def either(v: wp.vec2):
    return v[0]


def test_calls_in_python_take_what_kernels_take() -> None:
    assert shortened(wp.vec3(0.0, 3.0, 4.0)) == wp.vec3(0.0, 0.3, 0.4)
    assert shortened(wp.vec3(0.0, 2.0, 0.0), k=wp.float32(1.0)) == wp.vec3(0.0, 1.0, 0.0)
    assert either(3) == 3 and either(wp.vec2(4.0, 5.0)) == 4.0
    calls = [
        (shortened, (1.0,), {}, "`v` of `shortened` has type vec3, got a float"),
        (shortened, (wp.vec3d(1.0),), {}, "got vec3d"),
        (shortened, (), {"v": np.float32(1.0)}, "got a float32"),
        (shortened, (wp.vec3(1.0),), {"k": wp.vec3(1.0)}, "`k` of `shortened` has type float32"),
        (shortened, (wp.vec3(1.0), "x"), {}, "`k` of `shortened` has type float32, got a str"),
        (shortened, (wp.vec3(1.0), None), {}, "got a NoneType"),
        (shortened, ("abc",), {}, "`v` of `shortened` has type vec3, got a str"),
        (shortened, (None,), {}, "got a NoneType"),
        (either, (wp.vec3(1.0),), {}, "`v` of `either` has type vec2, got vec3"),
    ]
    for f, args, named, message in calls:
        with pytest.raises(wp.LaunchError, match=rf"E104.*{message}"):
            f(*args, **named)
    with pytest.raises(TypeError, match="missing 1 required"):
        shortened()
    assert list(either.user_overloads.values()) == list(either.overloads)
    assert len(either.user_overloads) == 2 and either.module is wp.get_module(__name__)
