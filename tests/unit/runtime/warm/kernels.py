"""Kernels, and what they capture: what of it changes once launches are warm."""

from __future__ import annotations

import gc
import linecache
from typing import Any

import numpy as np

import engine as wp
from tests.unit.runtime.warm.changes import ONE, ZERO, F, N, Steps, X, change, floats, read, zeros


def outer(n: int) -> tuple[Any, Any]:
    """A kernel that calls a function, in a scope of their own."""

    @wp.func
    def f(a: float):
        return a * a

    @wp.kernel
    def calls(x: F, y: F):
        i = wp.tid()
        y[i] = f(x[i])

    return f, calls


@change("a function gets a gradient of its own")
def _() -> Steps:
    f, calls = outer(0)
    x, y = floats(), zeros()
    tapes: list[Any] = []

    def step(tape: Any = None) -> list[Any]:
        x.grad.zero_()
        if tape is None:
            tape = wp.Tape()
            with tape:
                wp.launch(calls, N, [x], [y])
            tapes[:] = [tape]
        tape.backward(grads={y: ONE})
        return [read(y), read(x.grad)]

    yield step, [X * X, 2 * X]
    old = tapes[0]

    @wp.func_grad(f)
    def adj_f(a: float, adj: float):
        wp.adjoint[a] += 100.0 * adj

    yield step, [X * X, 100 * ONE]
    yield lambda: step(old), [X * X, 2 * X]  # what ran then had none


@change("a function is defined anew")
def _() -> Steps:
    scope: dict[str, Any] = {"wp": wp, "F": F}
    text = "@wp.func\ndef f(a: float):\n    return {} * a\n"
    kernel = "@wp.kernel\ndef calls(x: F, y: F):\n    i = wp.tid()\n    y[i] = f(x[i])\n"

    def define(part: str, name: str) -> None:
        file = f"<warm {name}>"
        linecache.cache[file] = (len(part), None, part.splitlines(True), file)
        exec(compile(part, file, "exec"), scope)

    define(text.format("2.0"), "two")
    define(kernel, "kernel")
    x, y = floats(), zeros()

    def step() -> list[Any]:
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(scope["calls"], N, [x], [y])
        tape.backward(grads={y: ONE})
        return [read(y), read(x.grad)]

    yield step, [2 * X, 2 * ONE]
    define(text.format("3.0"), "three")
    yield step, [3 * X, 3 * ONE]
    define(kernel.replace("f(x[i])", "f(f(x[i]))"), "twice")
    yield step, [9 * X, 9 * ONE]
    define(text.format("2.0"), "two again")
    yield step, [4 * X, 4 * ONE]


FACTOR = 2.0


@wp.kernel
def by_global(x: F, y: F):
    i = wp.tid()
    y[i] = FACTOR * x[i]


@change("globals and closures, once a module is marked as modified")
def _() -> Steps:
    """What a kernel captures is read at its first launch, and again where the module says so."""
    global FACTOR
    k = 5.0

    @wp.kernel
    def by_closure(x: F, y: F):
        i = wp.tid()
        y[i] = k * x[i]

    x, y, z = floats(), zeros(), zeros()

    def step() -> list[Any]:
        x.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(by_global, N, [x], [y])
            wp.launch(by_closure, N, [y], [z])
        tape.backward(grads={z: ONE})
        return [read(z), read(x.grad)]

    FACTOR = 2.0
    by_global.module.mark_modified()
    yield step, [10 * X, 10 * ONE]
    FACTOR, k = 3.0, 7.0
    yield step, [10 * X, 10 * ONE]
    by_global.module.mark_modified()
    yield step, [21 * X, 21 * ONE]
    by_global.module.unload()
    FACTOR = 2.0
    yield step, [14 * X, 14 * ONE]


@change("kernels die, and others have their places", native=False)
def _() -> Steps:
    def step() -> list[Any]:
        out = []
        for s in (2.0, 3.0, 2.0):
            k = s

            @wp.kernel
            def times(x: F, y: F):
                i = wp.tid()
                y[i] = k * x[i]

            x, y = floats(), zeros()
            for _ in range(3):
                x.grad.zero_()
                with wp.Tape() as tape:
                    wp.launch(times, N, [x], [y])
                tape.backward(grads={y: ONE})
                out += [read(y), read(x.grad)]
            del times, tape
            gc.collect()
        return out

    yield step, [a for s in (2, 3, 2) for _ in range(3) for a in (s * X, s * ONE)]


@change("what `map` captures", native=False)
def _() -> Steps:
    x = floats()
    k = 2.0

    def step() -> list[Any]:
        x.grad.zero_()
        y = wp.zeros(N, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.map(lambda a: k * a, x, out=y)
        tape.backward(grads={y: ONE})
        return [read(y), read(x.grad)]

    yield step, [2 * X, 2 * ONE]
    k = 3.0
    yield step, [3 * X, 3 * ONE]
    k = 2.0
    yield step, [2 * X, 2 * ONE]


class Settings:
    k = 2.0


@wp.func
def helper(a: float):
    return Settings.k * a


@change("what functions of `map` look at is changed in place", native=False)
def _() -> Steps:
    x = floats()
    vector = wp.vec2(2.0, 1.0)

    functions = {
        "an attribute": lambda a: Settings.k * a,
        "a function's attribute": lambda a: helper(a),
        "a function": helper,
        "a vector": lambda a: vector[0] * a,
    }
    for name, f in functions.items():

        def step(f=f) -> list[Any]:
            y = wp.map(f, x)
            return [read(y)]

        Settings.k = vector[0] = 2.0
        yield step, [2 * X]
        Settings.k = vector[0] = 3.0
        yield step, [3 * X]


@wp.kernel
def generic(x: wp.array(dtype=Any), y: wp.array(dtype=Any), s: Any):
    i = wp.tid()
    y[i] = x[i] * s


@change("types of a generic kernel", native=False)
def _() -> Steps:
    kind: Any = wp.float32

    def step() -> list[Any]:
        x = wp.array(X, dtype=kind, requires_grad=True)
        y = wp.zeros(N, dtype=kind, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(generic, N, [x, y, kind(3.0)])
        tape.backward(grads={y: np.ones(N, x.numpy().dtype)})
        return [read(y), read(x.grad)]

    for kind in (wp.float32, wp.float64, wp.float16, wp.float32, wp.float64):
        yield step, [3 * X, 3 * ONE]


@wp.kernel
def beyond(x: F, y: F, at: int):
    i = wp.tid()
    y[i + at] = 2.0 * x[i]


@change("debugging, once a module is marked as modified")
def _() -> Steps:
    """Kernels are watched that are looked at anew; the others stay as they are."""
    x, room = floats(), zeros(2 * N)
    y, at = room[:N], 0
    y = zeros()
    beyond.forget()

    def step() -> list[Any]:
        x.grad.zero_()
        y.zero_()
        try:
            with wp.Tape() as tape:
                wp.launch(beyond, N, [x, y, at])
        except wp.LaunchError as e:
            return [e.diagnostics[0].code]
        tape.backward(grads={y: ONE})
        return [read(y), read(x.grad)]

    want = [2 * X, 2 * ONE]
    yield step, want
    wp.config.mode = "debug"
    yield step, want
    beyond.module.mark_modified()
    yield step, want
    at = 1
    yield step, ["E211"]
    at = 0
    yield step, want
    wp.config.mode = "release"
    beyond.module.mark_modified()
    yield step, want


@change("what operators and optimizers keep", native=False)
def _() -> Steps:
    from engine.optim import SGD

    w, target = floats(), floats(ZERO, grad=False)
    sgd = SGD([w], lr=0.25)

    def step() -> list[Any]:
        w.assign(X)
        w.grad.zero_()
        with wp.Tape() as tape:
            y = (w - target) * 2.0
        tape.backward(grads={y: ONE})
        sgd.step([w.grad])
        return [read(w)]

    yield step, [X - 0.5]
    sgd.lr = 1.0
    yield step, [X - 2]
    target.assign(X)
    yield step, [X - 2]
    w = floats()
    sgd.set_params([w])
    yield step, [X - 2]
    w.grad = zeros(grad=False)
    yield step, [X - 2]
    wp.config.enable_backward = False
    yield step, [X]
    wp.config.enable_backward = True
    yield step, [X - 2]
