"""Grains that touch push each other apart; the gradient of the contact was written by hand."""

# expect: exit=1
import numpy as np

import engine as wp

COUNT = 30
RADIUS = 0.5


@wp.func
def contact(depth: float, stiffness: float) -> float:
    return stiffness * depth * wp.sqrt(depth)


@wp.func_grad(contact)
def adj_contact(depth: float, stiffness: float, adj_ret: float):  # expect: G001 a
    # The derivative of depth^(3/2) is 3/2 sqrt(depth).
    wp.adjoint[depth] += stiffness * wp.sqrt(depth) * adj_ret  # expect: G001 a
    wp.adjoint[stiffness] += depth * wp.sqrt(depth) * adj_ret


@wp.kernel
def forces(
    grid: wp.uint64,
    x: wp.array(dtype=wp.vec3),
    radius: float,
    stiffness: wp.array(dtype=float),
    f: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    total = wp.vec3()
    for j in wp.hash_grid_query(grid, x[i], radius):
        away = x[i] - x[j]
        depth = radius - wp.length(away)
        if j != i and depth > 0.0:
            total += contact(depth, stiffness[0]) * wp.normalize(away)
    f[i] = total


@wp.kernel
def effort(f: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.length_sq(f[i]))


start = np.random.default_rng(3).uniform(-0.6, 0.6, (COUNT, 3))
x = wp.array(start, dtype=wp.vec3, requires_grad=True)
stiffness = wp.array([2.0], dtype=float, requires_grad=True)
f = wp.zeros_like(x)
loss = wp.zeros(1, dtype=float, requires_grad=True)
grid = wp.HashGrid(8, 8, 8)
grid.build(x, RADIUS)
tape = wp.Tape()
with tape:
    wp.launch(forces, dim=COUNT, inputs=[grid.id, x, RADIUS, stiffness], outputs=[f])
    wp.launch(effort, dim=COUNT, inputs=[f], outputs=[loss])
tape.backward(loss)
print("effort", loss.numpy(), "gradient", stiffness.grad.numpy())
