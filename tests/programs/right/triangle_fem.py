"""Elastic triangles: the rest shape of a sheet is fitted to a deformed one."""

# expect: exit=0
import numpy as np

import engine as wp

SIDE = 4


@wp.kernel
def triangle_energy(
    place: wp.array(dtype=wp.vec2),
    rest: wp.array(dtype=wp.vec2),
    corner: wp.array2d(dtype=int),
    energy: wp.array(dtype=float),
):
    t = wp.tid()
    a = corner[t, 0]
    b = corner[t, 1]
    c = corner[t, 2]
    now = wp.matrix_from_cols(place[b] - place[a], place[c] - place[a])
    before = wp.matrix_from_cols(rest[b] - rest[a], rest[c] - rest[a])
    f = now @ wp.inverse(before)
    strain = wp.transpose(f) @ f - wp.identity(n=2, dtype=float)
    volume = wp.determinant(f) - 1.0
    energy[t] = 0.25 * wp.ddot(strain, strain) + 2.0 * volume * volume


@wp.kernel
def total(energy: wp.array(dtype=float), loss: wp.array(dtype=float)):
    t = wp.tid()
    wp.atomic_add(loss, 0, energy[t])


grid = [(i, j) for i in range(SIDE) for j in range(SIDE)]
corners = []
for i in range(SIDE - 1):
    for j in range(SIDE - 1):
        k = i * SIDE + j
        corners += [(k, k + 1, k + SIDE), (k + 1, k + SIDE + 1, k + SIDE)]
rng = np.random.default_rng(70)
flat = np.array(grid, dtype=float)
corner = wp.array(np.array(corners), dtype=int)
place = wp.array(flat * [1.1, 0.9] + rng.normal(scale=0.05, size=flat.shape), dtype=wp.vec2)
rest = wp.array(flat, dtype=wp.vec2, requires_grad=True)
for iteration in range(4):
    energy = wp.zeros(len(corners), dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(triangle_energy, len(corners), [place, rest, corner], [energy])
        wp.launch(total, dim=len(corners), inputs=[energy], outputs=[loss])
    tape.backward(loss)
    rest.assign(rest.numpy() - 0.02 * rest.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0])
