"""Broken on purpose: a NaN gradient from the square root of zero.

A meeting point is moved to minimise the sum of distances to some towns. It
starts exactly on one of them: the distance there is sqrt(0), whose derivative
is infinite, and infinity times zero is NaN (finding G002). The loss itself is
fine until the first update has spread the NaN.
"""

import numpy as np

import engine as wp

TOWNS = 9
ITERATIONS = 5


@wp.kernel
def distances(
    towns: wp.array(dtype=wp.vec2),
    point: wp.array(dtype=wp.vec2),
    out: wp.array(dtype=float),
):
    i = wp.tid()
    d = towns[i] - point[0]
    # The mistake: nothing keeps the argument away from zero.
    out[i] = wp.sqrt(wp.dot(d, d))


@wp.kernel
def total(
    distance: wp.array(dtype=float), people: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    i = wp.tid()
    wp.atomic_add(loss, 0, distance[i] * people[i])


@wp.kernel
def descend(p: wp.array(dtype=wp.vec2), gradient: wp.array(dtype=wp.vec2), rate: float):
    i = wp.tid()
    p[i] = p[i] - gradient[i] * rate


def main() -> None:
    rng = np.random.default_rng(12)
    places = rng.uniform(-5.0, 5.0, size=(TOWNS, 2))
    towns = wp.array(places, dtype=wp.vec2)
    people = wp.array(rng.uniform(0.5, 2.0, size=TOWNS), dtype=float)
    point = wp.array(places[4:5], dtype=wp.vec2, requires_grad=True)

    for iteration in range(ITERATIONS):
        distance = wp.zeros(TOWNS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(distances, dim=TOWNS, inputs=[towns, point], outputs=[distance])
            wp.launch(total, dim=TOWNS, inputs=[distance, people], outputs=[loss])
        tape.backward(loss)
        wp.launch(descend, dim=1, inputs=[point, point.grad, 0.1])
        gradient = point.grad.numpy()[0]
        print(f"iteration {iteration}  loss {loss.numpy()[0]:.4f}  gradient {gradient}")
        tape.zero()


if __name__ == "__main__":
    main()
