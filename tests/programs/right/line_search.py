"""Geometry of a molecule by gradient descent with backtracking and clipped gradients."""

# expect: exit=0
import numpy as np

import engine as wp

ATOMS = 6


@wp.kernel
def lennard_jones(x: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i, j = wp.tid()
    if j <= i:
        return
    d = x[i] - x[j]
    s = 1.0 / wp.dot(d, d)
    s3 = s * s * s
    wp.atomic_add(loss, 0, 4.0 * (s3 * s3 - s3))


def energy(x):
    """The energy alone: nothing is recorded."""
    loss = wp.zeros(1, dtype=float)
    wp.launch(lennard_jones, dim=(ATOMS, ATOMS), inputs=[x], outputs=[loss])
    return float(loss.numpy()[0])


def gradient(x, limit):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(lennard_jones, dim=(ATOMS, ATOMS), inputs=[x], outputs=[loss])
    tape.backward(loss)
    g = x.grad.numpy()
    norm = np.linalg.norm(g)
    if norm > limit:
        x.grad.assign(g * (limit / norm))
    found = x.grad.numpy().copy()
    tape.zero()
    return float(loss.numpy()[0]), found


rng = np.random.default_rng(93)
corners = np.array([[i, j, k] for i in range(2) for j in range(2) for k in range(2)])[:ATOMS]
x = wp.array(
    1.1 * corners + rng.normal(scale=0.05, size=(ATOMS, 3)), dtype=wp.vec3, requires_grad=True
)
for iteration in range(5):
    value, g = gradient(x, 20.0)
    here, rate = x.numpy().copy(), 0.02
    for _ in range(8):
        x.assign(here - rate * g)
        if energy(x) < value:
            break
        rate *= 0.5
    print(iteration, value, "rate", rate)
