"""`ref[T]` within expressions, in loops and under other names; gradients of many uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.frontend import lower_kernel


@wp.struct
class Body:
    mass: float
    speed: wp.vec3


@wp.func
def scale(x: wp.ref[float], k: float):
    x = x * k
    x += 1.0


@wp.func
def scale_twice(x: wp.ref[float], k: float):
    scale(x, k)
    scale(k=k, x=x)


@wp.func
def swap(a: wp.ref[float], b: wp.ref[float]):
    a, b = b, a


@wp.func
def grow(body: wp.ref[Body], k: float) -> float:
    body.mass *= k
    body.speed[1] = body.mass
    if body.mass > 1000.0:
        body.mass = 1000.0
        return -1.0
    return body.mass


@wp.func
def reset(body: wp.ref[Body]):
    body = Body(2.0, wp.vec3(3.0))  # noqa: F841


@wp.func
def fill(v: wp.ref[Any], value: float):
    for i in range(len(v)):
        v[i] += value * float(i)


@wp.func
def by_value(x: float):
    x += 100.0
    return x


@wp.kernel
def values(x: wp.array(dtype=float), bodies: wp.array(dtype=Body),
           vs: wp.array2d(dtype=wp.vec3), out: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    y = x[i]
    for j in range(3):
        if j != 1:
            scale(y, x[i])
    scale_twice(y, 0.5)
    body = Body()
    body.mass = y
    out[0] = grow(body, 2.0) + body.speed[1]
    out[1] = grow(bodies[i], y) + grow(bodies[i], 0.5)
    scale(vs[i, 1][2], y)
    scale(vs[i][1].x, 2.0)
    v = wp.vec3(1.0, 2.0, y)
    swap(v[0], v[2])
    swap(v.x, body.mass)
    fill(v, y)
    fill(vs[i, 0], y)
    swap(vs[i, 0][0], vs[i, 1][0])
    out[2] = v[0] + 2.0 * v[1] + 3.0 * v[2] + body.mass + vs[i, 0][2] * vs[i, 1][2]
    reset(body)
    out[3] = body.mass * body.speed[2] * y + by_value(y) - by_value(y)


def in_python(x: float) -> tuple[list[float], np.ndarray, list[float]]:
    y = x
    for _ in range(2):
        y = y * x + 1.0
    for _ in range(2):
        y = y * 0.5 + 1.0
    mass = 2.0 * y
    other = 1.5 * y
    speed = other * 0.5
    out = [2.0 * mass, other + speed]
    vs = np.ones((2, 3))
    vs[1, 2] = vs[1, 2] * y + 1.0
    vs[1, 0] = 3.0
    v = [y, 2.0, 1.0]
    v[0], mass = mass, v[0]
    v = [a + y * k for k, a in enumerate(v)]
    vs[0] += y * np.arange(3)
    vs[0, 0], vs[1, 0] = vs[1, 0], vs[0, 0]
    out.append(v[0] + 2 * v[1] + 3 * v[2] + mass + vs[0, 2] * vs[1, 2])
    out.append(6.0 * y)
    return out, vs, [speed, speed]


def test_values_and_gradients() -> None:
    at = 1.25
    x = wp.array([at], dtype=float, requires_grad=True)
    body = Body(1.5, wp.vec3(0.0))
    bodies = wp.array([body], dtype=Body, requires_grad=True)
    vs = wp.ones((1, 2), dtype=wp.vec3, requires_grad=True)
    out = wp.zeros(4, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(values, dim=1, inputs=[x, bodies, vs, out])
    want, want_vs, want_body = in_python(at)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-5)
    np.testing.assert_allclose(vs.numpy()[0], want_vs, rtol=1e-5)
    found = bodies.numpy()[0]
    np.testing.assert_allclose([found["mass"], found["speed"][1]], want_body, rtol=1e-5)
    step = 1e-6
    for k in range(4):
        tape.zero()
        seed = np.zeros(4)
        seed[k] = 1.0
        tape.backward(grads={out: wp.array(seed, dtype=float)})
        slope = (in_python(at + step)[0][k] - in_python(at - step)[0][k]) / (2 * step)
        np.testing.assert_allclose(x.grad.numpy(), [slope], rtol=2e-5)


@wp.func
def moved(v: wp.ref[wp.vec3]) -> float:
    v[0] += 1.0
    return v[0]


@wp.func
def scaled(x: wp.ref[float]) -> float:
    x *= 2.0
    return x


@wp.kernel
def order(out: wp.array(dtype=float)):
    body = Body(3.0, wp.vec3(0.0))
    out[0] = body.mass + grow(body, 2.0)
    out[1] = body.speed[1] * 10.0 + grow(body, 2.0) + body.speed[1]
    v = wp.vec3(1.0, 2.0, 3.0)
    out[2] = v[0] * 10.0 + moved(v) + v.x * 100.0
    w = v
    out[3] = moved(w) + v[0]
    other = body
    out[4] = grow(other, 2.0) + body.mass
    out[5] = wp.dot(v, v) + moved(v)
    a, b = body.mass, grow(body, 2.0)
    out[6] = a - b
    out[7] = body.mass + scaled(body.mass) + body.speed[0] * 2.0 + scaled(body.speed[0])
    out[8] = v[2] + scaled(v[2]) + v.z


def test_what_is_read_before_a_call_is_what_it_was_before() -> None:
    out = wp.zeros(9, dtype=float)
    wp.launch(order, dim=1, inputs=[out])
    assert out.numpy().tolist() == [9, 84, 212, 5, 36, 20, -12, 72, 15]


@wp.func
def count(at: wp.ref[int]) -> int:
    at += 1
    return at - 1


@wp.kernel(enable_backward=False)
def indices(out: wp.array(dtype=float)):
    k = 0
    scale(out[count(k)], 2.0)  # computed once
    scale(out[count(k)], 3.0)
    out[2] = float(k)
    scale(out[-1], float(count(k)))


def test_indices_are_computed_once() -> None:
    out = wp.full(4, 5.0, dtype=float)
    wp.launch(indices, dim=1, inputs=[out])
    assert out.numpy().tolist() == [11, 16, 2, 11]


@wp.kernel
def another_name(n: int, out: wp.array(dtype=float)):
    another = scale
    y = 0.0
    body = Body()
    for _k in range(n):
        another(y, 2.0)
        another(body.mass, 2.0)
        another(out[0], 2.0)
    out[0] += y + body.mass


def test_functions_under_another_name_are_refused() -> None:
    with pytest.raises(wp.KernelError, match="has another name here") as e:
        lower_kernel(another_name.func)
    first = another_name.func.__code__.co_firstlineno
    assert [(d.code, d.span.line - first) for d in e.value.diagnostics] == [
        ("E106", 6), ("E104", 7), ("E104", 8),
    ]  # fmt: skip
