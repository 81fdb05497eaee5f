"""Broken on purpose: a mesh is smoothed in place, so that its threads race.

A closed curve is smoothed a few times, and the strength of the smoothing is fitted so that the
result has a given length. The kernel moves each point to the middle of its neighbours and
writes it into the array that the other threads read from (finding G009). Here threads run in
order, so that the loss goes down and each run gives the same; on a GPU it does not.
"""

import numpy as np

import engine as wp

POINTS = 48
ROUNDS = 3
ITERATIONS = 8


@wp.kernel
def smooth(points: wp.array(dtype=wp.vec2), n: int, strength: wp.array(dtype=float)):
    i = wp.tid()
    a = points[(i + n - 1) % n]
    b = points[(i + 1) % n]
    middle = (a + b) * 0.5
    # The mistake: the neighbours read this array, before or after.
    points[i] = points[i] + (middle - points[i]) * strength[0]


@wp.kernel
def add_lengths(points: wp.array(dtype=wp.vec2), n: int, length: wp.array(dtype=float)):
    i = wp.tid()
    d = points[(i + 1) % n] - points[i]
    wp.atomic_add(length, 0, wp.sqrt(wp.dot(d, d) + 1.0e-6))


@wp.kernel
def misfit(length: wp.array(dtype=float), target: float, loss: wp.array(dtype=float)):
    d = length[0] - target
    loss[0] = d * d


def main() -> None:
    rng = np.random.default_rng(22)
    angle = np.linspace(0.0, 2.0 * np.pi, POINTS, endpoint=False)
    radius = 1.0 + rng.normal(0.0, 0.08, size=POINTS)
    curve = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    strength = wp.array([0.1], dtype=float, requires_grad=True)

    losses = []
    for iteration in range(ITERATIONS):
        points = wp.array(curve, dtype=wp.vec2, requires_grad=True)
        length = wp.zeros(1, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for _ in range(ROUNDS):
                wp.launch(smooth, dim=POINTS, inputs=[points, POINTS, strength])
            wp.launch(add_lengths, dim=POINTS, inputs=[points, POINTS], outputs=[length])
            wp.launch(misfit, dim=1, inputs=[length, 6.6], outputs=[loss])
        tape.backward(loss)
        losses.append(float(loss.numpy()[0]))
        strength.assign(np.clip(strength.numpy() - 0.01 * strength.grad.numpy(), 0.0, 0.9))
        tape.zero()
        if iteration % 3 == 0:
            print(f"iteration {iteration:2d}  loss {losses[-1]:.5f}")
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, strength {strength.numpy()[0]:.3f}")


if __name__ == "__main__":
    main()
