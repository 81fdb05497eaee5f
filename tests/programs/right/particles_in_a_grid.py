"""Particles push their neighbours away: who they are is looked up anew in every step."""

# expect: exit=0
import numpy as np

import engine as wp

COUNT = 40
STEPS = 3
RADIUS = 0.4
DT = wp.constant(0.05)


@wp.kernel
def push(
    grid: wp.uint64,
    x: wp.array(dtype=wp.vec3),
    radius: float,
    stiffness: wp.array(dtype=float),
    f: wp.array(dtype=wp.vec3),
):
    i = wp.hash_grid_point_id(grid, wp.tid())
    total = wp.vec3()
    neighbours = wp.hash_grid_query(grid, x[i], radius)
    j = 0
    while wp.hash_grid_query_next(neighbours, j):
        if j == i:
            continue
        away = x[i] - x[j]
        depth = radius - wp.length(away)
        if depth > 0.0:
            total += stiffness[0] * depth * depth * wp.normalize(away)
    f[i] = total


@wp.kernel
def move(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    f: wp.array(dtype=wp.vec3),
    x_next: wp.array(dtype=wp.vec3),
    v_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    v_next[i] = v[i] + DT * f[i]
    x_next[i] = x[i] + DT * v_next[i]


@wp.kernel
def spread(x: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.length_sq(x[i]))


start = np.random.default_rng(1).uniform(-0.5, 0.5, (COUNT, 3))
x = wp.array(start, dtype=wp.vec3, requires_grad=True)
v = wp.zeros_like(x)
stiffness = wp.array([30.0], dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
grid = wp.HashGrid(16, 16, 16)
tape = wp.Tape()
with tape:
    for _ in range(STEPS):
        grid.build(x, RADIUS)
        f, x_next, v_next = (wp.zeros_like(x) for _ in range(3))
        wp.launch(push, dim=COUNT, inputs=[grid.id, x, RADIUS, stiffness], outputs=[f])
        wp.launch(move, dim=COUNT, inputs=[x, v, f], outputs=[x_next, v_next])
        x, v = x_next, v_next
    wp.launch(spread, dim=COUNT, inputs=[x], outputs=[loss])
tape.backward(loss)
print("spread", loss.numpy(), "gradient", stiffness.grad.numpy())
