"""Broken on purpose: a step on the host that adtool cannot run again.

Some lamps are to be dimmed so that a room looks as it is wanted, and the gradient says by how
much. How much light of each lamp reaches each place is estimated on the host by random rays, and
tape.record_func has the backward function. That may be right; but the rays have no seed, so that
another run has another light, and the tape as a whole cannot be compared with anything (finding
G012). With default_rng(38) the program can be run again, and its gradient is checked. That is a
warning: `adtool check --gate warning` fails on it.
"""

import numpy as np

import engine as wp

LAMPS = 4
PLACES = 10


@wp.kernel
def switch(setting: wp.array(dtype=float), power: wp.array(dtype=float)):
    i = wp.tid()
    power[i] = 1.0 / (1.0 + wp.exp(-setting[i]))


@wp.kernel
def misfit(
    light: wp.array(dtype=float), wanted: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = light[i] - wanted[i]
    wp.atomic_add(loss, 0, d * d)


class Room:
    """Light at each place, by the powers of the lamps: a matrix that random rays estimate."""

    def __init__(self, reach: np.ndarray) -> None:
        self.reach = reach
        # The mistake: no seed, so that each run has its own rays.
        self.rng = np.random.default_rng()

    def trace(self, power: wp.array, light: wp.array) -> None:
        """Estimates `light`, and keeps what the adjoint needs."""
        self.power, self.light = power, light
        self.seen = self.rng.binomial(200, self.reach) / 200.0
        light.assign(self.seen @ power.numpy())

    def backward(self) -> None:
        self.power.grad.assign(self.power.grad.numpy() + self.seen.T @ self.light.grad.numpy())
        self.light.grad.zero_()


def main() -> None:
    rng = np.random.default_rng(38)
    room = Room(rng.uniform(0.05, 0.6, size=(PLACES, LAMPS)))
    wanted = wp.array(room.reach @ np.array([0.9, 0.2, 0.6, 0.4]), dtype=float)
    setting = wp.zeros(LAMPS, dtype=float, requires_grad=True)

    power = wp.zeros(LAMPS, dtype=float, requires_grad=True)
    light = wp.zeros(PLACES, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(switch, dim=LAMPS, inputs=[setting], outputs=[power])
        room.trace(power, light)
        tape.record_func(room.backward, [power, light])
        wp.launch(misfit, dim=PLACES, inputs=[light, wanted], outputs=[loss])
    tape.backward(loss)
    print(f"loss {loss.numpy()[0]:.4f}")
    print("lamp   turn it by")
    for i in range(LAMPS):
        print(f"{i:4d} {-setting.grad.numpy()[i]:12.5f}")


if __name__ == "__main__":
    main()
