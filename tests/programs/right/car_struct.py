"""A car on a track: the parameters of its tyres are in a struct, its states in arrays."""

# expect: exit=0
import numpy as np

import engine as wp

STEPS = 16


@wp.struct
class Car:
    grip: wp.array(dtype=float)
    drag: wp.array(dtype=float)
    mass: float
    dt: float


@wp.func
def tyre_force(car: Car, slip: float) -> float:
    return car.grip[0] * wp.sin(1.4 * wp.atan(6.0 * slip))


@wp.kernel
def drive(car: Car, steer: wp.array(dtype=float), k: int, state: wp.array2d(dtype=float)):
    x = state[k, 0]
    y = state[k, 1]
    heading = state[k, 2]
    speed = state[k, 3]
    turn = tyre_force(car, steer[k]) / car.mass
    state[k + 1, 0] = x + car.dt * speed * wp.cos(heading)
    state[k + 1, 1] = y + car.dt * speed * wp.sin(heading)
    state[k + 1, 2] = heading + car.dt * turn
    state[k + 1, 3] = speed - car.dt * car.drag[0] * speed * speed / car.mass


@wp.kernel
def track_error(
    state: wp.array2d(dtype=float), line: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    k = wp.tid()
    d = state[k, 1] - line[k]
    wp.atomic_add(loss, 0, d * d)


def main():
    rng = np.random.default_rng(71)
    car = Car()
    car.grip = wp.array([4.0], dtype=float, requires_grad=True)
    car.drag = wp.array([0.1], dtype=float, requires_grad=True)
    car.mass = 1.5
    car.dt = 0.1
    steer = wp.array(rng.normal(scale=0.1, size=STEPS), dtype=float, requires_grad=True)
    line = wp.array(0.5 * np.sin(0.2 * np.arange(STEPS + 1)), dtype=float)
    for iteration in range(4):
        # A row of its own for each step: no row is written twice.
        state = wp.zeros((STEPS + 1, 4), dtype=float, requires_grad=True)
        state.assign([[0.0, 0.0, 0.1, 3.0]] + [[0.0] * 4] * STEPS)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for k in range(STEPS):
                wp.launch(drive, dim=1, inputs=[car, steer, k, state])
            wp.launch(track_error, dim=STEPS + 1, inputs=[state, line], outputs=[loss])
        tape.backward(loss)
        steer.assign(steer.numpy() - 0.002 * steer.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
