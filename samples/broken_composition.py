"""Broken on purpose: two arrays that share memory, each with a gradient of its own.

The emission of some chimneys is fitted to what sensors on the ground measured. The plume is
computed on a grid, and the sensors look it up in a flat list of cells. Both arrays wrap the same
NumPy memory (copy=False), so that the values are right. But what the sensors say of the cells never
reaches the grid: all that is left of the gradient is a small term that keeps the rates low, and the
loss goes up. Every launch is right on its own (finding G010). The way out is one array: a view of
it, such as grid.flatten(), shares its gradient.
"""

import numpy as np

import engine as wp

SIDE = 12
CHIMNEYS = 3
ITERATIONS = 6


@wp.kernel
def plume(
    place: wp.array(dtype=wp.vec2), rate: wp.array(dtype=float), grid: wp.array2d(dtype=float)
):
    i, j = wp.tid()
    total = float(0.0)
    for c in range(rate.shape[0]):
        d = wp.vec2(float(i), float(j)) - place[c]
        total += rate[c] * rate[c] * wp.exp(-0.1 * wp.dot(d, d))
    grid[i, j] = total


@wp.kernel
def misfit(
    cells: wp.array(dtype=float),
    sensor: wp.array(dtype=int),
    measured: wp.array(dtype=float),
    rate: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    s = wp.tid()
    d = cells[sensor[s]] - measured[s]
    wp.atomic_add(loss, 0, d * d + 0.001 * rate[s % rate.shape[0]] * rate[s % rate.shape[0]])


@wp.kernel
def descend(p: wp.array(dtype=float), gradient: wp.array(dtype=float), step: float):
    i = wp.tid()
    p[i] = p[i] - step * gradient[i]


def main() -> None:
    rng = np.random.default_rng(34)
    place = wp.array(rng.uniform(0.0, SIDE, size=(CHIMNEYS, 2)), dtype=wp.vec2)
    places = rng.choice(SIDE * SIDE, size=20, replace=False)
    sensor = wp.array(places, dtype=int)
    field = wp.zeros((SIDE, SIDE), dtype=float)
    truth = wp.array([1.2, 0.7, 1.6], dtype=float)
    wp.launch(plume, dim=(SIDE, SIDE), inputs=[place, truth], outputs=[field])
    measured = wp.array(field.numpy().ravel()[places], dtype=float)
    rate = wp.array(np.ones(CHIMNEYS), dtype=float, requires_grad=True)

    memory = np.zeros((SIDE, SIDE), dtype=np.float32)
    # The mistake: these should be one array, `grid`, and grid.flatten().
    grid = wp.array(memory, copy=False, requires_grad=True)
    cells = wp.array(memory.reshape(-1), copy=False, requires_grad=True)
    for iteration in range(ITERATIONS):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(plume, dim=(SIDE, SIDE), inputs=[place, rate], outputs=[grid])
            wp.launch(misfit, dim=20, inputs=[cells, sensor, measured, rate], outputs=[loss])
        tape.backward(loss)
        wp.launch(descend, dim=CHIMNEYS, inputs=[rate, rate.grad, 0.1])
        tape.zero()
        if iteration % 2 == 0:
            print(f"iteration {iteration}  loss {loss.numpy()[0]:.5f}")


if __name__ == "__main__":
    main()
