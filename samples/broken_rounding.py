"""Broken on purpose: a difference of two distances that needs more digits than float32 has.

A transmitter on the ground is located from orbit: two antennas of a satellite, two metres apart,
tell how much longer the way is to the one than to the other. The gradient of that is the
difference of two directions that agree in their first five digits, of the seven that float32
has. The formula is right, the numbers are not (finding G011). The way out is float64 for this
kernel, or a formula without the difference: (|a|^2 - |b|^2) / (|a| + |b|), multiplied out. That is
a warning: `adtool check --gate warning` fails on it.
"""

import numpy as np

import engine as wp

PASSES = 12
ITERATIONS = 6


@wp.kernel
def path_difference(
    satellite: wp.array(dtype=wp.vec3),
    boom: wp.array(dtype=wp.vec3),
    place: wp.array(dtype=wp.vec3),
    difference: wp.array(dtype=float),
):
    i = wp.tid()
    here = satellite[i] - place[0]
    # The mistake: two numbers near 500,000 are subtracted; their difference is about 1.
    difference[i] = wp.length(here + boom[i]) - wp.length(here - boom[i])


@wp.kernel
def misfit(
    difference: wp.array(dtype=float), measured: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = difference[i] - measured[i]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def descend(p: wp.array(dtype=wp.vec3), gradient: wp.array(dtype=wp.vec3), rate: float):
    i = wp.tid()
    p[i] = p[i] - gradient[i] * rate


def main() -> None:
    rng = np.random.default_rng(35)
    orbit = rng.uniform(-2.0e5, 2.0e5, size=(PASSES, 3))
    orbit[:, 2] = 5.0e5
    booms = rng.normal(size=(PASSES, 3))
    booms /= np.linalg.norm(booms, axis=1)[:, None]
    truth = np.array([3.0e4, -2.0e4, 0.0])
    far = np.linalg.norm(orbit + booms - truth, axis=1)
    near = np.linalg.norm(orbit - booms - truth, axis=1)
    satellite, boom = wp.array(orbit, dtype=wp.vec3), wp.array(booms, dtype=wp.vec3)
    measured = wp.array(far - near, dtype=float)
    place = wp.array([[1.0e4, -5.0e3, 2.0e3]], dtype=wp.vec3, requires_grad=True)

    for iteration in range(ITERATIONS):
        difference = wp.zeros(PASSES, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(
                path_difference,
                dim=PASSES,
                inputs=[satellite, boom, place],
                outputs=[difference],
            )
            wp.launch(misfit, dim=PASSES, inputs=[difference, measured], outputs=[loss])
        tape.backward(loss)
        wp.launch(descend, dim=1, inputs=[place, place.grad, 3.0e9])
        tape.zero()
        if iteration % 2 == 0:
            off = np.linalg.norm(place.numpy()[0] - truth) / 1000.0
            print(f"iteration {iteration}  loss {loss.numpy()[0]:.6f}  {off:.1f} km away")


if __name__ == "__main__":
    main()
