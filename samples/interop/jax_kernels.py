"""Kernels as functions of JAX arrays: outputs, scalars, grids, shapes, vectors, arrays in place."""

# needs: jax
# check: no tape

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import engine as wp


@wp.kernel
def add(a: wp.array(dtype=int), b: wp.array(dtype=int), out: wp.array(dtype=int)):
    i = wp.tid()
    out[i] = a[i] + b[i]


@wp.kernel
def sincos(
    angle: wp.array(dtype=float),
    # outputs
    sine: wp.array(dtype=float),
    cosine: wp.array(dtype=float),
):
    i = wp.tid()
    sine[i] = wp.sin(angle[i])
    cosine[i] = wp.cos(angle[i])


@wp.kernel
def diagonal(out: wp.array(dtype=wp.mat33)):
    out[wp.tid()] = wp.mat33(1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0)


@wp.kernel
def scale(a: wp.array(dtype=float), s: float, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = a[i] * s


@wp.kernel
def product(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    i, j = wp.tid()
    total = float(0.0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    c[i, j] = total


@wp.kernel
def ends(a: wp.array(dtype=float), first: wp.array(dtype=float), last: wp.array(dtype=float)):
    """Copies as many of the first and last elements as there is room for."""
    i = wp.tid()
    if i < first.shape[0]:
        first[i] = a[i]
    if i < last.shape[0]:
        last[i] = a[a.shape[0] - last.shape[0] + i]


@wp.kernel
def stretch(
    a: wp.array(dtype=float),
    b: wp.array(dtype=wp.vec3),
    c: wp.array(dtype=wp.mat22),
    # outputs
    d: wp.array(dtype=float),
    e: wp.array(dtype=wp.vec3),
    f: wp.array(dtype=wp.mat22),
):
    i = wp.tid()
    d[i] = 2.0 * a[i]
    e[i] = a[i] * b[i]
    f[i] = c[i] * c[i]


@wp.kernel
def accumulate(x: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    total[i] += x[i]


def simple() -> None:
    jax_add = wp.jax_kernel(add)
    a, b = jnp.arange(10, dtype=jnp.int32), jnp.ones(10, dtype=jnp.int32)
    np.testing.assert_array_equal(jax.jit(jax_add)(a, b)[0], a + 1)

    jax_sincos = wp.jax_kernel(sincos, num_outputs=2)
    angle = jnp.linspace(0.0, 2.0 * np.pi, 32)
    s, c = jax.jit(jax_sincos)(angle)
    np.testing.assert_allclose(s, jnp.sin(angle), atol=1e-6)
    np.testing.assert_allclose(c, jnp.cos(angle), atol=1e-6)

    # Without inputs, the call says how large the grid is.
    jax_diagonal = wp.jax_kernel(diagonal)
    (d,) = jax.jit(lambda: jax_diagonal(launch_dims=4))()
    np.testing.assert_array_equal(d, np.broadcast_to(np.diag([1.0, 2.0, 3.0]), (4, 3, 3)))


def scalars() -> None:
    jax_scale = wp.jax_kernel(scale)
    a = jnp.arange(10, dtype=jnp.float32)

    @partial(jax.jit, static_argnames=["s"])
    def static(a, s):  # one compiled program for each value
        return jax_scale(a, s)[0]

    @jax.jit
    def computed(a, s):  # one for all
        return jax_scale(a, s)[0]

    for s in (2.0, 3.0):
        np.testing.assert_allclose(static(a, s), s * a)
        np.testing.assert_allclose(computed(a, s), s * a)


def shapes() -> None:
    jax_product = wp.jax_kernel(product)

    @jax.jit
    def two_sizes():
        a1, b1 = jnp.full((3, 2), 2.0), jnp.full((2, 4), 3.0)
        a2, b2 = jnp.full((4, 2), 2.0), jnp.full((2, 3), 3.0)
        return (
            jax_product(a1, b1, launch_dims=(3, 4))[0],
            jax_product(a2, b2, launch_dims=(4, 3))[0],
        )

    r1, r2 = two_sizes()
    assert r1.shape == (3, 4) and r2.shape == (4, 3)
    np.testing.assert_allclose(r1[0, 0], 12.0)
    np.testing.assert_allclose(r2, 12.0)

    jax_ends = wp.jax_kernel(ends, num_outputs=2)
    a = jnp.arange(8, dtype=jnp.float32)
    first, last = jax_ends(a, output_dims=3)
    np.testing.assert_array_equal(first, a[:3])
    np.testing.assert_array_equal(last, a[-3:])
    first, last = jax_ends(a, output_dims={"first": 2, "last": 5})
    assert first.shape == (2,) and last.shape == (5,)
    first, last = jax_ends(a, launch_dims=1, output_dims={"first": 2, "last": 5})
    np.testing.assert_array_equal(first, [0.0, 0.0])  # the only thread has written a[0]
    np.testing.assert_array_equal(last, [3.0, 0.0, 0.0, 0.0, 0.0])


def vectors() -> None:
    jax_stretch = wp.jax_kernel(stretch, num_outputs=3)
    n = 10
    a = jnp.arange(n, dtype=jnp.float32)
    b = jnp.ones((n, 3), dtype=jnp.float32)  # vec3
    c = jnp.ones((n, 2, 2), dtype=jnp.float32)  # mat22
    ways = (
        None,
        n,
        {"d": n, "e": n, "f": n},
        {"d": n, "e": (n, 3), "f": (n, 2, 2)},
        {"d": a.shape, "e": b.shape, "f": c.shape},
    )
    for dims in ways:
        d, e, f = jax_stretch(a, b, c, output_dims=dims)
        np.testing.assert_allclose(d, 2.0 * a)
        np.testing.assert_allclose(e, a[:, None] * b)
        np.testing.assert_allclose(f, c @ c)


def in_place() -> None:
    # `total` is an input and an output. What the caller has stays as it is.
    jax_accumulate = wp.jax_kernel(accumulate, in_out_argnames=["total"])
    x, begin = jnp.arange(5, dtype=jnp.float32), jnp.zeros(5)

    @jax.jit
    def four_times(total, x):
        return jax.lax.fori_loop(0, 4, lambda _, t: jax_accumulate(x, t)[0], total)

    np.testing.assert_allclose(four_times(begin, x), 4.0 * x)
    np.testing.assert_array_equal(begin, 0.0)


def main() -> None:
    simple()
    scalars()
    shapes()
    vectors()
    in_place()
    print("kernels in JAX: outputs, scalars, shapes and vectors are as expected")


if __name__ == "__main__":
    main()
