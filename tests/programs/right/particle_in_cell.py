"""Deposit charge on a periodic grid with linear weights; the cell is found by a cast to int."""

# expect: exit=0
import numpy as np

import engine as wp

CELLS = 12
PARTICLES = 20


@wp.kernel
def deposit(x: wp.array(dtype=float), charge: wp.array(dtype=float), rho: wp.array(dtype=float)):
    p = wp.tid()
    s = x[p] * float(rho.shape[0])
    cell = int(wp.floor(s))
    weight = s - float(cell)  # the cell is constant between grid points: nothing is lost
    wp.atomic_add(rho, cell % rho.shape[0], charge[p] * (1.0 - weight))
    wp.atomic_add(rho, (cell + 1) % rho.shape[0], charge[p] * weight)


@wp.kernel
def potential(rho: wp.array(dtype=float), phi: wp.array(dtype=float)):
    c = wp.tid()
    n = rho.shape[0]
    total = float(0.0)
    for k in range(n):
        total += rho[(c + k) % n] * wp.cos(6.2831853 * float(k) / float(n))
    phi[c] = total


@wp.kernel
def energy(rho: wp.array(dtype=float), phi: wp.array(dtype=float), loss: wp.array(dtype=float)):
    c = wp.tid()
    wp.atomic_add(loss, 0, 0.5 * rho[c] * phi[c])


rng = np.random.default_rng(69)
x = wp.array(rng.uniform(0.02, 0.98, PARTICLES), dtype=float, requires_grad=True)
charge = wp.array(rng.normal(size=PARTICLES), dtype=float, requires_grad=True)
for step in range(4):
    rho = wp.zeros(CELLS, dtype=float, requires_grad=True)
    phi = wp.zeros(CELLS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(deposit, dim=PARTICLES, inputs=[x, charge], outputs=[rho])
        wp.launch(potential, dim=CELLS, inputs=[rho], outputs=[phi])
        wp.launch(energy, dim=CELLS, inputs=[rho, phi], outputs=[loss])
    tape.backward(loss)
    x.assign(np.clip(x.numpy() - 1e-4 * x.grad.numpy(), 0.0, 0.999))
    tape.zero()
    print(step, "energy", loss.numpy()[0])
