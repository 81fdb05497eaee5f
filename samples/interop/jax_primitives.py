"""Kernels as functions of JAX by the older import, whose outputs are what a call leaves out.

`engine.jax_experimental.jax_kernel` needs no number of outputs: of a kernel with five parameters, a
call with three arguments has two outputs. It always returns a list.
"""

# needs: jax
# check: passes

import jax
import jax.numpy as jnp
import numpy as np

import engine as wp
from engine.jax_experimental import jax_kernel


@wp.kernel
def triple(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 3.0 * x[i]


@wp.kernel
def sums(
    a: wp.array(dtype=float),
    b: wp.array(dtype=float),
    c: wp.array(dtype=float),
    # outputs
    ab: wp.array(dtype=float),
    bc: wp.array(dtype=float),
):
    i = wp.tid()
    ab[i] = a[i] + b[i]
    bc[i] = b[i] + c[i]


@wp.kernel
def product(
    a: wp.array2d(dtype=float),  # N x K
    b: wp.array2d(dtype=float),  # K x M
    c: wp.array2d(dtype=float),  # N x M, as is the grid
):
    i, j = wp.tid()
    total = float(0.0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    c[i, j] = total


def main() -> None:
    jax_triple = jax_kernel(triple)
    x = jnp.arange(64, dtype=jnp.float32)
    (y,) = jax.jit(jax_triple)(x)
    np.testing.assert_allclose(y, 3.0 * x)

    jax_sums = jax_kernel(sums)
    a, b, c = (jnp.full(64, n, dtype=jnp.float32) for n in (1, 2, 3))
    ab, bc = jax.jit(jax_sums)(a, b, c)
    np.testing.assert_allclose(ab, 3.0)
    np.testing.assert_allclose(bc, 5.0)

    # The grid, and with it the shape of the output, where the first input does not say it.
    n, m, k = 3, 4, 2
    jax_product = jax_kernel(product, launch_dims=(n, m))
    left, right = jnp.full((n, k), 2.0), jnp.full((k, m), 3.0)
    (made,) = jax.jit(jax_product)(left, right)
    np.testing.assert_allclose(made, left @ right)

    # JAX differentiates them, too.
    gradient = jax.grad(lambda left: jax_product(left, right)[0].sum())(left)
    np.testing.assert_allclose(gradient, 3.0 * m)
    print("triple:", y[:4], "sums:", ab[0], bc[0], "product:", made[0])


if __name__ == "__main__":
    main()
