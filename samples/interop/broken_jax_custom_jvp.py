"""A JAX rule that divides once too often.

The distance of a point from the origin, written with a rule that is finite at the origin. The rule
divides by the square of the distance: it points the right way, and what is far away hardly counts.
"""

# needs: jax
# check: G001 error def distance_jvp(
import jax
import jax.numpy as jnp


@jax.custom_jvp
def distance(x, y):
    return jnp.sqrt(x * x + y * y)


@distance.defjvp
def distance_jvp(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    r = distance(x, y)
    away = jnp.where(r > 0.0, r * r, 1.0)  # should be r
    return r, (x * x_dot + y * y_dot) / away


def loss(p, posts, lengths):
    return jnp.mean((distance(p[0] - posts[:, 0], p[1] - posts[:, 1]) - lengths) ** 2)


posts = jnp.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])
lengths = jnp.sqrt(jnp.sum((jnp.array([1.5, 1.0]) - posts) ** 2, axis=1))
p = jnp.array([1.0, 1.2])
step = jax.jit(lambda p: p - 0.1 * jax.grad(loss)(p, posts, lengths))
for k in range(60):
    if k % 20 == 0:
        print(f"step {k:2}: loss {float(loss(p, posts, lengths)):.3e}")
    p = step(p)
print("the point is at", *(round(float(v), 2) for v in p), "and should be at 1.5 1.0")
