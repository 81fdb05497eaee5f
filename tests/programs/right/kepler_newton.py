"""Fit an eccentricity: Kepler's equation by Newton's method, which stops when it is there."""

# expect: exit=0
import numpy as np

import engine as wp

TIMES = 14


@wp.func
def eccentric_anomaly(mean: float, e: float) -> float:
    x = mean
    for _ in range(30):
        step = (x - e * wp.sin(x) - mean) / (1.0 - e * wp.cos(x))
        x -= step
        if wp.abs(step) < 1.0e-5:
            break
    return x


@wp.kernel
def radial_velocity(
    time: wp.array(dtype=float), orbit: wp.array(dtype=float), out: wp.array(dtype=float)
):
    i = wp.tid()
    e = orbit[0]
    x = eccentric_anomaly(time[i], e)
    nu = 2.0 * wp.atan2(wp.sqrt(1.0 + e) * wp.sin(0.5 * x), wp.sqrt(1.0 - e) * wp.cos(0.5 * x))
    out[i] = orbit[1] * (wp.cos(nu) + e)


@wp.kernel
def chi_squared(
    out: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    i = wp.tid()
    wp.atomic_add(loss, 0, (out[i] - seen[i]) * (out[i] - seen[i]))


def main():
    time = wp.array(np.linspace(0.2, 6.0, TIMES), dtype=float)
    seen = wp.zeros(TIMES, dtype=float)
    wp.launch(radial_velocity, TIMES, inputs=[time, wp.array([0.45, 1.2], dtype=float), seen])
    orbit = wp.array([0.3, 1.0], dtype=float, requires_grad=True)
    for iteration in range(5):
        out = wp.zeros(TIMES, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(radial_velocity, dim=TIMES, inputs=[time, orbit], outputs=[out])
            wp.launch(chi_squared, dim=TIMES, inputs=[out, seen], outputs=[loss])
        tape.backward(loss)
        orbit.assign(orbit.numpy() - 0.02 * orbit.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0], orbit.numpy())


if __name__ == "__main__":
    main()
