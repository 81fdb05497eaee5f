"""Functions for tests that call them from another module."""

from typing import Any

import engine as wp


@wp.func
def triple_it(x: float):
    return 3.0 * x


@wp.func
def weighted(x: Any, y: Any, z: Any):
    return x * y - z


@wp.func
def cubed(x: float):
    return x * x * x


@wp.func_grad(cubed)
def adj_cubed(x: float, adj_ret: float):
    wp.adjoint[x] += 3.0 * x * x * adj_ret
