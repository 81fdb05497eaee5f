"""JAX arrays and arrays of the engine share memory, and JAX's stay immutable.

Parameters live in JAX, which takes the steps of Adam; a kernel computes the loss, and a tape its
gradient. Nothing is copied: the kernel reads JAX's memory, and JAX the gradient's.
"""

# needs: jax
# check: passes
import jax
import jax.numpy as jnp
import numpy as np

import engine as wp


@wp.kernel
def rosenbrock(p: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    i = wp.tid()
    a = 1.0 - p[i][0]
    b = p[i][1] - p[i][0] * p[i][0]
    wp.atomic_add(loss, 0, a * a + 10.0 * b * b)


@wp.kernel
def double(x: wp.array(dtype=float)):
    x[wp.tid()] *= 2.0


@jax.jit
def adam(p, g, m, v, t):
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    step = (m / (1.0 - 0.9**t)) / (jnp.sqrt(v / (1.0 - 0.99**t)) + 1e-8)
    return p - 0.05 * step, m, v


def exchange() -> None:
    """What comes from JAX, and what JAX holds, cannot be written by a kernel."""
    x = jnp.arange(4.0)
    a = wp.from_jax(x)
    assert a.ptr == x.unsafe_buffer_pointer()
    b = wp.clone(a)
    wp.launch(double, dim=4, inputs=[b])
    y = wp.to_jax(b)
    assert y.unsafe_buffer_pointer() == b.ptr
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0] and x.tolist() == [0.0, 1.0, 2.0, 3.0]
    for array in (a, b, x):
        try:
            wp.launch(double, dim=4, inputs=[array])
        except wp.LaunchError as error:
            assert "immutable" in str(error)
        else:
            raise SystemExit("memory of a JAX array was written")
    del y  # JAX has let go of it
    wp.launch(double, dim=4, inputs=[b])
    assert wp.dtype_from_jax(wp.dtype_to_jax(wp.float32)) is wp.float32
    assert wp.device_from_jax(wp.device_to_jax("cpu")) == wp.get_device("cpu")


def fit() -> None:
    p = jnp.asarray(np.random.default_rng(42).normal(size=(20, 2)), jnp.float32)
    m, v = jnp.zeros_like(p), jnp.zeros_like(p)
    for step in range(1, 801):
        points = wp.from_jax(p, dtype=wp.vec2)
        points.requires_grad = True
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(rosenbrock, dim=20, inputs=[points], outputs=[loss])
        tape.backward(loss)
        p, m, v = adam(p, wp.to_jax(points.grad), m, v, float(step))
        if step % 200 == 0:
            print(f"step {step}: loss {loss.numpy()[0]:.2e}")
    assert jnp.allclose(p, 1.0, atol=0.05), p
    print("all points are at", *np.round(np.mean(np.asarray(p), axis=0), 2))


exchange()
fit()
