"""`*`, loops over what has items, and members of enumerations: values and gradients."""

from __future__ import annotations

import enum

import numpy as np

import engine as wp


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 3


class Flags(enum.IntFlag):
    A = 1
    B = 4


@wp.func
def mixed(a: float, b: float, c: float):
    return a * b + c


@wp.kernel
def kernel(x: wp.array(dtype=float), n: int, out: wp.array(dtype=float)):
    t = (x[0], x[1], 2.0)
    out[0] = mixed(*t)
    v = wp.vec3(*x[0:3])
    out[1] = wp.dot(v, wp.vec3(*t)) + wp.max(*x[1:3])
    first, *rest = v * x[0]
    out[2] = first + rest[0] * rest[1]
    for c in reversed(v):
        if c == 2.0:
            continue
        out[3] += c * c
    m = wp.mat22(x[0], 2.0, 3.0, x[1])
    out[4] = wp.determinant(wp.matrix_from_cols(*m))
    for row in m:
        out[4] += row[1] * row[1]
    own = wp.zeros(3, dtype=float)
    own[n] = x[2]
    for entry in own:
        out[5] += entry * entry
    q = wp.quat(*own, x[1])
    out[6] = wp.dot(q, q) * t[n]
    out[7] = float(int(Mode.FAST) + Mode.SLOW.value + (Flags.A | Flags.B.value) * Mode.FAST)


def want(x: np.ndarray) -> np.ndarray:
    a, b, c = x
    return np.array(
        [
            a * b + 2,
            a * a + b * b + 2 * c + max(b, c),
            a * a + (b * a) * (c * a),
            a * a + c * c,
            a * b - 6 + 4 + b * b,
            c * c,
            (c * c + b * b) * b,
            3 + 1 + 15,
        ]
    )


def test_items() -> None:
    at = np.array([1.5, 2.0, 0.5])
    x = wp.array(at, dtype=float, requires_grad=True)
    out = wp.zeros(8, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(kernel, dim=1, inputs=[x, 1], outputs=[out])
    np.testing.assert_allclose(out.numpy(), want(at), rtol=1e-6)
    h = 1e-6
    rows = [(want(at + h * e) - want(at - h * e)) / (2 * h) for e in np.eye(3)]
    for k in range(8):
        seed = np.zeros(8)
        seed[k] = 1.0
        tape.backward(grads={out: wp.array(seed, dtype=float)})
        expected = np.array([row[k] for row in rows])
        if k == 3:  # the middle component is left out, whatever it becomes
            expected[1] = 0.0
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-4, atol=1e-6)
        tape.zero()
