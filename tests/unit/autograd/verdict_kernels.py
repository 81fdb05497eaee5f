"""Kernels that are hard to judge: right ones, and ones with a gradient that is wrong somewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

import engine as wp

F = wp.array(dtype=float)


@wp.func
def square(a: float):
    return a * a


@wp.func_grad(square)
def adj_square(a: float, adj_ret: float):
    if a > 5.0 and a < 5.1:
        wp.adjoint[a] += 2.02 * a * adj_ret  # 1 % too much
    else:
        wp.adjoint[a] += 2.0 * a * adj_ret


@wp.func
def doubled(a: float):
    return a * a


@wp.func_grad(doubled)
def adj_doubled(a: float, adj_ret: float):
    wp.adjoint[a] += 4.0 * a * adj_ret  # twice too much


@wp.func
def steep(a: float):
    return a * a


@wp.func_grad(steep)
def adj_steep(a: float, adj_ret: float):
    if a < 1.0:
        wp.adjoint[a] += 7.0 * a * adj_ret  # 3.5 times too much for small values
    else:
        wp.adjoint[a] += 2.0 * a * adj_ret


@wp.func
def magnitude(a: float):
    return wp.abs(a)


@wp.func_grad(magnitude)
def adj_magnitude(a: float, adj_ret: float):
    wp.adjoint[a] += 0.5 * adj_ret  # half of it for positive values


@wp.func
def cube(a: float):
    return a * a * a


@wp.func_grad(cube)
def adj_cube(a: float, adj_ret: float):
    if a < 5.0:
        wp.adjoint[a] += 7.0 * adj_ret  # wrong at what the launch read
    else:
        wp.adjoint[a] += 3.0 * a * a * adj_ret


@wp.kernel
def squares(x: F, y: F):
    i = wp.tid()
    y[i] = square(x[i])


@wp.kernel
def twice(x: F, y: F):
    i = wp.tid()
    y[i] = doubled(x[i])


@wp.kernel
def small_wrong(x: F, y: F):
    i = wp.tid()
    y[i] = steep(x[i])


@wp.kernel
def half_magnitude(x: F, y: F):
    i = wp.tid()
    y[i] = magnitude(x[i])


@wp.kernel
def cubes(out: F, x: F):
    i = wp.tid()
    out[i] = cube(x[i])


@wp.kernel
def waves(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sin(x[i])


@wp.kernel
def rectify(x: F, y: F):
    i = wp.tid()
    y[i] = wp.max(x[i], 0.0)


@wp.kernel
def in_place(a: F, b: F):
    i = wp.tid()
    a[i] = wp.sin(a[i]) * 3.0 + b[i]


@wp.kernel
def kink_in_place(a: F):
    i = wp.tid()
    a[i] = wp.abs(a[i]) + 1.0


@wp.kernel
def scatter(x: F, grid: F):
    """Linear weights on the two cells around each point."""
    i = wp.tid()
    s = x[i] * 10.0
    k = int(wp.floor(s))
    f = s - float(k)
    wp.atomic_add(grid, k, 1.0 - f)
    wp.atomic_add(grid, k + 1, f)


@wp.kernel
def lookup(x: F, table: F, y: F):
    i = wp.tid()
    k = int(wp.floor(x[i]))
    f = x[i] - float(k)
    y[i] = table[k] * (1.0 - f) + table[k + 1] * f


@wp.kernel
def some(x: F, y: F):
    i = wp.tid()
    if i < 2:
        y[i] = x[i] * x[i]


def floats(values: Any) -> Any:
    """An array that requires a gradient."""
    return wp.array(np.asarray(values, np.float32), dtype=float, requires_grad=True)


def recorded(kernel: Any, *args: Any, dim: int = 0) -> Any:
    """A tape with one launch."""
    with wp.Tape() as tape:
        wp.launch(kernel, dim=dim or len(args[0]), inputs=list(args))
    return tape


@wp.kernel
def absorbed(x: F, y: F):
    i = wp.tid()
    y[i] = (x[i] + wp.float32(1.0e17)) - wp.float32(1.0e17)


@wp.kernel
def half_absorbed(x: F, y: F):
    i = wp.tid()
    y[i] = (x[i] + wp.float32(1.0e12)) - wp.float32(1.0e12)


@wp.func
def sunk(a: float):
    return (a + wp.float32(1.0e17)) - wp.float32(1.0e17)


@wp.func_grad(sunk)
def adj_sunk(a: float, adj_ret: float):
    wp.adjoint[a] += 2.0 * adj_ret


@wp.kernel
def absorbed_wrong(x: F, y: F):
    i = wp.tid()
    y[i] = sunk(x[i])


@wp.func
def rounded(a: float):
    return wp.floor(a)


@wp.func_grad(rounded)
def adj_rounded(a: float, adj_ret: float):
    wp.adjoint[a] += adj_ret  # as if it were not rounded


@wp.kernel
def straight_through(x: F, y: F):
    i = wp.tid()
    y[i] = rounded(x[i])


@wp.kernel
def lossy(x: F, y: F):
    """Its derivative is cos(x), and float32 adds 1e7 to it and takes it away."""
    i = wp.tid()
    y[i] = 1.0e7 * x[i] + wp.sin(x[i]) - 1.0e7 * x[i]


@wp.kernel
def offset(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(x[i]) + wp.float32(1.0e8)
