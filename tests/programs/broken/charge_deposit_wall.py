"""Deposit charges on a grid; a particle at the right wall reaches beyond its own species' grid."""

# expect: exit=1
import numpy as np

import engine as wp

CELLS = 10
PARTICLES = 12


@wp.kernel
def deposit(x: wp.array(dtype=float), charge: wp.array(dtype=float), grid: wp.array(dtype=float)):
    p = wp.tid()
    s = x[p] * float(grid.shape[0])
    cell = int(s)
    weight = s - float(cell)
    wp.atomic_add(grid, cell, charge[p] * (1.0 - weight))
    wp.atomic_add(grid, cell + 1, charge[p] * weight)  # expect: G008


@wp.kernel
def field_energy(grid: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    species, c = wp.tid()
    rho = grid[species, c]
    wp.atomic_add(loss, 0, rho * rho * (1.0 + float(species)))


def main():
    rng = np.random.default_rng(34)
    places = rng.uniform(0.05, 0.85, (2, PARTICLES))
    places[0, 3] = 0.97  # near the wall: cell + 1 is the first cell of the other species
    ions = wp.array(places[0], dtype=float, requires_grad=True)
    electrons = wp.array(places[1], dtype=float, requires_grad=True)
    charge = wp.array(rng.uniform(0.5, 1.5, PARTICLES), dtype=float)
    grid = wp.zeros((2, CELLS), dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(deposit, dim=PARTICLES, inputs=[ions, charge], outputs=[grid[0]])
        wp.launch(deposit, dim=PARTICLES, inputs=[electrons, charge], outputs=[grid[1]])
        wp.launch(field_energy, dim=(2, CELLS), inputs=[grid], outputs=[loss])
    tape.backward(loss)
    print("energy", loss.numpy()[0])
    print("force on the ions", -ions.grad.numpy().round(3))


if __name__ == "__main__":
    main()
