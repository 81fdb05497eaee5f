"""Arguments that meet, large arrays, memory of others: what changes once launches are warm."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

import engine as wp
from engine.compile.cpu import VAST, schedule
from tests.unit.runtime.warm.changes import (
    ONE,
    ZERO,
    F,
    N,
    Squares,
    Steps,
    X,
    change,
    floats,
    halve,
    read,
    scale,
    square,
    zeros,
)


@wp.kernel
def product(a: F, b: F, y: F):
    i = wp.tid()
    y[i] = a[i] * b[i]


@change("arguments share memory from some step on", native=False)  # their gradients are views'
def _() -> Steps:
    both = floats(np.concatenate([X, 2 * X]))
    x, y = both[:N], zeros()
    args: list[Any] = [x, both[N:], y]

    def step() -> list[Any]:
        both.assign(np.concatenate([X, 2 * X]))
        both.grad.zero_()
        y.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(product, N, args)
        tape.backward(grads={args[2]: ONE})
        return [read(args[2]), read(both.grad)]

    apart = [2 * X * X, np.concatenate([2 * X, X])]
    yield step, apart
    args[1] = x
    yield step, [X * X, np.concatenate([2 * X, ZERO])]
    args[1] = both[N:]
    yield step, apart
    args[2] = both[N:]  # the second one is overwritten where it is read
    yield step, [2 * X * X, np.concatenate([2 * X, X])]
    args[2] = x
    yield step, [2 * X * X, np.concatenate([2 * X, X])]
    args[2] = y
    yield step, apart


@change("one array is several arguments")
def _() -> Steps:
    a, b, y = floats(), floats(3 * X), zeros()
    args: list[Any] = [a, b, y]

    def step() -> list[Any]:
        a.assign(X)
        for of in (a, b):
            of.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(product, N, args)
        tape.backward(grads={args[2]: ONE})
        return [read(args[2]), read(a.grad), read(b.grad)]

    apart = [3 * X * X, 3 * X, X]
    yield step, apart
    args = [a, a, y]
    yield step, [X * X, 2 * X, ZERO]
    args = [a, b, a]  # in place, which takes the gradient of what was there
    yield step, [3 * X * X, 3 * X, X]
    args = [a, a, a]
    yield step, [X * X, 2 * X, ZERO]
    args = [a, b, y]
    yield step, apart


@change("large launches between small ones")
def _() -> Steps:
    n = 1 << 17
    p, big = Squares(), (floats(np.ones(n)), zeros(n))
    seed = np.ones(n, np.float32)

    def large() -> list[Any]:
        x, y = big
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(square, n, [x], [y])
        tape.backward(grads={y: seed})
        return [read(y).sum(), read(x.grad).sum()]

    yield p.step, [X * X, 2 * X]
    yield large, [n, 2 * n]
    before = schedule.LEAST
    try:
        for least in (1, 1 << 40, before):
            schedule.LEAST = least
            yield large, [n, 2 * n]
            yield p.step, [X * X, 2 * X]
    finally:
        schedule.LEAST = before
        square.forget()  # that it was cut is remembered, as of a constant


@change("what was known of a large gradient", native=False)
def _() -> Steps:
    n = VAST // 4
    x, y, z = floats(np.full(n, 3.0)), zeros(n), zeros(n)
    seed = wp.ones(n, dtype=float)
    small = floats(ONE, grad=False)

    def step() -> list[Any]:
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(square, n, [x], [y])
            wp.launch(scale, n, [y, z, 2.0])
        tape.backward(grads={z: seed})
        return [float(read(x.grad).min()), float(read(x.grad).max())]

    want = [12.0, 12.0]
    yield step, want
    # What lies there is added to, as all that a program leaves in a gradient.
    g = y.grad
    for write in (
        lambda: g.fill_(1.0), lambda: wp.launch(scale, N, [small, g, 1.0]),
        lambda: g.numpy().fill(1.0), lambda: ctypes.memmove(g.ptr, ONE.ctypes.data, ONE.nbytes),
        lambda: np.from_dlpack(g).fill(1.0), lambda: wp.copy(g, seed),
    ):  # fmt: skip

        def written(write=write) -> list[Any]:
            write()
            return [step()[1]]

        yield written, [18.0]
        yield step, want


@change("memory of NumPy", native=False)
def _() -> Steps:
    own = X.copy()
    x, y = wp.array(own, dtype=float, copy=False, requires_grad=True), zeros()

    def step() -> list[Any]:
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(square, N, [x], [y])
        tape.backward(grads={y: ONE})
        return [read(y), read(x.grad)]

    yield step, [X * X, 2 * X]
    own[:] = 3.0
    yield step, [9 * ONE, 6 * ONE]
    own.resize(N, refcheck=False)
    other = 2 * X
    x = wp.array(other, dtype=float, copy=False, requires_grad=True)
    yield step, [4 * X * X, 4 * X]
    other.flags.writeable = False
    yield step, [4 * X * X, 4 * X]


@change("an output becomes one that may not be written")
def _() -> Steps:
    p, kept = Squares(), X.copy()
    locked = X.copy()
    locked.flags.writeable = False
    readonly = wp.array(locked, dtype=float, copy=False)
    twice = wp.array(np.lib.stride_tricks.as_strided(kept, (N,), (0,)), dtype=float, copy=False)

    def refused() -> list[Any]:
        told = []
        for out in (readonly, twice):
            for record in (False, True):
                try:
                    with wp.Tape():
                        wp.launch(square, N, [p.x], [out], record_tape=record)
                except wp.LaunchError as e:
                    told.append(e.diagnostics[0].code)
        return [*told, locked.copy(), kept.copy()]

    yield p.step, [X * X, 2 * X]
    yield refused, ["E206", "E206", "E206", "E206", X, X]
    yield p.step, [X * X, 2 * X]


@change("indices of an indexed array", native=False)
def _() -> Steps:
    x, y = floats(), zeros()
    at = wp.array(np.arange(N), dtype=int)
    part = wp.indexedarray(x, [at])

    def step() -> list[Any]:
        x.grad.zero_()
        y.zero_()
        out = wp.map(lambda a: 2.0 * a, part)
        with wp.Tape() as tape:
            wp.map(lambda a: 2.0 * a, part, out=y)
        tape.backward(grads={y: X})
        return [read(out), read(y), read(x.grad)]

    yield step, [2 * X, 2 * X, 2 * X]
    at.assign(np.arange(N)[::-1].copy())
    yield step, [2 * X[::-1], 2 * X[::-1], 2 * X[::-1]]
    x.assign(3 * X)
    yield step, [6 * X[::-1], 6 * X[::-1], 2 * X[::-1]]
    wp.launch(halve, N, [x])
    yield step, [3 * X[::-1], 3 * X[::-1], 2 * X[::-1]]
