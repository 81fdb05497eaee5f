"""Charged beads on a thread: three kernels add to one force array, in place."""

# expect: exit=0
import numpy as np

import engine as wp

BEADS = 7
STEPS = 5


@wp.kernel
def add_gravity(force: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    force[i] += wp.vec3(0.0, -1.0, 0.0)


@wp.kernel
def add_springs(x: wp.array(dtype=wp.vec3), force: wp.array(dtype=wp.vec3)):
    s = wp.tid()
    d = x[s + 1] - x[s]
    f = d * (20.0 * (wp.length(d) - 0.3) / wp.length(d))
    wp.atomic_add(force, s, f)
    wp.atomic_sub(force, s + 1, f)


@wp.kernel
def add_repulsion(
    x: wp.array(dtype=wp.vec3), charge: wp.array(dtype=float), force: wp.array(dtype=wp.vec3)
):
    i, j = wp.tid()
    if i == j:
        return
    d = x[i] - x[j]
    r2 = wp.dot(d, d) + 0.01
    wp.atomic_add(force, i, d * (charge[i] * charge[j] / (r2 * wp.sqrt(r2))))


@wp.kernel
def move(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    force: wp.array(dtype=wp.vec3),
    x_next: wp.array(dtype=wp.vec3),
    v_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    v_next[i] = 0.95 * v[i] + 0.03 * force[i]
    x_next[i] = x[i] + 0.03 * v_next[i]


@wp.kernel
def spread(x: wp.array(dtype=wp.vec3), wanted: float, loss: wp.array(dtype=float)):
    d = wp.length(x[x.shape[0] - 1] - x[0]) - wanted
    loss[0] = d * d


rng = np.random.default_rng(61)
line = np.stack([0.3 * np.arange(BEADS), 0.0 * np.arange(BEADS), 0.0 * np.arange(BEADS)], axis=1)
start = wp.array(line + rng.normal(scale=0.05, size=line.shape), dtype=wp.vec3)
charge = wp.full(BEADS, 0.2, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    x, v = start, wp.zeros(BEADS, dtype=wp.vec3)
    for _ in range(STEPS):
        force, x_next, v_next = (wp.zeros(BEADS, dtype=wp.vec3, requires_grad=True) for _ in "fxv")
        wp.launch(add_gravity, dim=BEADS, inputs=[force])
        wp.launch(add_springs, dim=BEADS - 1, inputs=[x, force])
        wp.launch(add_repulsion, dim=(BEADS, BEADS), inputs=[x, charge, force])
        wp.launch(move, dim=BEADS, inputs=[x, v, force], outputs=[x_next, v_next])
        x, v = x_next, v_next
    wp.launch(spread, dim=1, inputs=[x, 2.0], outputs=[loss])
tape.backward(loss)
print("loss", loss.numpy()[0], charge.grad.numpy())
