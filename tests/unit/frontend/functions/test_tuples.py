"""Tuples as values, arguments and results of functions: values, gradients, refusals."""

from __future__ import annotations

from typing import Any, Tuple  # noqa: UP035

import numpy as np
import pytest

import engine as wp
from engine.frontend import lower_kernel

Floats = wp.array(dtype=float)


@wp.struct
class Body:
    pos: wp.vec3
    mass: float


@wp.func
def scaled(n: int, y: float) -> tuple[int, float]:
    return (n * 2, y * 3.0)


@wp.func
def weighted(v: Tuple[wp.vec3, float]) -> float:  # noqa: UP006
    return wp.length_sq(v[0]) * v[1] * float(len(v)) + float(wp.static(len(v)))


@wp.func
def rising(v: Any):
    total = v[0]
    for i in range(1, len(v)):
        total += v[i] * float(i)
    return total


@wp.func
def twice(v: tuple[float, ...]):
    total = float(0.0)
    for i in range(wp.static(len(v))):
        total += v[i]
    for x in v:
        total += x
    return total


@wp.func
def nested(t: tuple[tuple[int, float], Floats]):
    return (t[0], t[1][t[0][0]])


@wp.func
def sorted_pair(t: tuple):
    pair = t
    if t[0] > t[1]:
        pair = (t[1], t[0])
    return pair


@wp.func
def chosen(t: tuple[Any, Any], first: bool):
    return t[0] if first else t[1]


@wp.kernel
def kernel(x: Floats, n: int, out: Floats):
    s = Body(wp.vec3(x[0], x[1], x[2]), x[0])
    t = (1, 2.5, s, x, wp.vec3(x[1]))
    out[0] = t[2].mass * t[2].pos[1] + t[3][2] + t[4][0] + t[1]
    a, b, c, d, e = t
    r = scaled(a, x[0] * b)
    out[1] = r[1] + float(r[0]) + c.mass * d[0]
    out[2] = weighted((s.pos, x[1])) + weighted((e, 2.0))
    out[3] = rising((x[0], x[1], x[2])) + rising((x[0],))
    out[4] = twice((x[0], 2.0))
    p = nested(((1, x[1]), x))
    out[5] = p[0][1] * p[1]
    u = sorted_pair((x[0], x[1]))
    out[6] = u[0] * 3.0 + u[1]
    w = (0.0, 1)
    for _ in range(n):
        w = (w[0] * x[0] + x[1], w[1] + 1)
    out[7] = w[0] * float(w[1])
    z = (x[0], s) if n > 2 else (x[1], Body(wp.vec3(x[2]), x[2]))
    out[8] = z[0] * z[1].pos[0] + chosen((x[0], x[2]), n < 3)
    out[9] = (x[0], x[1], x[2])[n - 1] * float(x.shape[n - n])


def want(x: np.ndarray) -> np.ndarray:
    a, b, c = x
    return np.array(
        [
            a * b + c + b + 2.5,
            a * 2.5 * 3 + 2 + a * a,
            (a * a + b * b + c * c) * b * 2 + 2 + 3 * b * b * 4 + 2,
            a + b + 2 * c + a,
            2 * (a + 2),
            b * b,
            3 * min(a, b) + max(a, b),
            ((b * a + b) * a + b) * 4,
            a * a + c,
            c * 3,
        ]
    )


def test_values_and_gradients() -> None:
    at = np.array([2.5, 1.5, 0.5])
    x = wp.array(at, dtype=float, requires_grad=True)
    out = wp.zeros(10, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, dim=1, inputs=[x, 3], outputs=[out])
    np.testing.assert_allclose(out.numpy(), want(at), rtol=1e-6)
    h = 1e-6
    jacobian = np.stack(
        [(want(at + h * e) - want(at - h * e)) / (2 * h) for e in np.eye(3)], axis=1
    )
    for k, row in enumerate(jacobian):
        seed = np.eye(10)[k]
        tape.backward(grads={out: wp.array(seed, dtype=float)})
        np.testing.assert_allclose(x.grad.numpy(), row, rtol=1e-4, atol=1e-5)
        tape.zero()
    assert wp.autograd.gradcheck(kernel, dim=1, inputs=[x, 3], outputs=[out])


@wp.kernel
def wrong(x: Floats, n: int):
    x[0] = weighted((x[0], x[1]))
    x[1] = weighted((wp.vec3(), 1.0, 2.0))
    x[2] = weighted(x[0])
    own = wp.zeros(2, dtype=float)
    x[3] = rising((own, own))
    t = (1.0, 2)
    if n > 1:
        t = (1.0, 2.5)
    x[4] = (x[0], n)[n]
    x[5] = (t[0], 1.0)


@wp.kernel
def of_a_tuple(t: tuple[int, float], x: Floats):
    x[0] = t[1]


def test_refusals() -> None:
    with pytest.raises(wp.KernelError) as e:
        lower_kernel(wrong.func)
    first = wrong.func.__code__.co_firstlineno
    told = [(d.code, d.span.line - first) for d in e.value.diagnostics if d.span]
    assert told == [
        ("E104", 2), ("E104", 3), ("E104", 4), ("E104", 6), ("E105", 9), ("E104", 10), ("E109", 11),
    ]  # fmt: skip
    texts = [d.message for d in e.value.diagnostics]
    assert "tuple[vec3, float32], but this is tuple[float32, float32]" in texts[0]
    assert "has type tuple[float32, int32], but this is tuple[float32, float32]" in texts[4]
    with pytest.raises(wp.KernelError, match="a kernel cannot take a tuple") as e:
        lower_kernel(of_a_tuple.func)
    assert e.value.diagnostics[0].code == "E103"
