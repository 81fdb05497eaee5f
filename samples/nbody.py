"""Gravity between bodies: aim their initial velocities so that they meet given places.

Each thread owns a body and loops over all others; the number of bodies is an
argument, so the loop is dynamic. The integrator is leapfrog (kick, drift, kick).
"""

import numpy as np

import engine as wp

BODIES = 10
STEPS = 15
ITERATIONS = 20
DT = 0.04
SOFTENING = 0.15


@wp.func
def gravity(
    x: wp.array(dtype=wp.vec3), mass: wp.array(dtype=float), i: int, n: int, softening: float
) -> wp.vec3:
    """Acceleration of body i (unit gravitational constant)."""
    here = x[i]
    a = wp.vec3(0.0, 0.0, 0.0)
    for j in range(n):
        d = x[j] - here
        s = wp.dot(d, d) + softening * softening
        a += d * (mass[j] / (s * wp.sqrt(s)))
    return a


@wp.kernel
def kick_drift(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    mass: wp.array(dtype=float),
    n: int,
    softening: float,
    dt: float,
    v_half: wp.array(dtype=wp.vec3),
    x_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    half = v[i] + gravity(x, mass, i, n, softening) * (0.5 * dt)
    v_half[i] = half
    x_next[i] = x[i] + half * dt


@wp.kernel
def kick(
    x: wp.array(dtype=wp.vec3),
    v_half: wp.array(dtype=wp.vec3),
    mass: wp.array(dtype=float),
    n: int,
    softening: float,
    dt: float,
    v_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    v_next[i] = v_half[i] + gravity(x, mass, i, n, softening) * (0.5 * dt)


@wp.kernel
def miss(x: wp.array(dtype=wp.vec3), places: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - places[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


@wp.kernel
def descend(p: wp.array(dtype=wp.vec3), gradient: wp.array(dtype=wp.vec3), rate: float):
    i = wp.tid()
    p[i] = p[i] - gradient[i] * rate


def fly(x: wp.array, v: wp.array, mass: wp.array) -> wp.array:
    """Positions after STEPS leapfrog steps."""
    for _ in range(STEPS):
        v_half, x_next, v_next = wp.zeros_like(v), wp.zeros_like(x), wp.zeros_like(v)
        wp.launch(
            kick_drift,
            dim=BODIES,
            inputs=[x, v, mass, BODIES, SOFTENING, DT],
            outputs=[v_half, x_next],
        )
        wp.launch(
            kick,
            dim=BODIES,
            inputs=[x_next, v_half, mass, BODIES, SOFTENING, DT],
            outputs=[v_next],
        )
        x, v = x_next, v_next
    return x


def main() -> None:
    rng = np.random.default_rng(12)
    start = rng.uniform(-1.5, 1.5, size=(BODIES, 3))
    x = wp.array(start, dtype=wp.vec3, requires_grad=True)
    v = wp.zeros(BODIES, dtype=wp.vec3, requires_grad=True)
    mass = wp.array(rng.uniform(0.05, 0.15, size=BODIES), dtype=float)
    # Places that can be reached: where hidden velocities lead.
    hidden = wp.array(rng.normal(scale=0.4, size=(BODIES, 3)), dtype=wp.vec3)
    places = fly(x, hidden, mass)

    losses = []
    for iteration in range(ITERATIONS):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(miss, dim=BODIES, inputs=[fly(x, v, mass), places], outputs=[loss])
        tape.backward(loss)
        losses.append(float(loss.numpy()[0]))
        wp.launch(descend, dim=BODIES, inputs=[v, v.grad, 0.6])
        tape.zero()
        if iteration % 5 == 0:
            print(f"iteration {iteration:3d}  loss {losses[-1]:.6f}")

    print(f"squared miss {losses[0]:.4f} -> {losses[-1]:.7f}")
    if not losses[-1] < 0.01 * losses[0]:
        raise SystemExit("the bodies missed their places")


if __name__ == "__main__":
    main()
