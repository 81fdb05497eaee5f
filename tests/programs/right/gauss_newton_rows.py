"""Gauss-Newton for trilateration: the Jacobian row by row, with seeds that select a residual."""

# expect: exit=0
import numpy as np

import engine as wp

BEACONS = 5


@wp.kernel
def ranges(
    place: wp.array(dtype=float),
    beacon: wp.array(dtype=wp.vec2),
    measured: wp.array(dtype=float),
    residual: wp.array(dtype=float),
):
    b = wp.tid()
    d = wp.vec2(place[0], place[1]) - beacon[b]
    residual[b] = wp.length(d) + place[2] - measured[b]


def jacobian(place, beacon, measured):
    residual = wp.zeros(BEACONS, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(ranges, dim=BEACONS, inputs=[place, beacon, measured], outputs=[residual])
    rows = []
    for b in range(BEACONS):
        select = wp.array(np.eye(BEACONS)[b], dtype=float)
        tape.backward(grads={residual: select})
        rows.append(place.grad.numpy().copy())
        tape.zero()
    return residual.numpy().copy(), np.array(rows)


def main():
    rng = np.random.default_rng(86)
    towers = rng.uniform(-5.0, 5.0, (BEACONS, 2))
    beacon = wp.array(towers, dtype=wp.vec2)
    measured = wp.array(np.linalg.norm(towers - [1.0, -2.0], axis=1) + 0.3, dtype=float)
    place = wp.array([0.1, 0.2, 0.0], dtype=float, requires_grad=True)
    for iteration in range(4):
        r, j = jacobian(place, beacon, measured)
        step = np.linalg.lstsq(j, r, rcond=None)[0]
        place.assign(place.numpy() - step)
        print(iteration, "residual", float(np.linalg.norm(r)), "place", place.numpy())


if __name__ == "__main__":
    main()
