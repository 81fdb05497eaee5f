"""A hanging rope whose positions and velocities live in two arrays that each step changes.

The gradient is right here, because old values are saved; elsewhere it would not be.
"""

# expect: exit=0
import numpy as np

import engine as wp

KNOTS = 5
STEPS = 14


@wp.kernel
def kick(x: wp.array(dtype=wp.vec2), v: wp.array(dtype=wp.vec2), stiffness: wp.array(dtype=float)):
    i = wp.tid()
    if i > 0:
        up = x[i - 1] - x[i]  # expect: warning[G003] a
        force = up * (stiffness[0] * (wp.length(up) - 0.1) / wp.length(up))
        if i < x.shape[0] - 1:
            down = x[i + 1] - x[i]  # expect: warning[G003] a
            force += down * (stiffness[0] * (wp.length(down) - 0.1) / wp.length(down))
        v[i] += 0.02 * (force + wp.vec2(0.0, -9.81))


@wp.kernel
def drift(x: wp.array(dtype=wp.vec2), v: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    x[i] += 0.02 * v[i]  # expect: warning[G003] a


@wp.kernel
def end_height(x: wp.array(dtype=wp.vec2), wanted: float, loss: wp.array(dtype=float)):
    d = x[x.shape[0] - 1][1] - wanted
    loss[0] = d * d


def main():
    start = np.stack([0.11 * np.arange(KNOTS), 0.03 * np.arange(KNOTS) % 2], axis=1)
    stiffness = wp.array([400.0], dtype=float, requires_grad=True)
    x = wp.array(start, dtype=wp.vec2, requires_grad=True)
    v = wp.zeros(KNOTS, dtype=wp.vec2, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for _ in range(STEPS):
            wp.launch(kick, dim=KNOTS, inputs=[x, v, stiffness])  # expect: warning[G003] a
            wp.launch(drift, dim=KNOTS, inputs=[x, v])  # expect: warning[G003] a
        wp.launch(end_height, dim=1, inputs=[x, -0.3], outputs=[loss])
    tape.backward(loss)
    print("end", x.numpy()[-1], "loss", loss.numpy()[0], "gradient", stiffness.grad.numpy()[0])


if __name__ == "__main__":
    main()
