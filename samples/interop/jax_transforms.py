"""Kernels under the transformations of JAX: batches, derivatives of any order, an optimisation.

A swarm of particles is drawn towards sources by a kernel. JAX batches it, differentiates it forward
and in reverse, and Newton's method, which needs the Hessian, finds where a source must be.
"""

# needs: jax
# check: passes

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import engine as wp


@wp.kernel
def pull(
    points: wp.array(dtype=wp.vec2),
    sources: wp.array(dtype=wp.vec2),
    strength: float,
    potential: wp.array(dtype=float),
):
    i = wp.tid()
    total = float(0.0)
    for k in range(sources.shape[0]):
        d = points[i] - sources[k]
        total += strength * wp.exp(-wp.dot(d, d))
    potential[i] = total


def reference(points, sources, strength):
    d = points[:, None] - sources
    return strength * jnp.exp(-(d * d).sum(-1)).sum(1)


rng = np.random.default_rng(3)
POINTS = jnp.asarray(rng.normal(size=(12, 2)), jnp.float32)
SOURCES = jnp.asarray(rng.normal(size=(3, 2)), jnp.float32)

jax_pull = wp.jax_kernel(pull, enable_backward=True)


def field(points, sources, strength):
    return jax_pull(points, sources, strength)[0]


def batches() -> None:
    many = jnp.stack([SOURCES, 2.0 * SOURCES, -SOURCES])
    expected = jax.vmap(reference, (None, 0, None))(POINTS, many, 1.0)

    @partial(jax.jit, static_argnames="method")
    def run(many, method):
        one = partial(jax_pull, vmap_method=method)
        return jax.vmap(lambda s: one(POINTS, s, 1.0)[0])(many)

    for method in ("broadcast_all", "expand_dims", "sequential", "sequential_unrolled"):
        np.testing.assert_allclose(run(many, method), expected, rtol=1e-5)


def derivatives() -> None:
    def all_of(f):
        args = (POINTS, SOURCES, jnp.float32(0.5))

        def loss(*args):
            return (f(*args) ** 2).sum()

        return [
            jax.grad(loss, (0, 1, 2))(*args),
            jax.jvp(f, args, args),
            jax.jacrev(f, 1)(*args),
            jax.jacfwd(f, 1)(*args),
            jax.hessian(loss, 2)(*args),
            jax.vmap(jax.grad(loss, 1), (None, 0, None))(
                POINTS, jnp.stack([SOURCES, -SOURCES]), 0.5
            ),
        ]

    mine, theirs = (jax.jit(all_of, static_argnums=0)(f) for f in (field, reference))
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def newton() -> None:
    """Finds a source from the potential that it makes."""
    true = jnp.asarray([[0.3, -0.2]])
    seen = field(POINTS, true, 1.0)

    def loss(source):
        return jnp.mean((field(POINTS, source[None], 1.0) - seen) ** 2)

    step = jax.jit(lambda s: s - jnp.linalg.solve(jax.hessian(loss)(s), jax.grad(loss)(s)))
    source = jnp.asarray([0.25, -0.1])
    for k in range(5):
        print(f"step {k}: loss {float(loss(source)):.2e}")
        source = step(source)
    np.testing.assert_allclose(source, true[0], atol=1e-4)
    print("found:", source)


def main() -> None:
    batches()
    derivatives()
    newton()


if __name__ == "__main__":
    main()
