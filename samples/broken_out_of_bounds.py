"""Broken on purpose: a stencil that leaves its array.

The diffusivity of a rod is fitted so that a given initial temperature becomes the measured
one. The two ends of the rod are meant to be insulated, but the kernel reads the neighbours of
every cell, also those that the first and the last cell have not (finding G008). The array lies
as a row in a larger one, so that what is read is the temperature of another rod: nothing
crashes, and the loss goes down.
"""

import numpy as np

import engine as wp

CELLS = 24
STEPS = 6
ITERATIONS = 8


@wp.kernel
def diffuse(
    before: wp.array2d(dtype=float),
    rod: int,
    diffusivity: wp.array(dtype=float),
    after: wp.array2d(dtype=float),
):
    i = wp.tid()
    left = before[rod, i]
    if i > 0:
        left = before[rod, i - 1]
    # The mistake: the last cell has no neighbour on its right.
    right = before[rod, i + 1]
    flow = left - 2.0 * before[rod, i] + right
    after[rod, i] = before[rod, i] + diffusivity[0] * flow


@wp.kernel
def misfit(
    state: wp.array2d(dtype=float),
    rod: int,
    measured: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    d = state[rod, i] - measured[i]
    wp.atomic_add(loss, 0, d * d)


def main() -> None:
    rng = np.random.default_rng(21)
    start = np.zeros((2, CELLS))
    start[0, 6:12] = 1.0
    start[1] = rng.uniform(0.0, 0.2, size=CELLS)
    measured = start[0].copy()
    for _ in range(STEPS):
        padded = np.pad(measured, 1, mode="edge")
        measured += 0.2 * (padded[:-2] - 2.0 * measured + padded[2:])
    target = wp.array(measured, dtype=float)
    diffusivity = wp.array([0.05], dtype=float, requires_grad=True)

    losses = []
    for iteration in range(ITERATIONS):
        states = [wp.array(start, dtype=float, requires_grad=True) for _ in range(STEPS + 1)]
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for k in range(STEPS):
                wp.launch(
                    diffuse, dim=CELLS, inputs=[states[k], 0, diffusivity], outputs=[states[k + 1]]
                )
            wp.launch(misfit, dim=CELLS, inputs=[states[-1], 0, target], outputs=[loss])
        tape.backward(loss)
        losses.append(float(loss.numpy()[0]))
        step = 0.05 * diffusivity.grad.numpy()
        diffusivity.assign(np.clip(diffusivity.numpy() - step, 0.0, 0.4))
        tape.zero()
        if iteration % 3 == 0:
            print(f"iteration {iteration:2d}  loss {losses[-1]:.5f}")
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, diffusivity {diffusivity.numpy()[0]:.3f}")


if __name__ == "__main__":
    main()
