"""JAX, on the CPU or the GPU. Everything is compiled.

A backward pass is one program from the arguments and the gradient of the result to those of the
arguments, as an adjoint is: nothing was kept by a forward pass that would have to be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.case import Ready
from benchmarks.data import PARTICLES, SMALL, Springs, edges, random_springs, springs, values
from benchmarks.frameworks import Rows
from benchmarks.place import ON_GPU

Function = Callable[..., Any]


def wait(result: Any) -> None:
    """For the last call: those before it have ended then."""
    jax.block_until_ready(result)


def _done(result: Any) -> Any:
    """On the CPU a call ends when its result is there; on the GPU calls are waited for together."""
    return result if ON_GPU else jax.block_until_ready(result)


def _ready(f: Function, given: list[Any], seed: Any = None) -> Ready:
    """A function of arrays, and its gradients for a gradient of the result."""
    arrays = [jnp.asarray(a) for a in given]
    forward = jax.jit(f)
    out = forward(*arrays)
    kept = jnp.ones_like(out) if seed is None else jnp.asarray(seed)
    backward = jax.jit(lambda g, *a: jax.vjp(f, *a)[1](g))
    found = backward(kept, *arrays)
    return Ready(
        lambda: _done(forward(*arrays)),
        lambda: _done(backward(kept, *arrays)),
        [np.asarray(out)],
        [np.asarray(g) for g in found],
    )


def _tiny(size: int) -> Ready:
    return _ready(lambda x: x * x, [np.full(1, 3.0, np.float32)])


def _saxpy(size: int) -> Ready:
    return _ready(lambda x, y: 2.5 * x + y, [values(size), values(size, 2)])


def _wave(v: Any) -> Any:
    return jnp.sin(v) * jnp.exp(-v * v) + jnp.sqrt(v * v + 1.0)


def _elementwise(size: int) -> Ready:
    return _ready(_wave, [values(size)])


def _nbody(size: int) -> Ready:
    def pull(x: Any, mass: Any) -> Any:
        def one(here: Any) -> Any:
            d = x - here
            s = jnp.sum(d * d, axis=1) + 0.01
            return jnp.sum(d * (mass / (s * jnp.sqrt(s)))[:, None], axis=0)

        return jax.vmap(one)(x)

    return _ready(pull, [values(3 * size).reshape(-1, 3), values(size, 2) + 1.5])


def _stencil(size: int) -> Ready:
    side = round(size**0.5)

    def step(u: Any) -> Any:
        middle = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return jnp.pad(middle + 0.1 * (around - 4.0 * middle), 1)

    return _ready(step, [values(side * side).reshape(side, side)])


def _springs(size: int, drawn: Springs = springs) -> Ready:
    particles, first, second = drawn(size)
    i, j = jnp.asarray(first), jnp.asarray(second)

    def forces(x: Any) -> Any:
        d = x[j] - x[i]
        length = jnp.sqrt(jnp.sum(d * d, axis=1, keepdims=True))
        f = d * (10.0 * (length - 0.5) / length)
        return jnp.zeros_like(x).at[i].add(f).at[j].add(-f)

    x = values(3 * particles).reshape(-1, 3)
    return _ready(forces, [x], values(3 * particles, 4).reshape(-1, 3))


def _loop(size: int) -> Ready:
    return _ready(
        lambda x: lax.fori_loop(0, 16, lambda _, v: v + 0.1 * jnp.sin(v), x), [values(size)]
    )


def _cross(size: int) -> Ready:
    def normal(a: Any, b: Any) -> Any:
        c = jnp.cross(a, b)
        return c / jnp.sqrt(jnp.sum(c * c, axis=1, keepdims=True))

    return _ready(normal, list(edges(size)), values(3 * size, 5).reshape(-1, 3))


def _sum(size: int) -> Ready:
    return _ready(lambda x: jnp.sum(x * x), [values(size)])


def _maximum(size: int) -> Ready:
    return _ready(lambda x: jnp.max(jnp.sin(x) * jnp.exp(x) + jnp.sqrt(x + 2.0)), [values(size)])


def _iteration(size: int) -> Ready:
    target = jnp.asarray(values(SMALL))

    gradient = jax.grad(lambda w: jnp.sum((w - target) ** 2))
    step = jax.jit(lambda w: w - 0.01 * gradient(w))
    at = [jnp.zeros(SMALL)]

    def forward() -> Any:
        at[0] = _done(step(at[0]))
        return at[0]

    forward()
    return Ready(forward, None)


def _trajectory(size: int) -> Ready:
    def end(x: Any, v: Any) -> Any:
        def swing(state: Any, _: Any) -> Any:
            x, v = state
            v = v - 0.01 * jnp.sin(x)
            return (x + 0.01 * v, v), None

        return lax.scan(swing, (x, v), None, length=size)[0][0]

    def gradient(x: Any, v: Any) -> Any:
        out, back = jax.vjp(end, x, v)
        return out, back(jnp.ones_like(out))

    both = jax.jit(gradient)
    given = [jnp.asarray(values(PARTICLES)), jnp.asarray(values(PARTICLES, 2))]
    _, found = both(*given)
    alone = jax.jit(end)
    return Ready(
        lambda: _done(alone(*given)),
        lambda: _done(both(*given)),
        [],
        [np.asarray(found[0])],
    )


def _gradcheck(size: int) -> Ready:
    from jax.test_util import check_grads

    x = jnp.asarray(values(size))

    def forward() -> None:
        check_grads(_wave, (x,), order=1, modes=["rev"], atol=1e-2, rtol=1e-2)

    forward()
    return Ready(forward, None)


def rows() -> Rows:
    """What JAX can do."""
    return {
        "launch": _tiny, "saxpy": _saxpy, "elementwise": _elementwise, "nbody": _nbody,
        "stencil": _stencil, "springs": _springs,
        "random_springs": partial(_springs, drawn=random_springs),
        "loop": _loop, "cross": _cross, "sum": _sum,
        "maximum": _maximum, "iteration_captured": _iteration,
        "trajectory_captured": _trajectory,
        "gradcheck": _gradcheck,
    }  # fmt: skip
