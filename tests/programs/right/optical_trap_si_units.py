"""A bead in optical tweezers, in SI units: positions are 1e-8, forces 1e-13."""

# expect: exit=0
import numpy as np

import engine as wp

BEADS = 6
STEPS = 10


@wp.kernel
def brownian_step(
    x: wp.array(dtype=float),
    trap: wp.array(dtype=float),
    kick: wp.array2d(dtype=float),
    k: int,
    out: wp.array(dtype=float),
):
    i = wp.tid()
    d = x[i] - trap[0]
    force = -1.0e-5 * d * wp.exp(-d * d / 4.0e-14)
    drag = 1.0e-8
    out[i] = x[i] + 1.0e-4 * force / drag + kick[k, i]


@wp.kernel
def spread(x: wp.array(dtype=float), wanted: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - wanted
    wp.atomic_add(loss, 0, d * d)


rng = np.random.default_rng(73)
start = wp.array(rng.normal(scale=5e-8, size=BEADS), dtype=float)
kick = wp.array(rng.normal(scale=1e-9, size=(STEPS, BEADS)), dtype=float)
trap = wp.array([2.0e-8], dtype=float, requires_grad=True)
for iteration in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        x = start
        for k in range(STEPS):
            moved = wp.zeros(BEADS, dtype=float, requires_grad=True)
            wp.launch(brownian_step, dim=BEADS, inputs=[x, trap, kick, k], outputs=[moved])
            x = moved
        wp.launch(spread, dim=BEADS, inputs=[x, 6.0e-8], outputs=[loss])
    tape.backward(loss)
    print(iteration, loss.numpy()[0], trap.grad.numpy()[0])
    trap.assign(trap.numpy() - 0.05 * trap.grad.numpy())
    tape.zero()
