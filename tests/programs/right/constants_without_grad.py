"""A building in an earthquake: masses and ground motion are data, only the dampers are tuned."""

# expect: exit=0
import numpy as np

import engine as wp

FLOORS = 4
STEPS = 20
DT = 0.02


@wp.kernel
def shake(
    u: wp.array(dtype=float),
    v: wp.array(dtype=float),
    damper: wp.array(dtype=float),
    mass: wp.array(dtype=float),
    ground: wp.array(dtype=float),
    k: int,
    u_next: wp.array(dtype=float),
    v_next: wp.array(dtype=float),
):
    i = wp.tid()
    below_u = float(0.0)
    below_v = float(0.0)
    if i > 0:
        below_u = u[i - 1]
        below_v = v[i - 1]
    force = 300.0 * (below_u - u[i]) + damper[i] * (below_v - v[i])
    if i < u.shape[0] - 1:
        force += 300.0 * (u[i + 1] - u[i]) + damper[i + 1] * (v[i + 1] - v[i])
    v_next[i] = v[i] + DT * (force / mass[i] - ground[k])
    u_next[i] = u[i] + DT * v_next[i]


@wp.kernel
def drift(u: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = u[i]
    if i > 0:
        d = u[i] - u[i - 1]
    wp.atomic_add(loss, 0, d * d)


rng = np.random.default_rng(67)
mass = wp.array([3.0, 2.5, 2.0, 1.5], dtype=float)
ground = wp.array(3.0 * np.sin(8.0 * DT * np.arange(STEPS)) + rng.normal(size=STEPS), dtype=float)
damper = wp.full(FLOORS, 2.0, dtype=float, requires_grad=True)
for iteration in range(3):
    # The motion starts at rest: these need no gradient either.
    u, v = wp.zeros(FLOORS, dtype=float), wp.zeros(FLOORS, dtype=float)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for k in range(STEPS):
            u_next = wp.zeros(FLOORS, dtype=float, requires_grad=True)
            v_next = wp.zeros(FLOORS, dtype=float, requires_grad=True)
            wp.launch(shake, FLOORS, [u, v, damper, mass, ground, k], [u_next, v_next])
            wp.launch(drift, dim=FLOORS, inputs=[u_next], outputs=[loss])
            u, v = u_next, v_next
    tape.backward(loss)
    damper.assign(damper.numpy() - 5.0 * damper.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0], damper.numpy())
