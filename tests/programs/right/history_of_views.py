"""A pendulum's best start; NumPy views of the states are kept to be drawn, a unit direction is made
in place by NumPy before the first launch, and a monitor prints what it sees.
"""

# expect: exit=0
import numpy as np

import engine as wp

STEPS = 20


@wp.kernel
def swing(q: wp.array(dtype=float), v: wp.array(dtype=float), q1: wp.array(dtype=float),
          v1: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    v1[i] = v[i] - 0.05 * wp.sin(q[i])
    q1[i] = q[i] + 0.05 * v1[i]


@wp.kernel
def miss(q: wp.array(dtype=float), d: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    r = d[i] * (q[i] - 0.5)
    wp.atomic_add(loss, 0, r * r)


start = wp.array([0.1, -0.3], dtype=float, requires_grad=True)
history = []
for episode in range(3):
    d = wp.array([3.0, 4.0], dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    q, v = start, wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        d.numpy()[:] /= np.linalg.norm(d.numpy())
        for t in range(STEPS):
            q1 = wp.zeros(2, dtype=float, requires_grad=True)
            v1 = wp.zeros(2, dtype=float, requires_grad=True)
            wp.launch(swing, dim=2, inputs=[q, v], outputs=[q1, v1])
            q, v = q1, v1
            history.append(q.numpy())
            if t % 10 == 0:
                print(f"episode {episode}, step {t}: {history[-1]}")
        wp.launch(miss, dim=2, inputs=[q, d], outputs=[loss])
    tape.backward(loss)
    start.assign(start.numpy() - 0.2 * start.grad.numpy())
    tape.zero()
assert len(history) == 3 * STEPS
