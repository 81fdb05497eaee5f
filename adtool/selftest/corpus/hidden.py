"""Wrong gradients that hide: in one element, in a later launch, or from most cotangents.

Each is a program with several launches, as it should be and with a spoiled derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import engine as wp

F: Any = wp.array(dtype=float)
V: Any = wp.array(dtype=wp.vec2)

N = 20
Program = Callable[[bool, int], list[Any]]


def _tape(kernel: Any, n: int, inputs: list[Any], outputs: list[Any]) -> Any:
    with wp.Tape() as tape:
        wp.launch(kernel, n, inputs=inputs, outputs=outputs)
    return tape


def _array(values: Any, dtype: Any = float) -> Any:
    return wp.array(np.asarray(values), dtype=dtype, requires_grad=True)


def _product_kernel(factor: float) -> Any:
    """factor: of the derivative where x is large; 1 is right."""

    @wp.func
    def product(x: float, y: float):
        return x * y

    @wp.func_grad(product)
    def adj_product(x: float, y: float, adj_ret: float):
        s = float(1.0)
        if x > 2.0:
            s = factor
        wp.adjoint[x] += s * y * adj_ret
        wp.adjoint[y] += s * x * adj_ret

    @wp.kernel
    def products(x: F, y: F, out: F):
        i = wp.tid()
        out[i] = product(x[i], y[i])

    return products


def later_launch(wrong: bool, seed: int) -> list[Any]:
    """In one thread of the fourth launch of a kind, all parts are wrong by one factor."""
    kernel, r = _product_kernel(1.5 if wrong else 1.0), np.random.default_rng(seed)
    tapes = []
    for step in range(4):
        x = r.uniform(0.5, 1.5, 2 * N)
        if step == 3:
            x[7] = 2.5
        tapes.append(_tape(kernel, 2 * N, [_array(x), _array(r.uniform(0.5, 1.5, 2 * N))],
                           [_array(np.zeros(2 * N))]))  # fmt: skip
    return tapes


def one_tape_of_many(wrong: bool, seed: int) -> list[Any]:
    """The ninth tape of twelve takes a branch whose derivative is wrong in all threads."""
    kernel, r = _product_kernel(0.5 if wrong else 1.0), np.random.default_rng(seed)
    tapes = []
    for step in range(12):
        x = r.uniform(0.5, 1.5, N) + (2.0 if step == 8 else 0.0)
        tapes.append(_tape(kernel, N, [_array(x), _array(r.uniform(0.5, 1.5, N))],
                           [_array(np.zeros(N))]))  # fmt: skip
    return tapes


def equal_parameters(wrong: bool, seed: int) -> list[Any]:
    """All elements are equal, so that parts of one size have signs alone that differ."""
    factor = 1.0 if wrong else 2.0

    @wp.func
    def barrier(d: float):
        return wp.where(d < 0.0, d * d, 0.0)

    @wp.func_grad(barrier)
    def adj_barrier(d: float, adj_ret: float):
        if d < 0.0:
            wp.adjoint[d] += factor * d * adj_ret

    @wp.kernel
    def cost(x: F, loss: F):
        i = wp.tid()
        wp.atomic_add(loss, 0, x[i] * x[i] + barrier(x[i]))

    del seed
    return [
        _tape(cost, 4, [_array(np.full(4, -1.0 if it == 2 else 1.0 + it))], [_array(np.zeros(1))])
        for it in range(8)
    ]


def not_linear(wrong: bool, seed: int) -> list[Any]:
    """A derivative that drops negative cotangents."""
    least = 0.0 if wrong else -1e30

    @wp.func
    def square(x: float):
        return x * x

    @wp.func_grad(square)
    def adj_square(x: float, adj_ret: float):
        wp.adjoint[x] += 2.0 * x * wp.max(adj_ret, least)

    @wp.kernel
    def squares(x: F, out: F):
        i = wp.tid()
        out[i] = square(x[i])

    r = np.random.default_rng(seed)
    return [_tape(squares, N, [_array(r.normal(size=N))], [_array(np.zeros(N))])]


def _beside(unstable: Any, power: int) -> Any:
    """A kernel of a robust loss beside an unstable function; power: of the loss, 2 is right."""

    @wp.func
    def robust(r2: float):
        return r2 / (r2 + 0.25)

    @wp.func_grad(robust)
    def adj_robust(r2: float, adj_ret: float):
        s = r2 + 0.25
        if power == 2:
            s = s * s
        wp.adjoint[r2] += adj_ret * 0.25 / s

    @wp.kernel
    def fields(x: V, site: V, e: F):
        i = wp.tid()
        d = x[i] - site[i]
        r2 = wp.dot(d, d)
        e[i] = robust(r2) + unstable(r2)

    return fields


def _points(seed: int, special: float | None) -> tuple[Any, Any, Any]:
    r = np.random.default_rng(seed)
    x = r.normal(size=(N, 2))
    site = x + 0.5 * r.normal(size=(N, 2))
    site[7] = x[7] if special is None else x[7] + [special, 0.0]
    return _array(x, wp.vec2), wp.array(site, dtype=wp.vec2), _array(np.zeros(N))


@wp.func
def softened(r2: float):
    return -0.01 / wp.sqrt(r2 + 1.0e-6)


@wp.func
def pole(r2: float):
    return 1.0e-6 / r2


@wp.func
def chaotic(r2: float):
    a = 0.3 + 1.0e-3 * r2
    n = 0
    if r2 < 1.0e-3:
        n = 60
    for _ in range(n):
        a = 3.99 * a * (1.0 - a)
    return a


def coincident(wrong: bool, seed: int) -> list[Any]:
    """One point lies exactly on its site, beside a softened pole."""
    x, site, e = _points(seed, None)
    return [_tape(_beside(softened, 1 if wrong else 2), N, [x, site], [e])]


def singular(wrong: bool, seed: int) -> list[Any]:
    """One point lies next to a pole, where the derivative is huge."""
    x, site, e = _points(seed, 1.0e-3)
    return [_tape(_beside(pole, 1 if wrong else 2), N, [x, site], [e])]


def chaos(wrong: bool, seed: int) -> list[Any]:
    """One thread goes through a chaotic map."""
    x, site, e = _points(seed, 1.0e-2)
    return [_tape(_beside(chaotic, 1 if wrong else 2), N, [x, site], [e])]


PROGRAMS: dict[str, Program] = {
    p.__name__: p
    for p in (
        later_launch, one_tape_of_many, equal_parameters, not_linear, coincident, singular, chaos,
    )
}  # fmt: skip
