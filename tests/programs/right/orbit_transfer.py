"""Orbits in kilometres and seconds: numbers of 1e5 and more, with a burn to be found."""

# expect: exit=0
import numpy as np

import engine as wp

STEPS = 25
MU = wp.constant(398600.4)


@wp.kernel
def kepler(
    x: wp.array(dtype=wp.vec2),
    v: wp.array(dtype=wp.vec2),
    dt: float,
    x_next: wp.array(dtype=wp.vec2),
    v_next: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    r = wp.length(x[i])
    moved = v[i] - x[i] * (dt * MU / (r * r * r))
    v_next[i] = moved
    x_next[i] = x[i] + moved * dt


@wp.kernel
def add_burn(
    v: wp.array(dtype=wp.vec2), burn: wp.array(dtype=wp.vec2), out: wp.array(dtype=wp.vec2)
):
    i = wp.tid()
    out[i] = v[i] + burn[i]


@wp.kernel
def miss_distance(
    x: wp.array(dtype=wp.vec2), goal: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = x[i] - goal[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


x0 = wp.array([[7000.0, 0.0], [0.0, 42164.0]], dtype=wp.vec2)
v0 = wp.array([[0.0, 7.546], [-3.0747, 0.0]], dtype=wp.vec2)
goal = wp.array([[-2000.0, 7100.0], [-9000.0, 41000.0]], dtype=wp.vec2)
burn = wp.zeros(2, dtype=wp.vec2, requires_grad=True)
for iteration in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        x, v = x0, wp.zeros(2, dtype=wp.vec2, requires_grad=True)
        wp.launch(add_burn, dim=2, inputs=[v0, burn], outputs=[v])
        for _ in range(STEPS):
            x_next = wp.zeros(2, dtype=wp.vec2, requires_grad=True)
            v_next = wp.zeros(2, dtype=wp.vec2, requires_grad=True)
            wp.launch(kepler, dim=2, inputs=[x, v, 60.0], outputs=[x_next, v_next])
            x, v = x_next, v_next
        wp.launch(miss_distance, dim=2, inputs=[x, goal], outputs=[loss])
    tape.backward(loss)
    burn.assign(burn.numpy() - 1e-8 * burn.grad.numpy())
    tape.zero()
    print(iteration, np.sqrt(loss.numpy()[0]), burn.numpy().round(4).tolist())
