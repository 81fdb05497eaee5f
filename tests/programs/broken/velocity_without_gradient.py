"""Throw at a target: one kernel computes the velocity, and reads it back for the position.

The array for the velocities was made as scratch space, without a gradient: what the thrust does to
the position by way of the velocity is lost.
"""
# expect: exit=1

import numpy as np

import engine as wp

N = 5
DT = 0.5


@wp.kernel
def throw(
    thrust: wp.array(dtype=float),
    start: wp.array(dtype=float),
    velocity: wp.array(dtype=float),
    position: wp.array(dtype=float),
):
    i = wp.tid()
    velocity[i] = DT * wp.sin(thrust[i])
    position[i] = start[i] + 0.1 * thrust[i] + DT * velocity[i]


@wp.kernel
def miss(
    position: wp.array(dtype=float), target: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    i = wp.tid()
    off = position[i] - target[i]
    wp.atomic_add(loss, 0, off * off)


rng = np.random.default_rng(12)
start = wp.array(rng.normal(size=N), dtype=float)
target = wp.array(start.numpy() + 0.3, dtype=float)
thrust = wp.array(np.full(N, 0.2), dtype=float, requires_grad=True)
velocity = wp.zeros(N, dtype=float)  # scratch
for step in range(3):
    position = wp.zeros(N, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(
            throw, dim=N, inputs=[thrust, start], outputs=[velocity, position]
        )  # expect: G004
        wp.launch(miss, dim=N, inputs=[position, target], outputs=[loss])
    tape.backward(loss)
    print(step, "loss", loss.numpy()[0])
    thrust.assign(thrust.numpy() - 0.5 * thrust.grad.numpy())
    tape.zero()
