"""Broken on purpose: one `force` array that every step of a roll-out overwrites.

The masses of a swinging chain are fitted to where it ended up. The gradient of
the inverse masses needs the force of every step, but each step writes its
forces over those of the step before (finding G003). Every launch passes a check
on its own; a difference quotient of the whole roll-out is printed for comparison.

By default the engine restores what a tape overwrites, and the gradient is right.
Here it reads what the array contains at present, as Warp does.
"""

import numpy as np

import engine as wp

# What makes the mistake a wrong gradient; without it the forces of each step are saved.
wp.config.overwrites = "present"

MASSES = 6
STEPS = 10
DT = 0.04
STIFFNESS = 40.0
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
    f = wp.vec3(0.0, -2.0, 0.5) - v[i] * 0.2
    if i > 0:
        f += pull(x[i], x[i - 1], stiffness, rest)
    if i < x.shape[0] - 1:
        f += pull(x[i], x[i + 1], stiffness, rest)
    force[i] = f


@wp.kernel
def simulate(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    force: wp.array(dtype=wp.vec3),
    inverse_mass: wp.array(dtype=float),
    dt: float,
    x_next: wp.array(dtype=wp.vec3),
    v_next: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    moved = v[i] + force[i] * (inverse_mass[i] * dt)
    v_next[i] = moved
    x_next[i] = x[i] + moved * dt


@wp.kernel
def distance_to_target(
    x: wp.array(dtype=wp.vec3), target: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = x[i] - target[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


def roll_out(start: np.ndarray, inverse_mass: wp.array) -> wp.array:
    """Positions after STEPS steps, with one force array for all of them: the mistake."""
    x = wp.array(start, dtype=wp.vec3, requires_grad=True)
    v = wp.zeros_like(x)
    force = wp.zeros_like(x)
    for _ in range(STEPS):
        x_next, v_next = wp.zeros_like(x), wp.zeros_like(v)
        wp.launch(compute_forces, dim=MASSES, inputs=[x, v, STIFFNESS, REST], outputs=[force])
        wp.launch(
            simulate,
            dim=MASSES,
            inputs=[x, v, force, inverse_mass, DT],
            outputs=[x_next, v_next],
        )
        x, v = x_next, v_next
    return x


def main() -> None:
    rng = np.random.default_rng(8)
    start = np.stack([np.arange(MASSES) * REST * 1.3] + [np.zeros(MASSES)] * 2, axis=1)
    start += rng.normal(scale=0.03, size=start.shape)
    true_inverse = rng.uniform(0.5, 2.0, size=MASSES)
    target = roll_out(start, wp.array(true_inverse, dtype=float))

    def loss_of(values: np.ndarray, tape: wp.Tape) -> tuple[wp.array, wp.array]:
        inverse_mass = wp.array(values, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with tape:
            end = roll_out(start, inverse_mass)
            wp.launch(distance_to_target, dim=MASSES, inputs=[end, target], outputs=[loss])
        return loss, inverse_mass

    guess = np.ones(MASSES)
    tape = wp.Tape()
    loss, inverse_mass = loss_of(guess, tape)
    tape.backward(loss)
    print(f"loss {float(loss.numpy()[0]):.5f}")
    print("mass   tape's gradient   difference quotient")
    for i in range(MASSES):
        bump = np.eye(MASSES)[i] * 0.01
        ahead = float(loss_of(guess + bump, wp.Tape())[0].numpy()[0])
        behind = float(loss_of(guess - bump, wp.Tape())[0].numpy()[0])
        print(f"{i:4d} {inverse_mass.grad.numpy()[i]:17.5f} {(ahead - behind) / 0.02:21.5f}")


if __name__ == "__main__":
    main()
