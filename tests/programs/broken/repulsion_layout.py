"""Lay out a graph: springs along its edges, repulsion between all nodes."""

# expect: exit=1
import numpy as np

import engine as wp

NODES = 9


@wp.kernel
def layout_energy(
    place: wp.array(dtype=wp.vec2), edges: wp.array2d(dtype=int), loss: wp.array(dtype=float)
):
    i = wp.tid()
    energy = float(0.0)
    for j in range(place.shape[0]):
        d = place[i] - place[j]
        # A node does not leave itself out: the distance to itself is sqrt(0).
        distance = wp.sqrt(wp.dot(d, d))  # expect: G002
        energy += 0.5 / (0.1 + distance)
    for e in range(edges.shape[0]):
        if edges[e, 0] == i:
            s = place[edges[e, 1]] - place[i]
            energy += wp.dot(s, s)
    wp.atomic_add(loss, 0, energy)


@wp.kernel
def descend(place: wp.array(dtype=wp.vec2), gradient: wp.array(dtype=wp.vec2), rate: float):
    i = wp.tid()
    if wp.isfinite(gradient[i][0]) and wp.isfinite(gradient[i][1]):
        place[i] = place[i] - rate * gradient[i]


def main():
    rng = np.random.default_rng(8)
    ring = [(k, (k + 1) % NODES) for k in range(NODES)] + [(0, 4), (2, 7)]
    edges = wp.array(np.array(ring), dtype=int)
    place = wp.array(rng.normal(size=(NODES, 2)), dtype=wp.vec2, requires_grad=True)
    for iteration in range(4):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(layout_energy, dim=NODES, inputs=[place, edges], outputs=[loss])
        tape.backward(loss)
        wp.launch(descend, dim=NODES, inputs=[place, place.grad, 0.02])
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
