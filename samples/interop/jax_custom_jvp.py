"""A JAX function that is exact where its formula is not, by `custom_jvp`.

log(1 + exp(x)) is infinite for large x in float32, and so is what JAX makes of its derivative. The
function is written so that neither happens, and the rule gives the derivative in closed form. A
logistic regression on points that are far away is fitted with it, by Newton steps: the second
derivative goes through the rule as well.
"""

# needs: jax
# check: passes
import jax
import jax.numpy as jnp


@jax.custom_jvp
def softplus(x):
    return jnp.maximum(x, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def softplus_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return softplus(x), jax.nn.sigmoid(x) * x_dot


def loss(w, x, y):
    return jnp.mean(softplus(-y * (x @ w))) + 1e-3 * w @ w


@jax.jit
def newton(w, x, y):
    slope = jax.grad(loss)(w, x, y)
    return loss(w, x, y), w - jnp.linalg.solve(jax.hessian(loss)(w, x, y), slope)


x = 5.0 * jax.random.normal(jax.random.key(1), (64, 2))
x = x.at[0].set(jnp.array([120.0, -90.0]))
y = jnp.sign(x @ jnp.array([1.0, -0.5]))
w = jnp.array([0.05, 0.0])
for k in range(8):
    value, w = newton(w, x, y)
    print(f"step {k}: loss {value:.4f}")
right = jnp.mean(jnp.sign(x @ w) == y)
print(f"{float(right):.0%} of the points are on the right side")
if right < 0.95:
    raise SystemExit("the classes were not told apart")
