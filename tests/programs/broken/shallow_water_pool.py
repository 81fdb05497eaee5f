"""Shallow water in a channel; height and flow are two halves of one array."""

# expect: exit=1
import numpy as np

import engine as wp

CELLS = 16
STEPS = 6


@wp.kernel
def flux(
    h: wp.array(dtype=float),
    hu: wp.array(dtype=float),
    depth: wp.array(dtype=float),
    h_next: wp.array(dtype=float),
    hu_next: wp.array(dtype=float),
):
    i = wp.tid()
    # The last cell has no right neighbour: this reads the first value behind `h`.
    slope = h[i + 1] - h[i]  # expect: G008
    hu_next[i] = hu[i] - 0.1 * depth[i] * slope
    out = float(0.0)
    if i > 0:
        out = hu[i] - hu[i - 1]
    h_next[i] = h[i] - 0.1 * out


@wp.kernel
def gauge_error(h: wp.array(dtype=float), level: float, loss: wp.array(dtype=float)):
    d = h[10] - level
    loss[0] = d * d


def simulate(depth):
    x = np.arange(CELLS)
    state = np.concatenate([1.0 + np.exp(-0.2 * (x - 5.0) ** 2), 0.0 * x, [0.0]])
    pool = wp.array(state, dtype=float, requires_grad=True)
    for _ in range(STEPS):
        new = wp.zeros(2 * CELLS + 1, dtype=float, requires_grad=True)
        halves = [pool[:CELLS], pool[CELLS:], depth]
        wp.launch(flux, dim=CELLS, inputs=halves, outputs=[new[:CELLS], new[CELLS:]])
        pool = new
    return pool


depth = wp.full(CELLS, 1.0, dtype=float, requires_grad=True)
for iteration in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        final = simulate(depth)
        wp.launch(gauge_error, dim=1, inputs=[final[:CELLS], 1.4], outputs=[loss])
    tape.backward(loss)
    depth.assign(depth.numpy() - 0.2 * depth.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0])
