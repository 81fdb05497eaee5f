"""Recorded launches, grids and arguments: what of it changes once launches are warm."""

from __future__ import annotations

from typing import Any

import numpy as np

import engine as wp
from tests.unit.runtime.warm.changes import (
    CHANGES,
    ONE,
    ZERO,
    F,
    N,
    Steps,
    X,
    change,
    floats,
    read,
    scale,
    zeros,
)


@change("a recorded launch gets other arguments", native=False)
def _() -> Steps:
    x, y = floats(), zeros()
    command = wp.launch(scale, N, [x, y, 2.0], record_cmd=True)

    def step() -> list[Any]:
        y.zero_()
        command.launch()
        return [read(y)]

    yield step, [2 * X]
    command.set_param_by_name("s", 3.0)
    yield step, [3 * X]
    command.set_param_at_index(0, floats(2 * X))
    yield step, [6 * X]
    command.set_dim(2)
    yield step, [np.float32([6, 12, 0, 0])]
    command.params[2] = 5.0
    yield step, [np.float32([10, 20, 0, 0])]
    command.params = [x, y, np.float32(7.0)]
    command.set_dim((4,))
    yield step, [7 * X]


@change("grids and kinds of arguments")
def _() -> Steps:
    x, y = floats(), zeros()
    dim: Any = N
    s: Any = 2.0

    def step() -> list[Any]:
        y.zero_()
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(scale, dim, [x, y, s])
        tape.backward(grads={y: ONE})
        return [read(y), read(x.grad)]

    yield step, [2 * X, 2 * ONE]
    part = np.float32([1, 1, 0, 0])
    for dim in (2, (2,), [2], np.int64(2), 18 - 16, (np.int32(2),)):
        yield step, [2 * X * part, 2 * part]
    for dim in (N, 4 + 16 - 16):
        for s in (np.float32(2.0), 2, np.float64(2.0), np.int32(2), 2.0):
            yield step, [2 * X, 2 * ONE]
    for dim in (0, (0,)):
        yield step, [ZERO, ZERO]
    dim = True
    yield step, [np.float32([2, 0, 0, 0]), np.float32([2, 0, 0, 0])]


@change("more grids than are remembered", native=False)
def _() -> Steps:
    x, y = (
        wp.ones(100, dtype=float, requires_grad=True),
        wp.zeros(100, dtype=float, requires_grad=True),
    )
    seed = np.ones(100, np.float32)

    def step() -> list[Any]:
        out = []
        for n in range(1, 100):
            y.zero_()
            x.grad.zero_()
            with wp.Tape() as tape:
                wp.launch(scale, n, [x, y, 2.0])
            tape.backward(grads={y: seed})
            out += [read(y).sum(), read(x.grad).sum()]
        return out

    yield step, [2.0 * n for n in range(1, 100) for _ in "yx"]


@change("views, types and shapes of arguments")
def _() -> Steps:
    x, y = floats(np.arange(2 * N)), wp.zeros(2 * N, dtype=float, requires_grad=True)
    args: list[Any] = [x[:N], y[:N]]
    numbers = np.arange(2 * N, dtype=np.float32)

    def step() -> list[Any]:
        y.zero_()
        x.grad.zero_()
        y.grad.fill_(1.0)
        with wp.Tape() as tape:
            wp.launch(scale, N, [*args, 2.0])
        tape.backward(grads={y: np.ones(2 * N, np.float32)})
        return [read(y), read(x.grad)]

    def want(to: Any, of: Any) -> list[Any]:
        a, g = np.zeros(2 * N, np.float32), np.zeros(2 * N, np.float32)
        a[to], g[of] = 2 * numbers[of], 2
        return [a, g]

    CHANGES["views, types and shapes of arguments"].native = False  # gradients of views
    yield step, want(slice(N), slice(N))
    for to, of in ((slice(N, None), slice(N)), (slice(N), slice(N, None)),
                   (slice(None, None, 2), slice(N)), (slice(N), slice(None, None, 2))):  # fmt: skip
        args = [x[of], y[to]]
        yield step, want(to, of)
    args = [x.reshape((2, N))[1], y.reshape((N, 2)).flatten()[:N]]
    yield step, want(slice(N), slice(N, None))


@wp.struct
class Pair:
    a: F
    b: F


@wp.kernel
def of_struct(p: Pair, y: F, s: float):
    i = wp.tid()
    y[i] = s * p.a[i] * p.b[i]


@change("members of structs are others", native=False)
def _() -> Steps:
    a, b, y = floats(), floats(2 * X), zeros()
    p = Pair()
    p.a, p.b = a, b

    def step() -> list[Any]:
        for of in (a, b):
            of.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(of_struct, N, [p, y, 1.0])
        tape.backward(grads={y: ONE})
        return [read(y), read(a.grad), read(b.grad)]

    yield step, [2 * X * X, 2 * X, X]
    p.b = a
    yield step, [X * X, 2 * X, ZERO]
    p.a = b
    yield step, [2 * X * X, 2 * X, X]
    p.b = b
    yield step, [4 * X * X, ZERO, 4 * X]
    p.a, p.b = a, b
    a.grad = zeros(grad=False)
    yield step, [2 * X * X, 2 * X, X]
