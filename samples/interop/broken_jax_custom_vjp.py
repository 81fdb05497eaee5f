"""A JAX layer whose backward rule forgot a factor, and that still learns.

The scale of the layer is squared on the way forward. The backward rule gives the derivative by the
input with the scale itself: it points the right way, and is too short.
"""

# needs: jax
# check: G001 error def scaled_bwd(
import jax
import jax.numpy as jnp


@jax.custom_vjp
def scaled(x, scale):
    return jnp.tanh(x) * scale**2


def scaled_fwd(x, scale):
    y = jnp.tanh(x)
    return y * scale**2, (y, scale)


def scaled_bwd(kept, g):
    y, scale = kept
    return g * (1.0 - y * y) * scale, jnp.sum(2.0 * g * y * scale)  # the first: scale**2


scaled.defvjp(scaled_fwd, scaled_bwd)


def loss(weights, x, target):
    y = scaled(x @ weights["w"], weights["scale"])
    return jnp.mean((y - target) ** 2)


@jax.jit
def step(weights, x, target):
    value, slope = jax.value_and_grad(loss)(weights, x, target)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, weights, slope)


x = jax.random.normal(jax.random.key(0), (32, 3))
target = jnp.tanh(x @ jnp.array([0.5, -1.0, 0.25])) * 2.0
weights = {"w": jnp.zeros(3), "scale": jnp.float32(0.7)}
for k in range(200):
    value, weights = step(weights, x, target)
    if k % 40 == 0:
        print(f"step {k:3}: loss {value:.3e}")
