"""A root of an equation as a JAX function: found by iterations, differentiated by `custom_vjp`.

Kepler's equation tells where a planet is. Newton's method solves it in a `while_loop`, through
which JAX has no reverse mode; the implicit function theorem gives the derivative in closed form.
The orbit's shape and its time of perihelion are fitted to where the planet was seen.
"""

# needs: jax
# check: passes
import jax
import jax.numpy as jnp


@jax.custom_vjp
def anomaly(mean, eccentricity):
    """E in E - e sin E = M."""

    def far(state):
        _, step = state
        return jnp.max(jnp.abs(step)) > 1e-6

    def newton(state):
        e, _ = state
        step = (e - eccentricity * jnp.sin(e) - mean) / (1.0 - eccentricity * jnp.cos(e))
        return e - step, step

    return jax.lax.while_loop(far, newton, (mean, jnp.ones_like(mean)))[0]


def anomaly_fwd(mean, eccentricity):
    e = anomaly(mean, eccentricity)
    return e, (e, eccentricity)


def anomaly_bwd(kept, g):
    e, eccentricity = kept
    by_mean = g / (1.0 - eccentricity * jnp.cos(e))
    return by_mean, jnp.sum(by_mean * jnp.sin(e))


anomaly.defvjp(anomaly_fwd, anomaly_bwd)


def place(orbit, times):
    e = anomaly(times - orbit["begin"], orbit["eccentricity"])
    return jnp.stack([jnp.cos(e) - orbit["eccentricity"], jnp.sin(e)])


def loss(orbit, times, seen):
    return jnp.mean((place(orbit, times) - seen) ** 2)


@jax.jit
def step(orbit, times, seen):
    value, slope = jax.value_and_grad(loss)(orbit, times, seen)
    return value, jax.tree.map(lambda p, g: p - 0.3 * g, orbit, slope)


times = jnp.linspace(0.3, 5.9, 16)
seen = place({"begin": 0.2, "eccentricity": 0.6}, times)
orbit = {"begin": jnp.float32(0.0), "eccentricity": jnp.float32(0.2)}
for k in range(200):
    value, orbit = step(orbit, times, seen)
    if k % 40 == 0:
        print(f"step {k:3}: loss {value:.2e}")
print({name: round(float(x), 3) for name, x in orbit.items()})
if abs(float(orbit["eccentricity"]) - 0.6) > 1e-2:
    raise SystemExit("the orbit was not found")
