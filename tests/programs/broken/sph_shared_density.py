"""Smoothed particles in one dimension: initial velocities are fitted to where they end up."""

# expect: exit=1
import numpy as np

import engine as wp

# What the arrays contain at present is what the adjoints read, as in Warp.
wp.config.overwrites = "present"

N = 16
STEPS = 8
DT = 0.05


@wp.func
def kernel_weight(r: float, h: float) -> float:
    q = 1.0 - r * r / (h * h)
    return wp.where(q > 0.0, q * q * q, 0.0)


@wp.kernel
def compute_density(x: wp.array(dtype=float), rho: wp.array(dtype=float)):
    i = wp.tid()
    total = float(0.0)
    for j in range(x.shape[0]):
        total += kernel_weight(x[i] - x[j], 0.35)
    rho[i] = total  # expect: G003 a


@wp.kernel
def move(
    x: wp.array(dtype=float),
    v: wp.array(dtype=float),
    rho: wp.array(dtype=float),
    x_next: wp.array(dtype=float),
    v_next: wp.array(dtype=float),
):
    i = wp.tid()
    push = float(0.0)
    for j in range(x.shape[0]):
        d = x[i] - x[j]
        w = kernel_weight(d, 0.35)
        push += d * w * (rho[i] * rho[i] + rho[j] * rho[j])  # expect: G003 a
    v_next[i] = v[i] + 0.05 * push * DT
    x_next[i] = x[i] + v_next[i] * DT


@wp.kernel
def spread(x: wp.array(dtype=float), goal: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - goal[i]) * (x[i] - goal[i]))


rng = np.random.default_rng(11)
start = wp.array(np.linspace(0.0, 1.0, N) + rng.normal(0, 0.02, N), dtype=float)
goal = wp.array(np.linspace(-0.2, 1.2, N), dtype=float)
velocity = wp.array(rng.normal(0.0, 1.0, N), dtype=float, requires_grad=True)
rho = wp.zeros(N, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)

with wp.Tape() as tape:
    x, v = start, velocity
    for _ in range(STEPS):
        x_next = wp.zeros(N, dtype=float, requires_grad=True)
        v_next = wp.zeros(N, dtype=float, requires_grad=True)
        wp.launch(compute_density, dim=N, inputs=[x], outputs=[rho])  # expect: G003 a
        wp.launch(move, dim=N, inputs=[x, v, rho], outputs=[x_next, v_next])  # expect: G003 a
        x, v = x_next, v_next
    wp.launch(spread, dim=N, inputs=[x, goal], outputs=[loss])
tape.backward(loss)
print("loss", loss.numpy()[0])
print("gradient", velocity.grad.numpy().round(4))
