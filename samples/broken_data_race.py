"""Broken on purpose: forces are added up without atomics, so that threads race.

A closed curve is smoothed a few times, and the strength of the smoothing is fitted so that the
result has a given length. Each thread pulls the two ends of one segment together, and adds to the
force on each of them what it reads there plus its own part; at each point, two threads meet
(finding G009). Here threads run in order, so that the loss goes down and each run gives the same;
on a GPU, forces get lost. The way out is atomic_add.
"""

import numpy as np

import engine as wp

POINTS = 48
ROUNDS = 3
ITERATIONS = 8


@wp.kernel
def pull_together(points: wp.array(dtype=wp.vec2), n: int, force: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    j = (i + 1) % n
    d = points[j] - points[i]
    force[i] = force[i] + d
    # The mistake: the thread of the next segment adds to this point as well.
    force[j] = force[j] - d


@wp.kernel
def move(
    points: wp.array(dtype=wp.vec2),
    force: wp.array(dtype=wp.vec2),
    strength: wp.array(dtype=float),
    moved: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    moved[i] = points[i] + force[i] * (0.5 * strength[0])


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
                force, moved = wp.zeros_like(points), wp.zeros_like(points)
                wp.launch(pull_together, dim=POINTS, inputs=[points, POINTS], outputs=[force])
                wp.launch(move, dim=POINTS, inputs=[points, force, strength], outputs=[moved])
                points = moved
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
