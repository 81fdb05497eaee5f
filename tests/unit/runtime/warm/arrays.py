"""Gradients and memory of arrays: what of it changes once launches are warm."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

import engine as wp
from tests.unit.runtime.warm.changes import (
    ONE,
    ZERO,
    Kept,
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


@change("requires_grad is switched off and on")
def _() -> Steps:
    p = Squares()
    yield p.step, [X * X, 2 * X]
    p.x.requires_grad = False
    yield p.step, [X * X, ZERO]
    p.x.requires_grad = True
    yield p.step, [X * X, 2 * X]


@change("requires_grad is switched off and on, of a tape that is kept")
def _() -> Steps:
    p = Kept()
    yield p.step, [X * X, 2 * X]
    p.x.requires_grad = False
    yield p.step, [X * X, ZERO]
    p.x.requires_grad = True
    yield p.step, [X * X, 2 * X]


@change("a gradient is another array")
def _() -> Steps:
    for p in (Squares(), Kept()):
        yield p.step, [X * X, 2 * X]
        before, p.x.grad = p.x.grad, zeros(grad=False)
        yield p.step, [X * X, 2 * X]
        yield lambda: [read(before)], [2 * X]
        whole = wp.zeros(2 * N, dtype=float)
        p.x.grad = whole[::2]
        yield p.step, [X * X, 2 * X]
        yield lambda: [read(whole)[1::2]], [ZERO]
        p.y.grad = zeros(grad=False)
        yield p.step, [X * X, 2 * X]


@change("a gradient is dropped")
def _() -> Steps:
    for p in (Squares(), Kept()):
        yield p.step, [X * X, 2 * X]
        p.x.grad = None
        p.x.requires_grad = True
        gc.collect()
        zeros()  # where the gradient was, perhaps
        yield p.step, [X * X, 2 * X]
        p.y.grad = None
        yield p.step, [X * X, 2 * X]


@change("a gradient is retained")
def _() -> Steps:
    for p in (Squares(), Kept()):
        yield lambda p=p: [*p.step(), read(p.y.grad)], [X * X, 2 * X, ZERO]
        p.y.retain_grad = True
        yield lambda p=p: [*p.step(), read(p.y.grad)], [X * X, 2 * X, ONE]
        p.y.retain_grad = False
        yield lambda p=p: [*p.step(), read(p.y.grad)], [X * X, 2 * X, ZERO]


@change("two arrays share a gradient")
def _() -> Steps:
    x, y, z = floats(), zeros(), zeros()
    one = floats(ONE, grad=False)

    def step() -> list[Any]:
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(scale, N, [x, y, 2.0])
            wp.launch(scale, N, [y, z, 3.0])
        tape.backward(grads={z: one})
        return [read(z), read(x.grad)]

    yield step, [6 * X, 6 * ONE]
    y.grad = zeros(grad=False)
    yield step, [6 * X, 6 * ONE]


@change("the gradient of a view's array is another one", native=False)  # Python finds it
def _() -> Steps:
    x, y = floats(np.arange(2 * N)), zeros()
    part = x[N:]

    def step() -> list[Any]:
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(square, N, [part], [y])
        tape.backward(grads={y: ONE})
        return [read(y), read(x.grad)]

    own = np.arange(N, 2 * N, dtype=np.float32)
    want = [own * own, np.concatenate([ZERO, 2 * own])]
    yield step, want
    x.grad = wp.zeros(2 * N, dtype=float)
    yield step, want
    x.requires_grad = False
    x.requires_grad = True
    yield step, want


@change("NumPy writes through a view", native=False)
def _() -> Steps:
    for p in (Squares(), Kept()):
        seen = p.x.numpy()
        yield lambda p=p: p.step()[1:], [2 * X]
        seen[:] = 3.0
        yield lambda p=p: p.step()[1:], [6 * ONE]
        del seen
        yield lambda p=p: p.step()[1:], [6 * ONE]


@change("inputs are written between passes of a tape that is kept")
def _() -> Steps:
    p = Kept()
    yield p.step, [X * X, 2 * X]
    wp.launch(halve, N, [p.x])
    yield lambda: p.step()[1:], [X]
    p.x.assign(3 * X)
    yield lambda: p.step()[1:], [6 * X]
    p.x.fill_(1.0)
    yield lambda: p.step()[1:], [2 * ONE]
    p.x.zero_()
    yield lambda: p.step()[1:], [ZERO]
    p.x[1:2] = 5.0
    yield lambda: p.step()[1:], [np.float32([0, 10, 0, 0])]
    np.asarray(p.x)[2] = 4.0
    yield lambda: p.step()[1:], [np.float32([0, 10, 8, 0])]


@change("an input is overwritten on the tape from some step on")
def _() -> Steps:
    x, y, z = floats(), zeros(), zeros()
    over: list[str] = []

    def step() -> list[Any]:
        x.assign(X)
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(square, N, [x], [y])
            if "launch" in over:
                wp.launch(halve, N, [x])
            if "fill" in over:
                x.fill_(9.0)
            if "copy" in over:
                wp.copy(x, z)
            if "view" in over:
                wp.launch(halve, 2, [x[1:3]])
            wp.launch(scale, N, [y, z, 3.0])
        tape.backward(grads={z: ONE})
        return [read(z), read(x.grad)]

    yield step, [3 * X * X, 6 * X]
    for how in ("launch", "fill", "copy", "view"):
        over[:] = [how]
        yield step, [3 * X * X, 6 * X]
    over[:] = []
    yield step, [3 * X * X, 6 * X]


@change("arrays die, and others have their places", native=False)
def _() -> Steps:
    def step() -> list[Any]:
        out = []
        for k in range(8):
            x, y = floats(X + k), zeros()
            with wp.Tape() as tape:
                wp.launch(square, N, [x], [y])
            tape.backward(grads={y: ONE})
            out += [read(y), read(x.grad)]
            del x, y, tape
        return out

    want = [a for k in range(8) for a in ((X + k) ** 2, 2 * (X + k))]
    yield step, want


@change("a tape outlives its arrays", native=False)  # their gradients are made by Python
def _() -> Steps:
    x, tapes = floats(), []

    def step() -> list[Any]:
        x.grad.zero_()
        y, z = zeros(), zeros()
        with wp.Tape() as tape:
            wp.launch(square, N, [x], [y])
            wp.launch(scale, N, [y, z, 2.0])
        seed = {z: ONE}
        tapes[:] = [tape]
        del y, z
        gc.collect()
        [zeros() for _ in range(8)]
        tape.backward(grads=seed)
        return [read(x.grad)]

    yield step, [4 * X]
    tapes.clear()
    yield step, [4 * X]


@change("arrays outlive their tapes")
def _() -> Steps:
    p = Squares()
    yield p.step, [X * X, 2 * X]
    p.tape = None
    gc.collect()
    yield p.step, [X * X, 2 * X]
    p.tape.reset()
    wp.launch(halve, N, [p.x])
    yield p.step, [X * X / 4, X]
