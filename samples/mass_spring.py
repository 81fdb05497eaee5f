"""A hanging chain of masses and springs, thrown so that it lands on a target shape.

The chain is integrated with semi-implicit Euler steps. The initial velocity of
every mass is unknown; gradient descent through the whole roll-out finds
velocities that bring the chain to the target after the last step.
"""

import numpy as np

import engine as wp

MASSES = 12
STEPS = 12
ITERATIONS = 30
DT = 0.03
STIFFNESS = 120.0
REST = 0.2


@wp.func
def pull(here: wp.vec3, there: wp.vec3, stiffness: float, rest: float) -> wp.vec3:
    """Force on `here` of a spring to `there`."""
    d = there - here
    length = wp.length(d)
    return d * (stiffness * (length - rest) / length)


@wp.kernel
def compute_forces(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    stiffness: float,
    rest: float,
    force: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    f = wp.vec3(0.0, -9.81, 0.0) - v[i] * 0.5
    if i > 0:
        f += pull(x[i], x[i - 1], stiffness, rest)
    if i < x.shape[0] - 1:
        f += pull(x[i], x[i + 1], stiffness, rest)
    force[i] = f


@wp.kernel
def integrate(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    force: wp.array(dtype=wp.vec3),
    dt: float,
    x_next: wp.array(dtype=wp.vec3),
    v_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    moved = v[i] + force[i] * dt
    v_next[i] = moved
    x_next[i] = x[i] + moved * dt


@wp.kernel
def distance_to_target(
    x: wp.array(dtype=wp.vec3), target: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = x[i] - target[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


@wp.kernel
def descend(p: wp.array(dtype=wp.vec3), gradient: wp.array(dtype=wp.vec3), rate: float):
    i = wp.tid()
    p[i] = p[i] - gradient[i] * rate


def roll_out(x: wp.array, v: wp.array) -> wp.array:
    """Positions after STEPS steps. Every step has its own arrays, so that none is overwritten."""
    for _ in range(STEPS):
        force = wp.zeros_like(x)
        x_next, v_next = wp.zeros_like(x), wp.zeros_like(v)
        wp.launch(compute_forces, dim=MASSES, inputs=[x, v, STIFFNESS, REST], outputs=[force])
        wp.launch(integrate, dim=MASSES, inputs=[x, v, force, DT], outputs=[x_next, v_next])
        x, v = x_next, v_next
    return x


def main() -> None:
    rng = np.random.default_rng(7)
    start = np.stack([np.arange(MASSES) * REST, np.zeros(MASSES), np.zeros(MASSES)], axis=1)
    angle = np.linspace(0.0, 1.2, MASSES)
    arc = np.stack([np.cos(angle), np.sin(angle), 0.3 * angle], axis=1) * REST * MASSES / 1.2
    target = wp.array(arc - arc[0], dtype=wp.vec3)

    x = wp.array(start, dtype=wp.vec3, requires_grad=True)
    v = wp.array(rng.normal(scale=0.1, size=(MASSES, 3)), dtype=wp.vec3, requires_grad=True)

    losses = []
    for iteration in range(ITERATIONS):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            end = roll_out(x, v)
            wp.launch(distance_to_target, dim=MASSES, inputs=[end, target], outputs=[loss])
        tape.backward(loss)
        losses.append(float(loss.numpy()[0]))
        wp.launch(descend, dim=MASSES, inputs=[v, v.grad, 2.0])
        tape.zero()
        if iteration % 5 == 0:
            print(f"iteration {iteration:3d}  loss {losses[-1]:.5f}")

    print(f"squared distance to the target: {losses[0]:.4f} -> {losses[-1]:.6f}")
    if not losses[-1] < 0.01 * losses[0]:
        raise SystemExit("the chain did not reach its target")


if __name__ == "__main__":
    main()
