"""Broken on purpose: a variable that one branch forgets.

The speed of a bicycle is optimised for each part of a road. The drag of the air has one law for a
strong wind and one for a weak wind; the parts where the wind comes from behind got none.
Python would raise an error there. In a kernel the variable is 0 then, so that gradients are right
for a value that nobody wrote, and those parts cost nothing (finding G014). That some path may
forget the variable is warned of when the kernel is compiled; the check says that threads took it.
That is a warning: `adtool check --gate warning` fails on it.
"""

import numpy as np

import engine as wp

PARTS = 20
ITERATIONS = 12


@wp.kernel
def energy(
    speed: wp.array(dtype=float),
    wind: wp.array(dtype=float),
    cost: wp.array(dtype=float),
):
    i = wp.tid()
    against = speed[i] + wind[i]
    if against > 1.0:
        drag = against * against
    elif against > 0.0:
        drag = against
    # The mistake: where the wind is faster than the rider, `drag` has no value.
    time = 1.0 / speed[i]
    cost[i] = drag + 2.0 * time


@wp.kernel
def total(cost: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, cost[i] / float(cost.shape[0]))


@wp.kernel
def descend(p: wp.array(dtype=float), gradient: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * gradient[i]


def main() -> None:
    rng = np.random.default_rng(37)
    wind = wp.array(rng.uniform(-1.5, 1.5, size=PARTS), dtype=float)
    speed = wp.array(np.full(PARTS, 0.8), dtype=float, requires_grad=True)

    for iteration in range(ITERATIONS):
        cost = wp.zeros(PARTS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(energy, dim=PARTS, inputs=[speed, wind], outputs=[cost])
            wp.launch(total, dim=PARTS, inputs=[cost], outputs=[loss])
        tape.backward(loss)
        wp.launch(descend, dim=PARTS, inputs=[speed, speed.grad, 1.0])
        tape.zero()
        if iteration % 4 == 0:
            print(f"iteration {iteration:2d}  loss {loss.numpy()[0]:.5f}")
    print(f"fastest {speed.numpy().max():.3f}, slowest {speed.numpy().min():.3f}")


if __name__ == "__main__":
    main()
